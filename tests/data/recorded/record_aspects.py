#!/usr/bin/env python3
"""What Keras makes of images of other aspect ratios: writes aspects.json, beside this file. Needs keras
(3.15) and tensorflow (2.21).

Each case is a grey image and one element of image_dataset_from_directory with the options named in it. The
values of the image are y * 31 + x * 17 + y * x % 13, modulo 256.
"""
import json
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf

PADDED = [((8, 4), (8, 8), "bilinear"), ((4, 9), (7, 5), "bilinear"), ((9, 4), (5, 7), "nearest"),
          ((5, 3), (16, 10), "bicubic"), ((13, 7), (6, 11), "lanczos3"), ((10, 3), (7, 7), "area"),
          ((6, 11), (11, 4), "gaussian"), ((7, 7), (5, 9), "mitchellcubic"), ((3, 41), (23, 41), "bilinear"),
          ((49, 6), (47, 10), "nearest"), ((8, 3), (7, 11), "bilinear"), ((5, 16), (9, 13), "bicubic"),
          ((2, 1), (1, 2), None)]
CROPPED = [((8, 4), (8, 8), "bilinear"), ((4, 9), (7, 5), "bilinear"), ((9, 4), (5, 7), "nearest"),
           ((13, 7), (6, 11), "bicubic"), ((11, 6), (4, 11), "lanczos3"), ((1, 7), (3, 2), "bilinear")]


def image(height, width):
    y, x = np.mgrid[0:height, 0:width]
    return ((y * 31 + x * 17 + y * x % 13) % 256).astype("uint8")[:, :, None]


def element(shape, size, interpolation, options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "c" / "a.png"
        path.parent.mkdir()
        path.write_bytes(tf.io.encode_png(image(*shape)).numpy())
        dataset = keras.utils.image_dataset_from_directory(
            folder, labels=None, color_mode="grayscale", image_size=size, shuffle=False, batch_size=None,
            interpolation=interpolation or "bilinear", verbose=False, **options)
        try:
            return next(iter(dataset)).numpy().astype("float32")
        except tf.errors.InvalidArgumentError:
            return None


cases = []
for option, rows in (("pad", PADDED), ("crop", CROPPED)):
    for shape, size, interpolation in rows:
        values = element(shape, size, interpolation, {f"{option}_to_aspect_ratio": True})
        cases.append({"option": option, "image": shape, "size": size, "interpolation": interpolation,
                      "values": None if values is None else [float(f"{v:.9g}") for v in values.ravel()]})
lines = ",\n".join(json.dumps(case) for case in cases)
(pathlib.Path(__file__).parent / "aspects.json").write_text(f"[\n{lines}\n]\n")

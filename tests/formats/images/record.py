#!/usr/bin/env python3
"""What TensorFlow makes of small images: writes images.json, beside this file. Needs tensorflow (2.21).

Each case has a file, all of which this script makes, and under "1", "3" and "4" the bytes of
tf.io.decode_image with that many channels, as Keras's image_dataset_from_directory calls it; null if it
refuses. Bytes are in hexadecimal.
"""
import json
import pathlib
import struct
import zlib

import numpy as np
import tensorflow as tf

random = np.random.default_rng(5)
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows(values, depth):
    """The rows of values, each behind a filter byte, with 16 or fewer bits a value."""
    out = b""
    for row in values:
        bits = "".join(format(int(v), f"0{depth}b") for v in row.ravel())
        bits += "0" * (-len(bits) % 8)
        out += b"\0" + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    return out


def png(kind, depth, *chunks, size=(5, 7), interlaced=False, values=None):
    height, width = size
    if values is None:
        values = random.integers(0, 2**depth, (height, width, CHANNELS[kind]))
    parts = [values[y::dy, x::dx] for y, x, dy, dx in PASSES] if interlaced else [values]
    data = b"".join(rows(p, depth) for p in parts if p.size)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*c) for c in chunks)
            + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def palette(depth):
    return b"PLTE", random.integers(0, 256, 3 * 2**depth).astype("uint8").tobytes()


def gamma(value):
    return b"gAMA", struct.pack(">I", value)


def jpeg_of_inks(inks, adobe):
    """One block of CMYK: each component is a constant."""
    def segment(marker, data):
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    counts = [0, 0, 0, 12] + [0] * 12
    dc = bytes([0x00] + counts + list(range(12)))
    ac = bytes([0x10] + [1] + [0] * 15 + [0])
    bits = ""
    for ink in inks:
        difference = (int(ink) - 128) * 8
        size = abs(difference).bit_length()
        bits += format(size, "04b")
        if size:
            bits += format(difference if difference > 0 else difference + 2**size - 1, f"0{size}b")
        bits += "0"  # no other coefficient
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    parts = [segment(0xEE, b"Adobe" + bytes([0, 100, 0, 0, 0, 0, 0]))] if adobe else []
    components = b"".join(bytes([i, 0x11, 0]) for i in range(1, 5))
    parts += [segment(0xDB, b"\0" + b"\1" * 64),
              segment(0xC0, struct.pack(">BHHB", 8, 3, 2, 4) + components),
              segment(0xC4, dc), segment(0xC4, ac),
              segment(0xDA, bytes([4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0]))]
    return b"\xff\xd8" + b"".join(parts) + data + b"\xff\xd9"


def smooth(height, width, channels):
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 100 * np.sin(x / (3 + k) + y / (5 + k)) for k in range(channels)]
    noise = random.normal(0, 8, (height, width, channels))
    return np.clip(np.stack(waves, -1) + noise, 0, 255).astype("uint8")


def files():
    for depth in (1, 2, 4, 8, 16):
        yield f"grey {depth}", png(GREY, depth)
        yield f"grey {depth} tRNS", png(GREY, depth, (b"tRNS", struct.pack(">H", 1)))
    for depth in (1, 2, 4, 8):
        yield f"palette {depth}", png(PALETTE, depth, palette(depth))
        yield f"palette {depth} tRNS", png(PALETTE, depth, palette(depth), (b"tRNS", bytes([0, 128])))
    for depth in (8, 16):
        yield f"RGB {depth}", png(RGB, depth, size=(8, 8))
        yield f"RGBA {depth}", png(RGBA, depth, size=(8, 8))
        yield f"grey and alpha {depth}", png(GREY_ALPHA, depth)
        yield f"RGB {depth} interlaced", png(RGB, depth, interlaced=True)
        values = random.integers(0, 2**depth, (2, 2, 3))
        clear = b"tRNS", struct.pack(">HHH", *values[1, 0])
        yield f"RGB {depth} tRNS", png(RGB, depth, clear, values=values, size=(2, 2))
        for value in (45455, 55556, 100000):
            yield f"RGB {depth} gAMA {value}", png(RGB, depth, gamma(value))
        yield f"grey {depth} gAMA", png(GREY, depth, gamma(100000))
        yield f"RGB {depth} sRGB", png(RGB, depth, (b"sRGB", b"\0"))
        chromaticities = struct.pack(">8I", 31270, 32900, 70000, 30000, 20000, 70000, 14000, 5000)
        yield f"RGB {depth} cHRM", png(RGB, depth, (b"cHRM", chromaticities))
    yield "palette 4 gAMA", png(PALETTE, 4, gamma(100000), palette(4))
    yield "grey 1 interlaced", png(GREY, 1, interlaced=True)
    yield "text", png(GREY, 8, (b"zTXt", b"Comment\0\0" + zlib.compress(b"x" * 100)), size=(1, 1))
    for quality in (50, 75, 90, 100):
        for smaller in (True, False):
            encoded = tf.io.encode_jpeg(smooth(19, 21, 3), quality=quality, chroma_downsampling=smaller)
            yield f"JPEG {quality} {'4:2:0' if smaller else '4:4:4'}", encoded.numpy()
    yield "JPEG grey", tf.io.encode_jpeg(smooth(19, 21, 1), quality=90).numpy()
    yield "JPEG progressive", tf.io.encode_jpeg(smooth(19, 21, 3), quality=90, progressive=True).numpy()
    for adobe in (False, True):
        yield f"JPEG CMYK{' of Adobe' if adobe else ''}", jpeg_of_inks([200, 17, 128, 90], adobe)


def decoded(data, channels):
    try:
        return tf.io.decode_image(data, channels=channels, expand_animations=False).numpy()
    except tf.errors.InvalidArgumentError:
        return None


cases = []
for name, data in files():
    case = {"name": name, "file": data.hex()}
    for channels in (1, 3, 4):
        image = decoded(data, channels)
        if image is not None:
            case["height"], case["width"] = image.shape[:2]
        case[str(channels)] = None if image is None else image.tobytes().hex()
    cases.append(case)
lines = ",\n".join(json.dumps(case) for case in cases)
(pathlib.Path(__file__).parent / "images.json").write_text(f"[\n{lines}\n]\n")

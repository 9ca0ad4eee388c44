#!/usr/bin/env python3
"""Real Keras 3 loads what `mixtape quantize` and `mixtape train` write in float8, predicts the same and
trains on.

  float8.py MIXTAPE FOLDER

MIXTAPE is the program; FOLDER holds the float models float8-NAME.keras with float8-NAME.npz and .json, as
$MIXTAPE_REFERENCE_DIR/precision does. Each is quantized and trained for four steps by the program. Keras
loads both files, has the same weights, and predicts and trains on within the bounds of the recordings; the
program trains on from the same file. Bounds are those of the recordings' README: 1e-5 in float32 or three
times the recorded spread, 8e-2 under mixed_bfloat16, 5e-2 under mixed_float16, losses 1e-5, 3e-2, 1e-2 times
the step. Not part of the tests: it needs TensorFlow and Keras. Exits with 1 if anything differs.
"""
from with_keras import (check_all, distance, expect, failures, keras_losses, keras_predictions, loss_distance,
                        predict, run, source, train)
import keras
import numpy as np


def bounds(recorded):
    spread = max((s.get(k, 0) for s in recorded["spread"].values() for k in ("trained", "after")), default=0)
    loss = max((s.get("losses", 0) for s in recorded["spread"].values()), default=0)
    floor = {"float32": (1e-5, 1e-5), "mixed_bfloat16": (8e-2, 3e-2), "mixed_float16": (5e-2, 1e-2)}
    outputs, losses = floor[recorded["policy"]]
    return max(outputs, 3 * spread), max(losses, 3 * loss)


def check_file(name, path, recorded, folder):
    examples, data, weights = recorded["examples"], source / f"{name}.npz", folder / "weights.npz"
    outputs, losses = bounds(recorded)
    run("convert", path, weights)
    model = keras.models.load_model(path)
    arrays, archive = np.load(data), np.load(weights)
    for variable, key in zip(model.weights, archive.files, strict=True):  # in the order of get_weights()
        theirs = np.asarray(variable.numpy()).astype(np.float32)
        if not np.array_equal(theirs, archive[key].astype(np.float32)):
            failures.append(f"{name}: {path.stem}: {variable.path} is another one in Keras")
    words = [expect(name, f"{path.stem}: predictions", distance(
        predict(path, data, examples, folder), keras_predictions(model, arrays["x"])), outputs)]
    here = train(path, data, examples, folder)
    words.append(expect(name, f"{path.stem}: losses of the next steps", loss_distance(
        here, keras_losses(model, arrays["x"], arrays["y"])), losses))
    return ", ".join(words)


def check(name, recorded, folder):
    quantized, trained = folder / "quantized.keras", folder / "trained.keras"
    more = ["--filter", recorded["filters"]] if "filters" in recorded else []
    more += ["--amax-history", recorded["history"]] if "history" in recorded else []
    run("quantize", source / f"{name}.keras", quantized, "--mode", "float8", *more)
    words = check_file(name, quantized, recorded, folder)
    train(quantized, source / f"{name}.npz", recorded["examples"], folder, "--save", trained)
    return words + ", " + check_file(name, trained, recorded, folder)


check_all(sorted(path.stem for path in source.glob("float8-*.json")), check)

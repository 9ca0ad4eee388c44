#!/usr/bin/env python3
"""Real Keras 3 loads what `mixtape quantize` and `mixtape train` write in int8 and int4, has the same
integers and scales, predicts the same and trains on.

  integers.py MIXTAPE FOLDER

MIXTAPE is the program; FOLDER holds the recordings int8-NAME and int4-NAME, as
$MIXTAPE_REFERENCE_DIR/precision does. Files of quantized attention are left out: Keras refuses its own (row
Q30). Bounds are those of the recordings' README. Not part of the tests: it needs TensorFlow and Keras. Exits
with 1 if anything differs.
"""
from with_keras import (check_all, distance, expect, failures, keras_losses, keras_predictions, loss_distance,
                        predict, run, source, train)
import keras
import numpy as np


def options(recorded):
    mode = recorded["mode"]
    chosen = ["--mode", mode[:4]]
    if "block" in mode:
        chosen += ["--block-size", mode.split("block")[1].split("-")[0]]
    chosen += ["--block-size", "-1"] * ("channel" in mode) + ["--inputs"] * mode.endswith("inputs")
    chosen += ["--weights-only"] * (mode == "int8-weights")
    if mode == "int8-range":
        chosen += ["--weight-range=-63,63", "--input-range=-100,100", "--input-epsilon", "1e-3"]
    return chosen + (["--filter", recorded["filters"]] if recorded.get("filters") else [])


def bounds(recorded):
    mode = recorded["mode"]
    rounds_inputs = mode.startswith("int8") and "weights" not in mode or "inputs" in mode
    if recorded["policy"] != "float32":
        return 5e-2, 2e-2
    return (5e-3, 2e-3) if rounds_inputs else (1e-5, 1e-5)


def plain(weight):
    weight = np.asarray(weight)
    return weight.astype(np.float32) if weight.dtype.name == "bfloat16" else weight


def check(name, recorded, folder):
    written, trained, data = folder / "q.keras", folder / "t.keras", source / f"{name}.npz"
    run("quantize", source / f"{name}.keras", written, *options(recorded))
    model = keras.models.load_model(written)
    with np.load(data) as z:
        x, y, init = z["x"], z["y"], [z[f"init_{i}"] for i in range(len(recorded["after"]["variables"]))]
    paths = [v["path"] for v in recorded["after"]["variables"]]
    outputs, losses = bounds(recorded)
    for path, weight, expected in zip(paths, map(plain, model.weights), init):
        fits = (weight.dtype, weight.shape) == (expected.dtype, expected.shape)
        same = fits and distance(weight, expected)
        limit = 1e-6 if path.endswith("_scale") else 0
        if same is False or not same <= limit:
            failures.append(f"{name}: {path} is not Keras's")
    words = [expect(name, "predictions", distance(
        predict(written, data, len(x), folder), keras_predictions(model, x)), outputs)]
    if recorded["losses"]:
        here = train(written, data, len(x), folder, "--save", trained)
        words.append(expect(name, "losses", loss_distance(here, keras_losses(model, x, y)), losses))
        words.append(expect(name, "after training", distance(
            predict(trained, data, len(x), folder),
            keras_predictions(keras.models.load_model(trained), x)), outputs))
    return ", ".join(words)


check_all([p.stem for p in sorted(source.glob("int[48]-*.json"))
           if not any(word in p.name for word in ("mha", "transformer"))], check)

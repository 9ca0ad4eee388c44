#!/usr/bin/env python3
"""Real Keras 3 loads what `mixtape quantize` and `mixtape train` write in int8 and int4, has the same
integers and scales, predicts the same and trains on.

  integers.py MIXTAPE FOLDER

MIXTAPE is the program; FOLDER holds the recordings int8-NAME and int4-NAME, as
$MIXTAPE_REFERENCE_DIR/precision does. Files of quantized attention are left out: Keras refuses its own (row
Q30). Bounds are those of the recordings' README. Not part of the tests: it needs TensorFlow and Keras. Exits
with 1 if anything differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import keras
import numpy as np

STEPS = 4
program, source = sys.argv[1], pathlib.Path(sys.argv[2])
failures = []


def run(*arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        failures.append(f"{arguments[0]} {arguments[1]}: {result.stderr[-300:]}")
    return not result.returncode


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def expect(name, what, got, bound):
    if not got <= bound:
        failures.append(f"{name}: {what} differ by {got:.2e}, which is more than {bound:.2e}")
    return f"{what} {got:.1e}"


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


def predict_here(path, name, examples, folder):
    out = folder / "p.npz"
    if not run("predict", "--model", path, "--data", source / f"{name}.npz", "--batch-size", examples,
               "--output", out, "--accumulate", "exact"):
        return None
    with np.load(out) as z:
        return z[z.files[0]]


def plain(weight):
    weight = np.asarray(weight)
    return weight.astype(np.float32) if weight.dtype.name == "bfloat16" else weight


def check(name, recorded, folder):
    written, trained, log = folder / "q.keras", folder / "t.keras", folder / "steps.jsonl"
    if not run("quantize", source / f"{name}.keras", written, *options(recorded)):
        return
    model = keras.models.load_model(written)
    with np.load(source / f"{name}.npz") as z:
        x, y, init = z["x"], z["y"], [z[f"init_{i}"] for i in range(len(recorded["after"]["variables"]))]
    paths = [v["path"] for v in recorded["after"]["variables"]]
    outputs, losses = bounds(recorded)
    words = []
    for path, weight, expected in zip(paths, map(plain, model.weights), init):
        fits = (weight.dtype, weight.shape) == (expected.dtype, expected.shape)
        same = fits and distance(weight, expected)
        limit = 1e-6 if path.endswith("_scale") else 0
        if same is False or not same <= limit:
            failures.append(f"{name}: {path} is not Keras's")
    mine = predict_here(written, name, recorded["examples"], folder)
    theirs = np.asarray(model.predict(x, batch_size=len(x), verbose=0), np.float32)
    words.append(expect(name, "predictions", distance(mine, theirs), outputs))
    if recorded["losses"]:
        if not run("train", "--model", written, "--data", source / f"{name}.npz", "--batch-size", len(x),
                   "--epochs", STEPS, "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log",
                   log, "--save", trained):
            return
        here = [json.loads(line)["loss"] for line in open(log)]
        there = [float(np.ravel(model.train_on_batch(x, y))[0]) for _ in range(STEPS)]
        words.append(expect(name, "losses", max(abs(a - b) / abs(b) / (i + 1)
                                                for i, (a, b) in enumerate(zip(here, there))), losses))
        model = keras.models.load_model(trained)
        theirs = np.asarray(model.predict(x, batch_size=len(x), verbose=0), np.float32)
        mine = predict_here(trained, name, len(x), folder)
        words.append(expect(name, "after training", distance(mine, theirs), outputs))
    print(name + ":", ", ".join(words), flush=True)


files = [p for p in sorted(source.glob("int[48]-*.json"))
         if not any(word in p.name for word in ("mha", "transformer"))]
for path in files:
    with tempfile.TemporaryDirectory() as folder:
        keras.backend.clear_session()
        try:
            check(path.stem, json.loads(path.read_text()), pathlib.Path(folder))
        except Exception as error:  # what Keras refuses
            failures.append(f"{path.stem}: {type(error).__name__}: {str(error)[:300]}")
print(len(files), "models,", len(failures), "failures")
print("\n".join(failures))
sys.exit(bool(failures))

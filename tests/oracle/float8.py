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
    print(f"  {what}: {got:.2e} (at most {bound:.2e})")
    if not got <= bound:
        failures.append(f"{name}: {what} differ by {got:.2e}, which is more than {bound:.2e}")


def bounds(recorded):
    spread = max((s.get(k, 0) for s in recorded["spread"].values() for k in ("trained", "after")), default=0)
    loss = max((s.get("losses", 0) for s in recorded["spread"].values()), default=0)
    floor = {"float32": (1e-5, 1e-5), "mixed_bfloat16": (8e-2, 3e-2), "mixed_float16": (5e-2, 1e-2)}
    outputs, losses = floor[recorded["policy"]]
    return max(outputs, 3 * spread), max(losses, 3 * loss)


def train_here(path, data, examples, folder, save=None):
    """The losses of the program's next steps."""
    log = folder / "steps.jsonl"
    more = ["--save", save] if save else []
    if not run("train", "--model", path, "--data", data, "--batch-size", examples, "--epochs", STEPS,
               "--no-shuffle", "--accumulate", "exact", "--verbose", 0, "--step-log", log, *more):
        return None
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()]


def check_file(name, path, recorded, data, folder):
    examples, arrays = recorded["examples"], np.load(data)
    out, weights = folder / "out.npz", folder / "weights.npz"
    outputs, losses = bounds(recorded)
    if not run("predict", "--model", path, "--data", data, "--batch-size", examples, "--output", out,
               "--accumulate", "exact") or not run("convert", path, weights):
        return
    model = keras.models.load_model(path)
    ours, archive = np.load(out), np.load(weights)
    for variable, key in zip(model.weights, archive.files, strict=True):  # in the order of get_weights()
        theirs = np.asarray(variable.numpy()).astype(np.float32)
        if not np.array_equal(theirs, archive[key].astype(np.float32)):
            failures.append(f"{name}: {variable.path} is another one in Keras")
    theirs = np.asarray(model.predict(arrays["x"], batch_size=examples, verbose=0)).astype(np.float32)
    expect(name, "predictions", distance(ours[ours.files[0]], theirs), outputs)
    here = train_here(path, data, examples, folder)
    if here:
        there = [float(np.ravel(model.train_on_batch(arrays["x"], arrays["y"]))[0]) for _ in range(STEPS)]
        expect(name, "losses of the next steps",
               max(abs(a - b) / abs(b) / (i + 1) for i, (a, b) in enumerate(zip(here, there))), losses)


def check(name, folder):
    recorded, data = json.loads((source / f"{name}.json").read_text()), source / f"{name}.npz"
    quantized, trained = folder / "quantized.keras", folder / "trained.keras"
    more = ["--filter", recorded["filters"]] if "filters" in recorded else []
    more += ["--amax-history", recorded["history"]] if "history" in recorded else []
    if not run("quantize", source / f"{name}.keras", quantized, "--mode", "float8", *more):
        return
    check_file(name, quantized, recorded, data, folder)
    if train_here(quantized, data, recorded["examples"], folder, trained):
        check_file(name + ", trained", trained, recorded, data, folder)


def main():
    names = sorted(path.stem for path in source.glob("float8-*.json"))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            keras.backend.clear_session()
            print(name, flush=True)
            try:
                check(name, pathlib.Path(folder))
            except Exception as error:  # what Keras says of a file
                failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print("\n".join(failures))
    print(f"keras {keras.__version__}: {len(names)} models, {len(failures)} failures")
    sys.exit(bool(failures))


main()

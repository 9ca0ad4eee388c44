"""Does real Keras read what the program writes with Muon and ScheduleFreeAdamW, and as shards? For each case
optimizer-* and sharded-* of the recordings: the program trains and saves, Keras loads, predicts the same and
trains on, and so does the program.

    MIXTAPE_PROGRAM=build/release/mixtape MIXTAPE_REFERENCE_DIR=... python tests/oracle/optimizers.py

Needs keras 3.15.1 with tensorflow 2.21. Ends with 1 and the cases that differ.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import keras
import numpy as np

PROGRAM = os.environ["MIXTAPE_PROGRAM"]
FOLDER = os.path.join(os.environ["MIXTAPE_REFERENCE_DIR"], "precision")
# Outputs, and the loss of a further step: the bounds of the recordings' README.
BOUNDS = {"float32": (1e-5, 1e-5), "mixed_bfloat16": (5e-2, 2e-2)}
STEPS = 3


def run(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(arguments)}\n{result.stderr}")


def distance(a, b):
    return float(np.abs(np.float64(a) - b).max() / max(np.abs(b).max(), 1e-30))


def train(model, data, rows, out, log):
    run("train", "--model", model, "--data", data, "--batch-size", str(rows), "--epochs", str(STEPS),
        "--no-shuffle", "--accumulate", "exact", "--save", out, "--step-log", log, "--verbose", "0")
    with open(log) as lines:
        return [step["loss"] for step in map(json.loads, lines) if "loss" in step]


def predict(model, data, rows, out):
    run("predict", "--model", model, "--data", data, "--batch-size", str(rows), "--output", out,
        "--accumulate", "exact")
    with np.load(out) as arrays:
        return arrays["y"]


def trained_case(name, folder):
    """Trained by the program from scratch: what Keras and the program then make of the file."""
    with open(os.path.join(FOLDER, name + ".json")) as file:
        recorded = json.load(file)
    data, rows = os.path.join(FOLDER, name + ".npz"), recorded["examples"]
    first, then = os.path.join(folder, "first.keras"), os.path.join(folder, "then.keras")
    log, out = os.path.join(folder, "log.jsonl"), os.path.join(folder, "y.npz")
    train(os.path.join(FOLDER, name + ".keras"), data, rows, first, log)
    model = keras.models.load_model(first)
    with np.load(data) as arrays:
        x, y = arrays["x"], arrays["y"]
    outputs = distance(predict(first, data, rows, out), model.predict(x, verbose=0))
    steps = int(model.optimizer.iterations.numpy())
    theirs = [float(model.train_on_batch(x, y)) for _ in range(STEPS)]
    ours = train(first, data, rows, then, log)
    loss = max(abs(a / b - 1) / (i + 1) for i, (a, b) in enumerate(zip(ours, theirs)))
    bounds = BOUNDS[recorded["policy"]]
    good = outputs <= bounds[0] and loss <= bounds[1] and steps == STEPS and len(ours) == STEPS
    return good, f"outputs {outputs:.1e}, {STEPS} further steps {loss:.1e}, iterations {steps}"


def sharded_case(name, folder):
    """Weights and the optimizer's state as shards of the program."""
    source = os.path.join(FOLDER, name + ".trained.keras")
    if not os.path.exists(source):
        source = os.path.join(FOLDER, name + ".keras")
    index = os.path.join(folder, "w.weights.json")
    model, other = keras.models.load_model(source), keras.models.load_model(source)
    largest = max(np.asarray(v).nbytes for v in model.variables + model.optimizer.variables)
    run("convert", source, index, "--max-shard-size", repr(largest * 1.1 / 1024**3))
    for variable in other.variables + other.optimizer.variables:
        variable.assign(np.zeros(variable.shape, variable.dtype))
    other.load_weights(index)
    pairs = list(zip(model.variables + model.optimizer.variables,
                     other.variables + other.optimizer.variables))
    good = all(np.array_equal(a, b) for a, b in pairs)
    shards = len(glob.glob(os.path.join(folder, "w_*.weights.h5")))
    return good and shards > 1, f"{len(pairs)} variables in {shards} shards"


def main():
    failed = 0
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        name = os.path.basename(path)[: -len(".json")]
        if "float8" in name or name.endswith(".weights") or not re.search("optimizer-|sharded-", name):
            continue
        checks = [sharded_case] if "sharded-" in name else [trained_case, sharded_case]
        for check in checks:
            with tempfile.TemporaryDirectory() as folder:
                good, text = check(name, folder)
            failed += not good
            print(f"{'  ' if good else '! '}{name}, {check.__name__}: {text}", flush=True)
    sys.exit(failed > 0)


main()

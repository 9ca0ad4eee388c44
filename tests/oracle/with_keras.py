"""What the scripts share that compare the program with real Keras 3 on recorded models.

Their arguments are MIXTAPE, the program, and FOLDER with NAME.keras, .npz and .json, as
$MIXTAPE_REFERENCE_DIR/precision has them. Import this before keras: it keeps TensorFlow quiet and on the CPU.
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
        raise RuntimeError(f"{arguments[0]} {arguments[1]}: {result.stderr[-300:]}")


def train(model, data, examples, folder, *more):
    """The losses of STEPS steps of the program."""
    log = folder / "steps.jsonl"
    run("train", "--model", model, "--data", data, "--batch-size", examples, "--epochs", STEPS,
        "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log", log, *more)
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()]


def predict(model, data, examples, folder, *more):
    out = folder / "predictions.npz"
    run("predict", "--model", model, "--data", data, "--batch-size", examples, "--output", out,
        "--accumulate", "exact", *more)
    with np.load(out) as z:
        return z[z.files[0]]


def keras_losses(model, x, y):
    return [float(np.ravel(model.train_on_batch(x, y))[0]) for _ in range(STEPS)]


def keras_predictions(model, x):
    return np.asarray(model.predict(x, batch_size=len(x), verbose=0)).astype(np.float32)


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def loss_distance(ours, theirs):
    """Differences of weights add up from step to step."""
    return max(abs(a - b) / abs(b) / (i + 1) for i, (a, b) in enumerate(zip(ours, theirs, strict=True)))


def expect(name, what, got, bound):
    if not got <= bound:
        failures.append(f"{name}: {what} differ by {got:.2e}, which is more than {bound:.2e}")
    return f"{what} {got:.1e}"


def check_all(names, check):
    """check(name, its JSON, a folder) gives a line of text. Ends the process, with 1 after a failure."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            keras.backend.clear_session()
            try:
                recorded = json.loads((source / f"{name}.json").read_text())
                print(f"{name}: {check(name, recorded, pathlib.Path(folder))}", flush=True)
            except Exception as error:  # what the program or Keras refuses
                failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"keras {keras.__version__}: {len(names)} models, {len(failures)} failures")
    print("\n".join(failures))
    sys.exit(bool(failures) or not names)

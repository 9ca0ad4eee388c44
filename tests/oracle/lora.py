#!/usr/bin/env python3
"""Real Keras 3 loads what `mixtape train --lora-rank` and `mixtape convert --merge-lora` write, predicts the
same and trains on.

  lora.py MIXTAPE FOLDER

MIXTAPE is the program; FOLDER holds the recordings lora-NAME, as $MIXTAPE_REFERENCE_DIR/precision does. Each
model trains with LoRA, its adapter is saved and merged. Two files are then given to Keras: the one with LoRA,
whose a and b are zeros (row R12), and the merged one. Bounds are those of the recordings' README. Not part of
the tests: it needs TensorFlow and Keras. Exits with 1 if anything differs.
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
REFUSED_BY_KERAS = ("reversible_untied",)  # the file with LoRA, its own too (row R17)
NOT_IN_FILES = ("mha",)  # attention's config says nothing of its inner layers' LoRA: it comes back merged
program, source = sys.argv[1], pathlib.Path(sys.argv[2])
failures = []


def run(*arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{arguments[0]}: {result.stderr[-300:]}")


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


def expect(name, what, got, bound):
    if not got <= bound:
        failures.append(f"{name}: {what} differ by {got:.2e}, which is more than {bound:.2e}")
    return f"{what} {got:.1e}"


def bounds(recorded):
    """Of predictions and of losses."""
    if recorded["policy"] == "float32":
        return (5e-3, 2e-3) if recorded.get("mode") == "int8" else (1e-5, 1e-5)
    return (1e-2, 5e-3) if recorded["policy"] == "mixed_float16" else (5e-2, 2e-2)


def quantized(recorded, model, folder):
    mode = recorded.get("mode")
    if not mode:
        return model
    block = mode.split("block")[1] if "block" in mode else "-1"
    out = folder / "quantized.keras"
    run("quantize", model, out, "--mode", mode[:4], *(["--block-size", block] if mode[:4] == "int4" else []))
    return out


class Case:
    def __init__(self, name, recorded, folder):
        self.name, self.recorded, self.folder = name, recorded, folder
        self.data, self.rows = source / f"{name}.npz", recorded["examples"]
        self.base = quantized(recorded, source / f"{name}.keras", folder)
        self.outputs, self.losses = bounds(recorded)
        with np.load(self.data) as z:
            self.x, self.y = z["x"], z["y"]

    def train(self, model, *more):
        """The losses of STEPS steps here."""
        log = self.folder / "steps.jsonl"
        run("train", "--model", model, "--data", self.data, "--batch-size", self.rows, "--epochs", STEPS,
            "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log", log, *more)
        return [json.loads(line)["loss"] for line in open(log)]

    def predict(self, model, *more):
        out = self.folder / "p.npz"
        run("predict", "--model", model, "--data", self.data, "--batch-size", self.rows, "--output", out,
            "--accumulate", "exact", *more)
        with np.load(out) as z:
            return z[z.files[0]]

    def check(self, what, path, merged):
        """Keras loads the file, predicts the same and trains on with the same losses."""
        model = keras.models.load_model(path)
        parts = [v for v in model.weights if "lora" in v.path.rsplit("/", 1)[-1]]
        if bool(parts) == (merged or any(word in self.name for word in NOT_IN_FILES)):
            failures.append(f"{self.name}: {what}: Keras has {len(parts)} weights of LoRA")
        theirs = np.asarray(model.predict(self.x, batch_size=self.rows, verbose=0), np.float32)
        words = [expect(self.name, f"{what}: predictions", distance(self.predict(path), theirs),
                        self.outputs)]
        # A frozen model without biases has nothing that trains with a and b zeros.
        if any(np.prod(v.shape) for v in model.trainable_variables):
            here = self.train(path)
            there = [float(np.ravel(model.train_on_batch(self.x, self.y))[0]) for _ in range(STEPS)]
            words.append(expect(self.name, "losses", max(abs(a - b) / abs(b) / (i + 1)
                                                         for i, (a, b) in enumerate(zip(here, there))),
                                self.losses))
        return ", ".join(words)


def check(name, recorded, folder):
    case = Case(name, recorded, folder)
    with_lora, merged, adapter = folder / "lora.keras", folder / "merged.keras", folder / "adapter.npz"
    rank = recorded["rank"]
    case.train(case.base, "--lora-rank", rank, "--lora-alpha", recorded.get("alpha", rank), "--init-weights",
               source / f"{name}.init.npz", "--save", with_lora, "--save-lora", adapter)
    run("convert", case.base, merged, "--load-lora", adapter, "--merge-lora")
    words = []
    if not recorded.get("mode"):  # of integers, merging rounds the kernel
        words.append(expect(name, "adapter beside merged", distance(
            case.predict(case.base, "--load-lora", adapter), case.predict(merged)), case.outputs))
    if not any(word in name for word in REFUSED_BY_KERAS):
        words.append(case.check("with LoRA", with_lora, False))
    words.append(case.check("merged", merged, True))
    print(name + ":", "; ".join(words), flush=True)


files = sorted(source.glob("lora-*.json"))
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

#!/usr/bin/env python3
"""KerasHub loads what the program writes of its models: hub.py PROGRAM RECORDINGS [--only TEXT]

Needs Keras 3.15 on TensorFlow (CPU) and keras-hub 0.32. RECORDINGS is a folder of models recorded there:
NAME.keras, NAME.npz, NAME.json. Of each the program writes a .keras and a folder as it is, a task also after
training and after training with LoRA, a backbone also quantized to int8 and int4. KerasHub loads all,
predicts what was recorded or what the program predicts (1e-5 of the largest in float32, 1e-2 and 5e-2 in 16
bits), and a task trains on. Prints a line for each, and ends with 1 if one fails."""
import argparse
import glob
import json
import os
import subprocess
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import keras_hub
import numpy
import tensorflow

tensorflow.config.run_functions_eagerly(True)  # tracing would take longer than all steps
BOUNDS = {"float32": 1e-5, "mixed_float16": 1e-2, "mixed_bfloat16": 5e-2}
INTEGERS = ["int8", "int4"]


class Recording:
    """A model of KerasHub in a file, and what the program makes of it in a folder."""

    def __init__(self, program, stem, folder):
        self.program, self.stem, self.folder = program, stem, folder
        self.recorded, self.arrays = json.load(open(stem + ".json")), numpy.load(stem + ".npz")
        self.name, self.policy = os.path.basename(stem), self.recorded["policy"]
        self.is_task, inputs = "-task-" in self.name, self.recorded["inputs"]
        x = {name: self.arrays[f"x_{i}"] for i, name in enumerate(inputs)}
        self.x = x if len(x) > 1 else self.arrays["x_0"]

    def run(self, command, *arguments):
        done = subprocess.run([self.program, command, *arguments], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr.strip()[-300:]}")

    def at(self, name):
        return os.path.join(self.folder, name)

    def written(self):
        """What is written (a name that ends in / is a folder), what it predicts, the command."""
        yield "whole.keras", "whole", ["convert", self.stem + ".keras"]
        yield "whole/", "whole", ["convert", self.stem + ".keras"]
        if self.is_task:
            train = ["train", "--model", self.stem + ".keras", "--data", self.stem + ".npz", "--batch-size",
                     str(self.recorded["examples"]), "--verbose", "0"]
            yield "trained.keras", "made here", [*train, "--save"]
            yield "trained/", "made here", [*train, "--save"]
            yield "lora.keras", "made here", [*train, "--lora-rank", "2", "--save"]
        elif not self.policy.startswith("mixed"):
            for mode in INTEGERS:
                yield f"{mode}.keras", "made here", ["quantize", "--mode", mode, self.stem + ".keras"]

    def expected(self, kind, path):
        if kind == "whole":
            return [self.arrays[name] for name in self.arrays.files if name.startswith("predict_")]
        self.run("predict", "--model", path.rstrip("/"), "--data", self.stem + ".npz", "--batch-size",
                 str(self.recorded["examples"]), "--output", self.at("made.npz"))
        made = numpy.load(self.at("made.npz"))
        return [made[name] for name in (["y"] if "y" in made else [f"y_{i}" for i in range(len(made))])]

    def load(self, path):
        if not path.endswith("/"):
            return keras.models.load_model(path)
        keras.config.set_dtype_policy(self.policy)
        saved_class = getattr(keras_hub.models, self.recorded["class"])
        model = saved_class.from_preset(path.rstrip("/"), dtype=self.policy)
        keras.config.set_dtype_policy("float32")
        return model

    def distance(self, model, expected):
        made = model(self.x, training=False)
        made = [made[name] for name in sorted(made)] if isinstance(made, dict) else [made]
        assert len(made) == len(expected)
        return max(float(abs(numpy.asarray(y, numpy.float32) - wanted).max() / abs(wanted).max())
                   for y, wanted in zip(made, expected))

    def trains(self, model):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01), loss=loss)
        return numpy.isfinite([numpy.ravel(model.train_on_batch(self.x, self.arrays["y"]))[0]
                               for _ in range(2)]).all()

    def check(self, file, kind, command):
        try:
            path = self.at(file)
            self.run(*command, path)
            model = self.load(path)
            far = self.distance(model, self.expected(kind, path))
            good = far <= BOUNDS[self.policy] and (not self.is_task or self.trains(model))
            print(f"{self.name} {file}: off by {far:.1e}", "" if good else "FAILED", flush=True)
            return good
        except Exception as error:
            print(self.name, file, "FAILED", type(error).__name__, str(error)[:300], flush=True)
            return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recordings")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    good = []
    for path in sorted(glob.glob(os.path.join(given.recordings, "*.keras"))):
        if given.only in os.path.basename(path):
            with tempfile.TemporaryDirectory() as folder:
                recording = Recording(given.program, path[:-len(".keras")], folder)
                good += [recording.check(*row) for row in recording.written()]
    print(f"{sum(good)} of {len(good)} good")
    raise SystemExit(not good or not all(good))


main()

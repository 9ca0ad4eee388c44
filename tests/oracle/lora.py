#!/usr/bin/env python3
"""Real Keras 3 loads what `mixtape train --lora-rank` and `mixtape convert --merge-lora` write, predicts the
same and trains on.

  lora.py MIXTAPE FOLDER

MIXTAPE is the program; FOLDER holds the recordings lora-NAME, as $MIXTAPE_REFERENCE_DIR/precision does. Each
model trains with LoRA, its adapter is saved and merged. Two files are then given to Keras: the one with LoRA,
whose a and b are zeros (row R12), and the merged one. Bounds are those of the recordings' README. Not part of
the tests: it needs TensorFlow and Keras. Exits with 1 if anything differs.
"""
from with_keras import (check_all, distance, expect, failures, keras_losses, keras_predictions, loss_distance,
                        predict, run, source, train)
import keras
import numpy as np

REFUSED_BY_KERAS = ("reversible_untied",)  # the file with LoRA, its own too (row R17)
NOT_IN_FILES = ("mha",)  # attention's config says nothing of its inner layers' LoRA: it comes back merged


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
        return train(model, self.data, self.rows, self.folder, *more)

    def predict(self, model, *more):
        return predict(model, self.data, self.rows, self.folder, *more)

    def check(self, what, path, merged):
        """Keras loads the file, predicts the same and trains on with the same losses."""
        model = keras.models.load_model(path)
        parts = [v for v in model.weights if "lora" in v.path.rsplit("/", 1)[-1]]
        if bool(parts) == (merged or any(word in self.name for word in NOT_IN_FILES)):
            failures.append(f"{self.name}: {what}: Keras has {len(parts)} weights of LoRA")
        words = [expect(self.name, f"{what}: predictions",
                        distance(self.predict(path), keras_predictions(model, self.x)), self.outputs)]
        # A frozen model without biases has nothing that trains with a and b zeros.
        if any(np.prod(v.shape) for v in model.trainable_variables):
            words.append(expect(self.name, f"{what}: losses", loss_distance(
                self.train(path), keras_losses(model, self.x, self.y)), self.losses))
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
    return "; ".join(words)


check_all(sorted(path.stem for path in source.glob("lora-*.json")), check)

#!/usr/bin/env python3
"""KerasHub loads what the program writes of its models: hub.py PROGRAM RECORDINGS [--only TEXT]

Needs Keras 3.15 on TensorFlow (CPU) and keras-hub 0.32. RECORDINGS is a folder of models recorded there:
NAME.keras, NAME.npz, NAME.json. Each is converted by the program to a .keras and to a folder; both load in
KerasHub, predict what was recorded (1e-5 of the largest in float32, 1e-2 and 5e-2 in 16 bits), and a task
trains a step from there. Prints a line for each, and ends with 1 if one fails."""
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

BOUNDS = {"float32": 1e-5, "mixed_float16": 1e-2, "mixed_bfloat16": 5e-2}


def distance(model, recorded, arrays):
    inputs = recorded["inputs"]
    x = {name: arrays[f"x_{i}"] for i, name in enumerate(inputs)} if len(inputs) > 1 else arrays["x_0"]
    made = model.predict(x, batch_size=recorded["examples"], verbose=0)
    made = [made[name] for name in recorded["output_names"]] if isinstance(made, dict) else [made]
    return x, max(float(abs(y - arrays[f"predict_{i}"]).max() / abs(arrays[f"predict_{i}"]).max())
                  for i, y in enumerate(made))


def check(program, path, folder):
    name = os.path.basename(path)[:-len(".keras")]
    stem = path[:-len(".keras")]
    recorded, arrays = json.load(open(stem + ".json")), numpy.load(stem + ".npz")
    for kind in ["whole.keras", "preset/"]:
        command = [program, "convert", path, os.path.join(folder, kind)]
        subprocess.run(command, check=True, capture_output=True)
    models = [keras.models.load_model(os.path.join(folder, "whole.keras"))]
    keras.config.set_dtype_policy(recorded["policy"])
    is_task = "-task-" in name
    saved_class = getattr(keras_hub.models, recorded["class"])
    models.append(saved_class.from_preset(os.path.join(folder, "preset"), dtype=recorded["policy"]))
    keras.config.set_dtype_policy("float32")
    bound, worst, losses = BOUNDS[recorded["policy"]], 0, []
    for model in models:
        x, far = distance(model, recorded, arrays)
        worst = max(worst, far)
        if is_task:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01), loss=loss)
            losses.append([float(numpy.ravel(model.train_on_batch(x, arrays["y"]))[0]) for _ in range(2)])
    trains = all(numpy.isfinite(two).all() for two in losses)
    good = worst <= bound and trains
    print(f"{name}: off by {worst:.1e} of {bound:g}" + (f", trains: {losses[0]}" if losses else ""),
          "" if good else "FAILED", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recordings")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    good = True
    for path in sorted(glob.glob(os.path.join(given.recordings, "*.keras"))):
        if given.only in os.path.basename(path):
            with tempfile.TemporaryDirectory() as folder:
                good &= check(given.program, path, folder)
    raise SystemExit(not good)


main()

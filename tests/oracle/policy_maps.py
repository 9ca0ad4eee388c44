#!/usr/bin/env python3
"""Real Keras loads files with policies by layer that `mixtape` wrote, predicts, and trains on.

  policy_maps.py MIXTAPE FOLDER

FOLDER is $MIXTAPE_REFERENCE_DIR/precision. Each of its cases map-* is converted with its map; Keras loads
the file, finds at each layer the policy that its own file has there, predicts exactly what it predicts with
its own file, and trains with the recorded losses (bound: 3e-2 times the step). The guide's model is trained
under a map and saved; Keras predicts what the program predicts (bound: 5e-2 of the largest output), and
trains on. Cases whose mode the program does not compute in are printed. Not part of the tests: it needs
Keras 3 with TensorFlow. Exits with 1 if anything differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy

failures = 0


def check(name, what, good, detail=""):
    global failures
    failures += not good
    print(f"{name}: {what}: {'ok' if good else 'DIFFERS'} {detail}".rstrip(), flush=True)


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True)


def layers_of(model):
    return [
        (type(l).__name__, l.name, l.path, l.dtype_policy.name, l.compute_dtype, l.variable_dtype)
        for l in model._flatten_layers(recursive=True, include_self=False)
        if l.path  # others have names that Keras counted
    ]


def load(path):
    keras.utils.clear_session()
    return keras.models.load_model(path)


def relative(got, expected):
    return float(numpy.abs(got - expected).max() / numpy.abs(expected).max())


def check_case(program, folder, name, out):
    converted = run(program, "convert", folder / f"{name}.keras", out, "--policy-map",
                    folder / f"{name}.policy-map.json")
    if converted.returncode:
        told = "do not compute in the mode" in converted.stderr
        check(name, "refused", told, converted.stderr.strip())
        return
    recorded = json.loads((folder / f"{name}.json").read_text())
    arrays = numpy.load(folder / f"{name}.npz")
    ours, theirs = load(out), load(folder / f"{name}.after.keras")
    check(name, "layers", layers_of(ours) == layers_of(theirs))
    x, y = arrays["x"], arrays["y"]
    made = numpy.asarray(ours.predict(x, verbose=0), "float32")
    check(name, "predicts", (made == numpy.asarray(theirs.predict(x, verbose=0), "float32")).all())
    for step, expected in enumerate(recorded["losses"], 1):
        loss = float(numpy.ravel(ours.train_on_batch(x, y))[0])
        off = abs(loss - expected) / abs(expected)
        check(name, f"loss {step}", off <= 3e-2 * step, f"{off:.1e}")


GUIDE_MAP = {
    "default_policy": "float32",
    "policy_map": {"dense_1": "mixed_bfloat16", "dense_[23]": "mixed_float16"},
}


def check_guide(program, folder):
    name, map_file = "guide", folder / "guide-map.json"
    map_file.write_text(json.dumps(GUIDE_MAP))
    random = numpy.random.default_rng(1)
    x, y = random.random((64, 784), "float32"), random.integers(0, 10, (64, 1))
    numpy.savez(folder / "data.npz", x=x, y=y)
    saved = folder / "guide.keras"
    common = ("--data", folder / "data.npz", "--policy-map", map_file, "--units", "8")
    trained = run(program, "train", *common, "--optimizer", "adam", "--save", saved, "--verbose", "0")
    check(name, "trains", trained.returncode == 0, trained.stderr.strip())
    predicted = run(program, "predict", "--model", saved, "--data", folder / "data.npz", "--output",
                    folder / "p.npz")
    check(name, "is predicted with", predicted.returncode == 0, predicted.stderr.strip())
    model = load(saved)
    ours = numpy.load(folder / "p.npz")
    off = relative(ours[ours.files[0]], numpy.asarray(model.predict(x, verbose=0), "float32"))
    check(name, "predicts", off <= 5e-2, f"{off:.1e}")
    losses = [float(numpy.ravel(model.train_on_batch(x, y))[0]) for _ in range(20)]
    check(name, "trains on", losses[-1] < losses[0], f"{losses[0]:.3f} to {losses[-1]:.3f}")


def main():
    program, reference = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for file in sorted(reference.glob("map-*.policy-map.json")):
            check_case(program, reference, file.name.removesuffix(".policy-map.json"), folder / "out.keras")
        check_guide(program, folder)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Real Keras loads what `mixtape convert` writes, predicts, and trains on.

  converted.py [--only PATTERN] keras3|tf_keras MIXTAPE FOLDER...
  converted.py --other [--only PATTERN] keras3|tf_keras MIXTAPE FOLDER...

MIXTAPE is the program; the folders hold NAME.keras with NAME.npz (x, y, predict_0, ...; losses in NAME.json,
or keras_losses), as $MIXTAPE_REFERENCE_DIR/models does and tests/saving/files/*.zip unpacked; models of the
other generation are left out. Each model that the program can read is converted to the four kinds of files,
and for each Keras, under its default global policy,

  loads the file (weights alone into the model of the .keras, after its weights were set to zero),
  predicts exactly what it predicts with the file that Keras itself wrote, and within the bounds what was
  recorded,
  has the same optimizer state as after loading its own file, unless the policy wrapped the optimizer,
  trains on with the recorded losses.

--other takes the models of the other generation, converted to .keras and .h5 with --semantics: Keras loads
them, predicts what was recorded within the bounds, and trains on with the recorded losses. What the program
refuses is printed and no failure, if the message names what Keras lacks. Where it warns that Keras begins the
optimizer's state anew, or does not train on, Keras must do so, and where it warns of another rule or option,
the first loss alone is compared.

Keras 3 does not train on with the optimizer of any .h5 (it builds it without variables), and tf_keras not
with the state of a LossScaleOptimizerV3, whose set_weights finds it unbuilt. tf_keras keeps no loss scale in
a file. Small files come first: the last few, of whole networks, take as long as all others together.
--only takes those whose whole name the pattern matches, so that several processes can share the work. Not
part of the tests: it needs TensorFlow, Keras and tf_keras. Exits with 1 if anything differs.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--other", action="store_true")
parser.add_argument("--only", type=re.compile, default=re.compile(".*"))
parser.add_argument("generation", choices=("keras3", "tf_keras"))
parser.add_argument("program")
parser.add_argument("folders", type=pathlib.Path, nargs="+")
options = parser.parse_args()
other, generation, program = options.other, options.generation, options.program
new = generation == "keras3"
if new:
    import keras
else:
    import tf_keras as keras
failures = []
# tf_keras loads no file with SpectralNormalization, its own included: it knows neither name nor inner layer
unread = [] if new else ["k3-spectral-normalization"]


def is_ours(path):
    with zipfile.ZipFile(path) as archive:
        version = json.loads(archive.read("metadata.json"))["keras_version"]
    return version.startswith("3") == (new != other)


def run_convert(*arguments):
    """(the error or "", the warnings)"""
    run = subprocess.run([program, "convert", *map(str, arguments)], capture_output=True, text=True)
    said = run.stderr.strip()
    return ("", said) if run.returncode == 0 else (said, "")


def convert(*arguments):
    return run_convert(*arguments)[0]


def refused(error):
    """The line that names what Keras lacks; else ""."""
    last = error.splitlines()[-1] if error else ""
    lacks = [f": {generation} has no ", f": {generation} computes ", f", which {generation} passes on by "]
    return last if "NotImplementedError" in last and any(text in last for text in lacks) else ""


class Case:
    def __init__(self, path):
        self.name, self.path = path.stem, path
        self.arrays = np.load(path.with_suffix(".npz"))
        record = path.with_suffix(".json")
        self.record = json.loads(record.read_text()) if record.exists() else {}
        self.losses = self.record.get("losses", self.arrays.get("keras_losses", np.array([])))
        self.legacy_losses = self.arrays.get("h5_losses", self.losses)
        self.resets = not record.exists()  # as the recorder did
        with zipfile.ZipFile(path) as archive:
            config = archive.read("config.json").decode()
        self.bounds = ((1e-2, 2e-2) if '"mixed_float16"' in config else
                       (5e-2, 1e-1) if "bfloat16" in config else
                       (5e-4, 2e-3) if path.stem[3:4].isupper() else (1e-5, 1e-5))

    def data(self, stem):
        if stem in self.arrays:
            return self.arrays[stem]
        items = []
        while f"{stem}_{len(items)}" in self.arrays:
            items.append(self.arrays[f"{stem}_{len(items)}"])
        return items[0] if len(items) == 1 else items

    def predict(self, model):
        x = self.data("x")
        examples = len(x[0] if isinstance(x, list) else x)
        made = model.predict(x, batch_size=examples, verbose=0)
        made = made if isinstance(made, (list, tuple)) else [made]
        return [np.asarray(a).astype("float32") for a in made]

    def train(self, model, steps):
        losses = []
        for _ in range(steps):
            if self.resets:
                model.reset_metrics()
            made = model.train_on_batch(self.data("x"), self.data("y"))
            losses.append(float(made[0] if isinstance(made, (list, tuple)) else made))
        return losses


def state_of(model):
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return []
    variables = optimizer.variables
    return [np.asarray(v, "float64") for v in (variables() if callable(variables) else variables)]


def same(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and np.array_equal(x, y, equal_nan=True)
                                    for x, y in zip(a, b))


def off(a, b):
    return float(np.max(np.abs(a - b), initial=0)) / max(float(np.max(np.abs(b), initial=0)), 1e-30)


def check(case, what, good, detail=""):
    if not good:
        failures.append(f"{case.name} {what}: {detail}")
        print("FAILED", failures[-1], flush=True)


def check_predictions(case, what, model, own):
    made, recorded = case.predict(model), case.data("predict")
    recorded = recorded if isinstance(recorded, list) else [recorded]
    check(case, what, same(made, own), "predicts other bits than the file of Keras")
    for a, b in zip(made, recorded):
        check(case, what, off(a, b) <= case.bounds[0], f"is off by {off(a, b)}")


def check_training(case, what, model):
    losses = case.legacy_losses if what == ".h5" else case.losses
    made = case.train(model, len(losses))
    for i, (a, b) in enumerate(zip(made, losses)):
        check(case, what, abs(a - b) <= case.bounds[1] * (i + 1) * abs(b), f"loss {i + 1} is {a}, not {b}")


def check_whole(case, file, own, predictions, policy_wraps):
    what = file.suffix
    legacy = what == ".h5"
    model = keras.models.load_model(file)
    check_predictions(case, what, model, predictions)
    if own.optimizer is None or model.optimizer is None:
        return check(case, what, own.optimizer is None and model.optimizer is None, "is compiled or not")
    if legacy and new:
        return
    if legacy:
        path = case.path.with_suffix(".h5")
        own = keras.models.load_model(path) if path.exists() else None
    if own is not None and not policy_wraps:
        check(case, what, same(state_of(model), state_of(own)), "has another state of the optimizer")
        check(case, what, type(model.optimizer) is type(own.optimizer),
              f"has a {type(model.optimizer).__name__}")
    check_training(case, what, model)


def check_weights(case, file, predictions):
    model = keras.models.load_model(case.path)
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    if file.suffix == ".npz":
        arrays = np.load(file)
        model.set_weights([arrays[name] for name in arrays.files])
    else:
        model.load_weights(file)
    check_predictions(case, ".npz" if file.suffix == ".npz" else ".weights.h5", model, predictions)


def keras_reads_its_own(model, folder):
    file = folder / "own.h5"
    model.save(file)
    try:
        keras.models.load_model(file, compile=False)
        return True
    except Exception:
        return False


def check_case(case, folder):
    own = keras.models.load_model(case.path)
    predictions = case.predict(own)
    policy_wraps = case.record.get("policy") == "mixed_float16" or case.name == "policies"
    for kind in "keras", "h5", "weights.h5", "npz":
        file = folder / f"{case.name}.{kind}"
        legacy = case.path.with_suffix(".h5")
        error = convert(legacy if kind == "h5" and legacy.exists() else case.path, file)
        check(case, kind, not error, error)
        if error:
            continue
        try:
            if kind in ("keras", "h5"):
                check_whole(case, file, own, predictions, policy_wraps)
            else:
                check_weights(case, file, predictions)
        except Exception as error:
            if kind == "h5" and not keras_reads_its_own(own, folder):
                print("left out:", case.name, "whose own .h5 Keras does not read either")
                continue
            check(case, kind, False, f"{type(error).__name__}: {str(error)[:300]}")
        file.unlink()


def is_anew(optimizer):
    """No slot has a value, or there are none."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    variables = inner.variables
    slots = [np.asarray(v) for v in (variables() if callable(variables) else variables) if np.ndim(v)]
    return not any(np.any(slot) for slot in slots)


def trains(case, model):
    try:
        case.train(model, 1)
        return True
    except ValueError as error:
        assert "Unknown variable" in str(error), error
        return False


def check_training_of_other(case, kind, model, said):
    again, anew = " does not train on from " in said, " anew when it loads " in said
    if again:
        check(case, kind, not trains(case, model), "trains, which is said to need a compile")
    if again or anew:
        return check(case, kind, is_anew(model.optimizer), "goes on with the state that is said to be lost")
    changed = " trains on by another rule " in said or " is ignored" in said
    losses = case.losses[:1] if changed else case.losses
    for i, (a, b) in enumerate(zip(case.train(model, len(losses)), losses)):
        good = abs(a - b) <= 2 * case.bounds[1] * (i + 1) * abs(b)
        check(case, kind, good, f"loss {i + 1} is {a}, not {b}")


def check_other(case, folder):
    """False: the program refuses the model."""
    model = None
    for kind in "keras", "h5":
        file = folder / f"{case.name}.{kind}"
        error, said = run_convert(case.path, file, "--semantics", generation)
        if refused(error):
            print("refused:", case.name, refused(error))
            return False
        check(case, kind, not error, error)
        if error:
            continue
        try:
            model = keras.models.load_model(file)
            made, recorded = case.predict(model), case.data("predict")
            recorded = recorded if isinstance(recorded, list) else [recorded]
            for a, b in zip(made, recorded):
                check(case, kind, off(a, b) <= case.bounds[0], f"is off by {off(a, b)}")
            if len(case.losses) and model.optimizer:
                check_training_of_other(case, kind, model, said)
        except Exception as error:
            if kind == "h5" and model and not keras_reads_its_own(model, folder):
                print("left out:", case.name, "whose own .h5 Keras does not read either")
                continue
            check(case, kind, False, f"{type(error).__name__}: {str(error)[:300]}")
        file.unlink()
    return True


def main():
    paths = [path for folder in options.folders for path in folder.glob("*.keras")
             if options.only.fullmatch(path.stem) and is_ours(path)]
    paths.sort(key=lambda path: (path.stat().st_size, path))
    missing, checked = 0, 0
    with tempfile.TemporaryDirectory() as name:
        for path in paths:
            began = time.monotonic()
            error = convert(path, pathlib.Path(name) / "probe.npz")
            if "there is no built-in layer class" in error:
                missing += 1
                continue
            keras.backend.clear_session()
            if other and path.stem in unread:
                print("left out:", path.stem, "whose layers Keras reads from no file")
                missing += 1
                continue
            if other and not check_other(Case(path), pathlib.Path(name)):
                missing += 1
                continue
            if not other:
                check_case(Case(path), pathlib.Path(name))
            checked += 1
            print("checked", path.stem, f"{time.monotonic() - began:.0f} s", flush=True)
    kinds, place = ("two", "there") if other else ("four", "here")
    print(f"{generation}: {checked} models checked in {kinds} kinds of files, {missing} have layers that are "
          f"missing {place}, {len(failures)} failures")
    sys.exit(bool(failures))


main()

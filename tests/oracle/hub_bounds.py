#!/usr/bin/env python3
"""Recorded models of KerasHub through the program: hub_bounds.py PROGRAM RECORDINGS...

Needs numpy; --device D and --only TEXT choose. RECORDINGS are folders of NAME.keras, NAME.npz, NAME.json, as
hub_options.py and shared/reference/hub have them. Each model predicts and, where losses are recorded and
nothing is dropped, trains the recorded steps; the bounds are the README's, relative to the largest magnitude.
Ends with 1 if one is further off. A gradient near the largest float16 may overflow in TensorFlow, which sums
in float16, and not here: then the loss scales differ."""
import argparse
import glob
import json
import os
import subprocess
import tempfile

import numpy

# of outputs, and of losses times the step
BOUNDS = {"float32": (1e-5, 1e-5), "mixed_float16": (1e-2, 5e-3), "mixed_bfloat16": (5e-2, 2e-2)}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])


def distance(arrays, path):
    made = numpy.load(path)
    names = ["y"] if "y" in made else [f"y_{i}" for i in range(len(made.files))]
    assert len(names) == sum(name.startswith("predict_") for name in arrays.files)
    return max(apart(made[name].astype(numpy.float32), arrays[f"predict_{i}"])
               for i, name in enumerate(names))


def apart(made, wanted):
    """Relative to the largest magnitude; NaN is where NaN is wanted, or is infinitely far."""
    finite = numpy.isfinite(wanted)
    if made.shape != wanted.shape or not numpy.array_equal(numpy.isfinite(made), finite):
        return numpy.inf
    made, wanted = numpy.extract(finite, made), numpy.extract(finite, wanted)
    return float(abs(made - wanted).max() / (abs(wanted).max() or 1)) if made.size else 0.0


def trains_alike(program, stem, recorded, options, folder, bound):
    log = os.path.join(folder, "steps.jsonl")
    run(program, "train", "--model", stem + ".keras", "--data", stem + ".npz", "--no-shuffle", "--epochs",
        str(max(1, len(recorded["losses"]))), "--accumulate", "exact", "--step-log", log, "--verbose", "0",
        *options)
    steps = [json.loads(line) for line in open(log)]
    losses = [float(step["loss"]) for step in steps if "loss" in step]
    if recorded.get("dropout"):
        finite = numpy.isfinite(recorded["losses"]).all()
        return 0 if numpy.isfinite(losses).all() == finite else numpy.inf
    assert len(losses) == len(recorded["losses"])
    scales = [step["loss_scale"] for step in steps if "loss_scale" in step]
    if "loss_scale" in recorded and scales and scales[-1] != recorded["loss_scale"]:
        raise RuntimeError(f"the loss scale is {scales[-1]}, recorded {recorded['loss_scale']}")
    return max(apart(numpy.array([a]), numpy.array([b])) / (i + 1)
               for i, (a, b) in enumerate(zip(losses, recorded["losses"])))


def check(program, stem, device):
    recorded, arrays = json.load(open(stem + ".json")), numpy.load(stem + ".npz")
    outputs, losses = BOUNDS[recorded["policy"]]
    options = ["--batch-size", str(recorded["examples"]), *(["--device", device] if device else [])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = os.path.join(folder, "made.npz")
            run(program, "predict", "--model", stem + ".keras", "--data", stem + ".npz", "--output", made,
                *options)
            far, worse = distance(arrays, made), None
            if recorded["losses"]:
                worse = trains_alike(program, stem, recorded, options, folder, losses)
        except (RuntimeError, AssertionError) as error:
            print(os.path.basename(stem), "FAILED", error, flush=True)
            return False
    good = far <= outputs and (worse is None or worse <= losses)
    print(f"{os.path.basename(stem)}: off by {far:.1e} of {outputs:g}" +
          ("" if worse is None else f", losses by {worse:.1e} of {losses:g}"), "" if good else "FAILED",
          flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--device", default="")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    stems = [path[:-len(".keras")] for folder in given.recordings
             for path in sorted(glob.glob(os.path.join(folder, "*.keras")))]
    good = [check(given.program, stem, given.device) for stem in stems
            if given.only in os.path.basename(stem)]
    print(f"{sum(good)} of {len(good)} within the bounds")
    raise SystemExit(not good or not all(good))


main()

#!/usr/bin/env python3
"""How far Keras is from itself in 16 bits: writes spread_16_bits.json, beside this file.

    PYTHONPATH=FOLDER_OF_TF_KERAS record_spread.py WORK_FOLDER      (MIXTAPE_REFERENCE_DIR is set)

Trains each 16-bit case of cases.json again (tf_keras 2.21, Keras 3.15, TensorFlow 2.21 on a CPU), once as
recorded and once with TensorFlow's other kernels and one thread, by the record.py of the reference.
"accuracy_first_10" and "accuracy": the largest difference from the record, absolute, in the first ten steps
and in all. "loss_first_10" and "loss": the same of the losses, relative, for cases that spread.json has not.
"weights": for each final array, the largest difference from the record, divided by the largest element.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

REFERENCE = pathlib.Path(os.environ["MIXTAPE_REFERENCE_DIR"])
OTHER = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1",
         "OMP_NUM_THREADS": "1"}


def train(case, folder, environment):
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / case["data"]).exists():
        (folder / case["data"]).symlink_to(REFERENCE / case["data"])
    if not (folder / (case["name"] + ".json")).exists():
        command = [sys.executable, REFERENCE / "record.py", "--one", json.dumps(case), folder]
        subprocess.run(command, env={**os.environ, **environment}, check=True)


def values(folder, case, what):
    steps = json.loads((folder / (case["name"] + ".json")).read_text())["steps"]
    return [float(step[what]) for step in steps] if isinstance(steps, list) else []


def largest(what, distance, folders, case):
    """By the number of steps: in the first ten, and in all. Empty: a history of fit."""
    recorded = values(REFERENCE, case, what)
    pairs = [zip(recorded, values(folder, case, what)) for folder in folders]
    by_step = [max(row) for row in zip(*([distance(a, b) for a, b in pair] for pair in pairs))]
    return {f"{what}_first_10": max(by_step[:10]), what: max(by_step)} if by_step else {}


def distances(folder, case):
    name = case["name"] + ".final.npz"
    with np.load(REFERENCE / name) as a, np.load(folder / name) as b:
        pairs = [(a[f"arr_{i}"], b[f"arr_{i}"]) for i in range(len(a.files))]
    return [float(np.max(np.abs(x - y)) / np.max(np.abs(x))) for x, y in pairs if np.isfinite(x).all()]


def spread(case, folders, with_losses):
    found = {"weights": [max(row) for row in zip(*(distances(folder, case) for folder in folders))]}
    found.update(largest("accuracy", lambda a, b: abs(a - b), folders, case))
    if with_losses:
        found.update(largest("loss", lambda a, b: abs(a - b) / abs(a), folders, case))
    return found


def main():
    work = pathlib.Path(sys.argv[1])
    cases = json.loads((REFERENCE / "cases.json").read_text())
    theirs = json.loads((REFERENCE / "spread.json").read_text())
    result = {}
    for case in (c for c in cases if c["policy"] not in ("float32", "float64")):
        folders = {work / "a": {}, work / "b": OTHER}
        for folder, environment in folders.items():
            train(case, folder, environment)
        result[case["name"]] = spread(case, folders, case["name"] not in theirs)
    target = pathlib.Path(__file__).with_name("spread_16_bits.json")
    target.write_text(json.dumps(result, indent=1) + "\n")


main()

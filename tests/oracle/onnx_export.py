#!/usr/bin/env python3
"""Exports every recorded model file to ONNX, checks the file, and runs it in onnxruntime.

  onnx_export.py MIXTAPE MODELS [NAME...] [--jobs N] [--options "--opset 20"]

MIXTAPE: the program. MODELS: the folder of recorded models (its README has the bounds). Needs numpy, onnx
and onnxruntime. A model in bfloat16, of which onnxruntime's CPU has few kernels, is also exported with
--widen, and that file runs; the other one is checked alone. Ends with how many were exported and agreed;
fails where one that was exported is wrong, or where more than MAX_REFUSED are not.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

MAX_REFUSED = 0
APPLICATIONS = ("ResNet50", "MobileNetV2", "DenseNet121", "EfficientNetB0")


def bound_of(name, policy):
    if name.split("-", 1)[1] in APPLICATIONS:
        return 5e-4
    return {"mixed_float16": 1e-2, "mixed_bfloat16": 5e-2}.get(policy, 1e-5)


def convert(program, source, target, *options):
    run = subprocess.run([program, "convert", source, target, *options], capture_output=True, text=True)
    return run.stderr.strip() if run.returncode else None


def difference(file, data):
    """The largest one of all outputs, relative to the largest magnitude of its array."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    arrays = [data["x"]] if "x" in data else [data[f"x_{i}"] for i in range(len(inputs))]
    types = {"tensor(float)": "float32", "tensor(int32)": "int32", "tensor(int64)": "int64",
             "tensor(float16)": "float16"}
    worst = 0.0
    for rows in (len(arrays[0]), 1):  # the batch is free
        given = {i.name: a[:rows].astype(types[i.type]) for i, a in zip(inputs, arrays)}
        for number, result in enumerate(session.run(None, given)):
            expected = data[f"predict_{number}"].astype("float64")
            if result.shape != expected[:rows].shape:
                return f"output {number} has shape {result.shape}; expected {expected[:rows].shape}"
            largest = max(numpy.abs(expected).max(), 1e-30)
            apart = numpy.abs(result.astype("float64") - expected[:rows]).max() / largest
            worst = max(worst, apart if numpy.isfinite(apart) else numpy.inf)
    return worst


def check(program, folder, name, options):
    facts = json.loads((folder / f"{name}.json").read_text())
    policy = facts.get("policy", "float32")
    data = numpy.load(folder / f"{name}.npz")
    with tempfile.TemporaryDirectory() as place:
        file = f"{place}/model.onnx"
        refused = convert(program, str(folder / f"{name}.keras"), file, *options)
        if refused:
            return name, "refused", refused
        try:
            onnx.checker.check_model(file, full_check=True)
            if policy == "mixed_bfloat16":
                refused = convert(program, str(folder / f"{name}.keras"), file, "--widen", *options)
                if refused:
                    return name, "wrong", refused
                onnx.checker.check_model(file, full_check=True)
            apart = difference(file, data)
        except Exception as error:  # pylint: disable=broad-except
            return name, "wrong", str(error).replace("\n", " ")[:600]
    if isinstance(apart, str):
        return name, "wrong", apart
    bound = bound_of(name, policy)
    return name, "agrees" if apart <= bound else "wrong", f"{apart:.2g} (bound {bound:g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--options", default="")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    names = given.names or sorted(path.stem for path in given.models.glob("*.keras"))
    counts = {"agrees": 0, "refused": 0, "wrong": 0}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        tasks = [pool.submit(check, given.program, given.models, name, given.options.split())
                 for name in names]
        for task in tasks:
            name, outcome, text = task.result()
            counts[outcome] += 1
            if given.verbose or outcome != "agrees":
                print(f"{name}: {outcome}: {text}", flush=True)
    print(f"{counts['agrees']} agree, {counts['refused']} not exported, {counts['wrong']} wrong")
    return 1 if counts["wrong"] or counts["refused"] > MAX_REFUSED or not counts["agrees"] else 0


if __name__ == "__main__":
    sys.exit(main())

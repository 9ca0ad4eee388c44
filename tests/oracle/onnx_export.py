#!/usr/bin/env python3
"""Exports every recorded model file to ONNX, checks the file, and runs it in onnxruntime.

  onnx_export.py MIXTAPE MODELS [NAME...] [--jobs N] [--options "--opset 20"] [--batch N] [--after]

MIXTAPE: the program. MODELS: the folder of recorded models (its README has the bounds). Needs numpy, onnx
and onnxruntime. A model in bfloat16, of which onnxruntime's CPU has few kernels, is also exported with
--widen, and that file runs; the other one is checked alone. --batch exports for
that many examples, as $MIXTAPE_REFERENCE_DIR/ops wants; --after takes NAME.after.keras and its predictions,
as in $MIXTAPE_REFERENCE_DIR/precision. Ends with how many were exported and agreed;
fails where one that was exported is wrong, or where more than MAX_REFUSED are not.
"""
import concurrent.futures
import json
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx_comparison import parser_of_recordings

MAX_REFUSED = 0
APPLICATIONS = ("ResNet50", "MobileNetV2", "DenseNet121", "EfficientNetB0")


def bound_of(name, policy):
    if name.split("-", 1)[1] in APPLICATIONS:
        return 5e-4
    if name.startswith("float8") and "bfloat16" in policy:
        return 1.6e-1  # twice the bound of a recording: the widened file rounds other numbers to float8
    return 5e-2 if "bfloat16" in policy else 1e-2 if "float16" in policy else 1e-5


def has_bfloat16(file):
    graph = onnx.load(file).graph
    bfloat16 = onnx.TensorProto.BFLOAT16
    casts = (attribute.i for node in graph.node if node.op_type == "Cast" for attribute in node.attribute)
    return bfloat16 in casts or any(tensor.data_type == bfloat16 for tensor in graph.initializer)


def convert(program, source, target, *options):
    run = subprocess.run([program, "convert", source, target, *options], capture_output=True, text=True)
    return run.stderr.strip() if run.returncode else None


def apart(result, expected, rows):
    """Relative to the largest magnitude; infinity where NaN and infinities are in other places."""
    finite = numpy.isfinite(expected)
    largest = max(numpy.abs(expected[finite]).max(initial=0), 1e-30)
    expected, finite = expected[:rows], finite[:rows]
    if not numpy.array_equal(result[~finite], expected[~finite], equal_nan=True):
        return numpy.inf
    difference = numpy.abs(result - expected)[finite].max(initial=0) / largest
    return difference if numpy.isfinite(difference) else numpy.inf


def difference(file, data, predicted):
    """The largest one of all outputs, relative to the largest magnitude of its array."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    arrays = [data["x"]] if "x" in data else [data[f"x_{i}"] for i in range(len(inputs))]
    types = {"tensor(float)": "float32", "tensor(double)": "float64"}
    worst = 0.0
    free = isinstance(inputs[0].shape[0], str)
    for rows in (len(arrays[0]), 1) if free else (len(arrays[0]),):
        given = {i.name: a[:rows].astype(types.get(i.type) or i.type[len("tensor("):-1])
                 for i, a in zip(inputs, arrays)}
        for number, result in enumerate(session.run(None, given)):
            expected = numpy.atleast_1d(data[f"{predicted}_{number}"].astype("float64"))
            result = numpy.atleast_1d(result)
            if result.shape != expected[:rows].shape:
                return f"output {number} has shape {result.shape}; expected {expected[:rows].shape}"
            worst = max(worst, apart(result.astype("float64"), expected, rows))
    return worst


def check(program, folder, name, given):
    options = given.options.split() + (["--batch", str(given.batch)] if given.batch else [])
    source = str(folder / f"{name}{'.after' if given.after else ''}.keras")
    facts = json.loads((folder / f"{name}.json").read_text())
    policy = facts.get("policy", "float32")
    data = numpy.load(folder / f"{name}.npz")
    with tempfile.TemporaryDirectory() as place:
        file = f"{place}/model.onnx"
        refused = convert(program, source, file, *options)
        if refused:
            return name, "refused", refused
        try:
            onnx.checker.check_model(file, full_check=True)
            if has_bfloat16(file):
                policy = "mixed_bfloat16"
                refused = convert(program, source, file, "--widen", *options)
                if refused:
                    return name, "wrong", refused
                onnx.checker.check_model(file, full_check=True)
            found = difference(file, data, "after" if given.after else "predict")
        except Exception as error:  # pylint: disable=broad-except
            return name, "wrong", str(error).replace("\n", " ")[:600]
    if isinstance(found, str):
        return name, "wrong", found
    bound = bound_of(name, policy)
    return name, "agrees" if found <= bound else "wrong", f"{found:.2g} (bound {bound:g})"


def main():
    parser = parser_of_recordings(__doc__)
    parser.add_argument("--options", default="")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--after", action="store_true")
    given = parser.parse_args()
    end = ".after.keras" if given.after else ".keras"
    found = sorted(path.name[:-len(end)] for path in given.models.glob(f"*{end}"))
    names = given.names or [name for name in found if (given.models / f"{name}.npz").exists()]
    counts = {"agrees": 0, "refused": 0, "wrong": 0}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        tasks = [pool.submit(check, given.program, given.models, name, given) for name in names]
        for task in tasks:
            name, outcome, text = task.result()
            counts[outcome] += 1
            if given.verbose or outcome != "agrees":
                print(f"{name}: {outcome}: {text}", flush=True)
    print(f"{counts['agrees']} agree, {counts['refused']} not exported, {counts['wrong']} wrong")
    return 1 if counts["wrong"] or counts["refused"] > MAX_REFUSED or not counts["agrees"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every recorded model file to ONNX and back: do both predict the same?

  onnx_round_trip.py MIXTAPE MODELS [NAME...] [--jobs N] [--part I/N] [--verbose]

MIXTAPE: the program. MODELS: the folder of recorded models. Each NAME.keras is converted to ONNX, that to
.keras, and both .keras files predict the recorded inputs. Ends with how many have the same bits, differ by at
most the bound of their dtype, differ by more, and are refused; fails where one differs by more or is refused.
The bound is 1e-6 of the largest magnitude of an array in float32, and in 16 bits, where a sum in another
order may round to the next number, two units of its last place. Needs numpy alone.
"""
import concurrent.futures
import json
import subprocess
import sys
import tempfile

import numpy
from onnx_comparison import parser_of_recordings


def bound_of(policy):
    return 2.0**-6 if "bfloat16" in policy else 2.0**-9 if "float16" in policy else 1e-6


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().replace("\n", " ")[-500:])


def apart(result, expected):
    """Relative to the largest magnitude; infinity where NaN and infinities are in other places."""
    if result.shape != expected.shape:
        return numpy.inf
    result, expected = result.astype("float64"), expected.astype("float64")
    finite = numpy.isfinite(expected)
    if not numpy.array_equal(result[~finite], expected[~finite], equal_nan=True):
        return numpy.inf
    largest = max(numpy.abs(expected[finite]).max(initial=0), 1e-30)
    difference = numpy.abs(result - expected)[finite].max(initial=0) / largest
    return difference if numpy.isfinite(difference) else numpy.inf


def check(program, folder, name):
    facts = json.loads((folder / f"{name}.json").read_text())
    policy = facts.get("policy", "float32")
    source, data = folder / f"{name}.keras", folder / f"{name}.npz"
    rows = [len(array) for key, array in numpy.load(data).items() if key in ("x", "x_0")][0]
    with tempfile.TemporaryDirectory() as place:
        graph, again = f"{place}/model.onnx", f"{place}/again.keras"
        outputs = [f"{place}/{i}.npz" for i in range(2)]
        try:
            run(program, "convert", source, graph)
            run(program, "convert", graph, again)
            for model, output in zip((source, again), outputs):
                run(program, "predict", "--model", model, "--data", data, "--batch-size", rows, "--output",
                    output)
        except RuntimeError as error:
            return name, "refused", str(error)
        first, second = (list(numpy.load(output).values()) for output in outputs)
    if len(first) != len(second):
        return name, "above", f"{len(second)} outputs instead of {len(first)}"
    worst = max((apart(b, a) for a, b in zip(first, second)), default=numpy.inf)
    kind = "equal" if worst == 0 else "within" if worst <= bound_of(policy) else "above"
    return name, kind, f"{worst:.2g} ({policy})"


def main():
    parser = parser_of_recordings(__doc__)
    parser.add_argument("--part", default="1/1")
    given = parser.parse_args()
    number, parts = map(int, given.part.split("/"))
    all_names = sorted(path.name[:-len(".keras")] for path in given.models.glob("*.keras"))
    all_names = [name for name in all_names if (given.models / f"{name}.json").exists()
                 and not name.endswith(".after")]
    names = given.names or all_names[number - 1::parts]
    counts = {"equal": 0, "within": 0, "above": 0, "refused": 0}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for task in [pool.submit(check, given.program, given.models, name) for name in names]:
            name, kind, text = task.result()
            counts[kind] += 1
            if given.verbose or kind in ("above", "refused"):
                print(f"{name}: {kind}: {text}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(counts["above"] + counts["refused"] > 0)


if __name__ == "__main__":
    sys.exit(main())

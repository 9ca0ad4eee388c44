#!/usr/bin/env python3
"""Times the cases of one peer and one row: run.py PEER ROW [--dtypes A,B] [--threads N] [--files FOLDER].

Prints a line of JSON for each dtype and pass as soon as it is known: a driver that stops this process for
being slow loses only what was not printed. Medians of at least 3 runs in up to 2 seconds.
"""
import argparse
import importlib
import json
import resource
import statistics
import sys
import time

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from rows import ROWS  # noqa: E402

SECONDS, MOST = 2.0, 20000


def median_of(call):
    for _ in range(2):  # traces, compiles, allocates
        call()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < SECONDS and len(times) < MOST):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["tensorflow", "xla", "pytorch", "onnxruntime"])
    parser.add_argument("row")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--files", default=".", help="the folder of the ONNX files")
    options = parser.parse_args()
    row = next(row for row in ROWS if row.name == options.row)
    package = "tensorflow" if options.peer == "xla" else options.peer
    cases = importlib.import_module(f"{package}_cases")
    version = cases.begin(options.threads, options.peer == "xla", options.files)
    for dtype in options.dtypes.split(","):
        base = {"peer": f"{options.peer} {version}", "dtype": dtype}
        try:
            for label, call in zip(row.passes, getattr(cases, row.case)(dtype, *row.arguments)):
                seconds = median_of(call)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(json.dumps({**base, "pass": label, "seconds": seconds, "peak_mib": peak}), flush=True)
        except Exception as error:  # a dtype without a kernel on this processor
            print(json.dumps({**base, "error": f"{type(error).__name__}: {error}"[:300]}), flush=True)


if __name__ == "__main__":
    main()

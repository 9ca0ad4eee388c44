#!/usr/bin/env python3
"""Our times beside TensorFlow's (tf_keras), PyTorch's and onnxruntime's: the rows of peer_cases/rows.py.

    make bench                                                  # builds build/release/bench/bench
    bench/peers.py --all-models --tensorflow PYTHON --pytorch PYTHON --onnxruntime PYTHON > table.md
    bench/peers.py --rows 'LSTM|GRU' --pytorch PYTHON

PYTHON is an interpreter that has the package, each of an environment of its own; a peer without one is left
out. Row by row ours and the peers' run one after the other, each in a process of its own, --rounds times;
medians. A case of a peer ends after --limit seconds, which its cell says. Standard output gets Markdown for
bench/results. All rows take about a quarter of an hour on an idle machine.
"""
import argparse
import json
import math
import os
import platform
import re
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peer_cases"))
import own  # noqa: E402
from rows import PLAIN_CONVOLUTIONS, ROWS  # noqa: E402

PACKAGES = {"tensorflow": "tensorflow", "xla": "tensorflow", "pytorch": "pytorch",
            "onnxruntime": "onnxruntime"}
MODULES = {"tensorflow": "tf_keras", "pytorch": "torch", "onnxruntime": "onnxruntime"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_until(command, limit, take):
    """Calls take(line) for each line; True where the next line was not there after `limit` seconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True)
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    try:
        while selector.select(limit):
            line = process.stdout.readline()
            if not line:
                return False
            take(line)
        return True
    finally:
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.stdout.close()
        process.wait()


def time_peer(row, peer, options, folder):
    """{(pass, dtype): seconds or a text}, {dtype: MiB}; after a stop the dtypes that are left go on."""
    times, peaks, left = {}, {}, list(row.dtypes)
    while left:
        lines = []
        command = [getattr(options, PACKAGES[peer]), os.path.join(HERE, "peer_cases", "run.py"), peer,
                   row.name, "--dtypes", ",".join(left), "--threads", str(options.threads), "--files", folder]
        stopped = run_until(command, options.limit, lambda line: lines.append(json.loads(line)))
        done = set()
        for line in lines:
            for name in [line["pass"]] if "pass" in line else row.passes:
                times.setdefault((name, line["dtype"]), line.get("seconds", line.get("error")))
            peaks[line["dtype"]] = line.get("peak_mib")
            if "error" in line or line["pass"] == row.passes[-1]:
                done.add(line["dtype"])
        waiting = [dtype for dtype in left if dtype not in done]
        if stopped and waiting:
            for name in row.passes:
                times.setdefault((name, waiting[0]), f"> {options.limit} s")
            left = waiting[1:]
        else:
            for name in row.passes:
                for dtype in waiting:
                    times.setdefault((name, dtype), "failed")
            break
    return times, peaks


def milliseconds(value):
    if value is None:
        return ""
    if isinstance(value, str):
        return value if value.startswith(">") else value.split(":")[0]
    return f"{1e3 * value:.4g}"


def better(values):
    """The fastest peer's seconds, or None."""
    numbers = [value for value in values if isinstance(value, float)]
    return min(numbers) if numbers else None


class Table:
    def __init__(self):
        self.ratios, self.lines, self.memory, self.own = {}, [], [], []

    def add(self, row, ours, peers):
        for name in row.passes:
            cells = [row.name, name]
            for dtype in ("float32", "bfloat16"):
                own_seconds = ours.get((name, dtype))
                theirs = {peer: times.get((name, dtype)) for peer, times in peers.items()}
                best = better(theirs.values())
                ratio = best / own_seconds if best and isinstance(own_seconds, float) else None
                if ratio:
                    self.ratios[row.name, name, dtype] = ratio
                named = ", ".join(f"{peer} {milliseconds(value)}" for peer, value in theirs.items() if value)
                cells += [milliseconds(own_seconds), named, f"{ratio:.2f}" if ratio else ""]
            self.lines.append("| " + " | ".join(cells) + " |")
            say("  " + self.lines[-1])
            whole = ours.get((name, "float32"))
            for dtype in ("bfloat16", "float16"):
                if isinstance(ours.get((name, dtype)), float) and whole:
                    self.own.append(f"| {row.name} | {name} | {dtype} | {whole / ours[name, dtype]:.2f} |")

    def add_memory(self, row, dtype, plan, peak, theirs):
        budget = row.budget if dtype == "bfloat16" else ""
        self.memory.append(f"| {row.name} | {dtype} | {budget} | {plan:.0f} | {peak:.0f} | "
                           f"{'' if theirs is None else f'{theirs:.0f}'} |")

    def mean(self, wanted, dtype):
        logs = [math.log(ratio) for (row, _, d), ratio in self.ratios.items() if d == dtype and row in wanted]
        return math.exp(sum(logs) / len(logs)) if logs else None

    def print(self):
        print("| row | pass | ours float32, ms | peers float32, ms | better peer over ours "
              "| ours bfloat16, ms | peers bfloat16, ms | better peer over ours |")
        print("|---|---|---|---|---|---|---|---|")
        print("\n".join(self.lines))
        if self.own:
            print("\n| row | pass | dtype | own float32 over it |\n|---|---|---|---|")
            print("\n".join(self.own))
        for dtype in ("float32", "bfloat16"):
            mean = self.mean(PLAIN_CONVOLUTIONS, dtype)
            if mean:
                print(f"\nPlain convolutions, {dtype}: geometric mean {mean:.2f}.")
        if self.memory:
            print("\n| row | dtype | --memory | plan, MiB | peak of our process, MiB | of PyTorch's, MiB |")
            print("|---|---|---|---|---|---|")
            print("\n".join(self.memory))


def middle(values):
    numbers = [value for value in values if isinstance(value, float)]
    return statistics.median(numbers) if numbers else next((v for v in values if v is not None), None)


def merged(rounds):
    keys = {key: None for one in rounds for key in one}
    return {key: middle([one.get(key) for one in rounds]) for key in keys}


def time_row(row, options, folder, table):
    ours, theirs = [], {peer: [] for peer in row.peers if getattr(options, PACKAGES[peer])}
    plans, peaks = {}, {}
    for _ in range(options.rounds):
        seconds, plan, peak = own.measure(row, options.bench, options.mixtape, options.threads, folder)
        ours.append(seconds)
        plans.update(plan)
        for dtype, value in peak.items():
            peaks[dtype] = max(value, peaks.get(dtype, 0))
        for peer, list_ in theirs.items():
            times, peer_peaks = time_peer(row, peer, options, folder)
            list_.append(times)
    table.add(row, merged(ours), {peer: merged(list_) for peer, list_ in theirs.items()})
    for dtype, plan in plans.items():
        table.add_memory(row, dtype, plan, peaks[dtype], peer_peaks.get(dtype) if theirs else None)


def check(options, parser):
    """Ends before the first row where a later one could only fail."""
    for peer, module in MODULES.items():
        python = getattr(options, peer)
        if not python:
            continue
        found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
        try:
            missing = subprocess.run([python, "-c", found], stderr=subprocess.DEVNULL).returncode
        except OSError as error:
            parser.error(f"--{peer}: {error}")
        if missing:
            parser.error(f"--{peer}: {python} has no package {module}; name an interpreter that has it")
    for path in (options.bench, options.mixtape):
        if not os.access(path, os.X_OK):
            parser.error(f"--build: {path} is not there; make bench builds it")


def chosen(expression, parser):
    try:
        rows = [row for row in ROWS if not expression or re.search(expression, row.name)]
    except re.error as error:
        parser.error(f"--rows: {error}")
    if not rows:
        parser.error(f"--rows: {expression!r} is in no name of these: " + "; ".join(row.name for row in ROWS))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all-models", action="store_true", help="every row")
    parser.add_argument("--rows", help="the rows in whose names this expression is found")
    for peer in ("tensorflow", "pytorch", "onnxruntime"):
        parser.add_argument(f"--{peer}", metavar="PYTHON", help=f"an interpreter that has {peer}")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"), help="build folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60, help="seconds that a case of a peer may take")
    options = parser.parse_args()
    if bool(options.all_models) == bool(options.rows):
        parser.error("give either --all-models or --rows EXPRESSION; "
                     + "; ".join(row.name for row in ROWS))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peer that runs ends too
    options.bench = os.path.join(options.build, "bench", "bench")
    options.mixtape = os.path.join(options.build, "mixtape")
    rows = chosen(options.rows, parser)
    check(options, parser)
    table, begin = Table(), time.time()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(rows, 1):
            say(f"{number} of {len(rows)}, {time.time() - begin:.0f} s: {row.name}")
            try:
                time_row(row, options, folder, table)
            except own.Failed as error:
                say(f"  {error}")
                table.lines.append(f"| {row.name} | | failed | | | | | |")
    table.print()
    print(f"\n{time.strftime('%Y-%m-%d')}, {platform.processor() or platform.machine()}, {options.threads} "
          f"threads, load {load:.1f} before and {os.getloadavg()[0]:.1f} after, "
          f"{(time.time() - begin) / 60:.1f} minutes, {options.rounds} rounds.")


if __name__ == "__main__":
    main()

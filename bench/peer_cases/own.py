"""Our time for a row: a run of the benchmark program, or of `mixtape bench` for a model by name."""
import json
import os
import subprocess
import tempfile

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
TIMED = {**POLICIES, "float16": "mixed_float16"}


class Failed(Exception):
    pass


def run(command):
    """The JSON that it prints, and the peak of its memory in MiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise Failed(f"{' '.join(command)}: {process.returncode}: {err.read()[-500:]}")
        return json.load(out), usage.ru_maxrss / 1024


def steps(row, found):
    for policies in found:
        for one in policies["policies"]:
            for dtype, policy in TIMED.items():
                if one["policy"] == policy:
                    yield (row.passes[0], dtype), one["step_seconds"]


def layers(row, found):
    for one in found:
        for dtype, policy in TIMED.items():
            if one["policy"] == policy and one["layer"] in row.own:
                yield ("forward" if one["pass"] == "forward" else row.passes[-1], dtype), one["seconds"]


def latency(row, found):
    for one in found:
        if one["form"] == row.passes[0]:
            yield (one["form"], "float32"), one["p50_microseconds"] / 1e6


def decoding(row, found):
    for one in found:
        for dtype, policy in POLICIES.items():
            if one["policy"] == policy:
                yield (row.passes[0], dtype), one["batch"] / one["tokens_per_second"]
                yield (row.passes[1], dtype), one["batch"] / one["whole_tokens_per_second"]


def hub(row, bench, threads):
    """A process for each dtype, so that each has a peak of its own."""
    seconds, plans, peaks = {}, {}, {}
    for dtype, policy in POLICIES.items():
        name = f"{row.own[2]}, {policy}"
        budget = ["--memory", row.budget] if dtype == "bfloat16" and row.budget else []
        found, peak = run([bench, "--only", "hub", "--rows", name, "--json", "--threads", str(threads),
                           *budget])
        one = found["hub"][0]
        seconds[row.passes[0], dtype] = one["step_seconds"]
        plans[dtype], peaks[dtype] = one["plan_bytes"] / 2**20, peak
    return seconds, plans, peaks


def measure(row, bench, mixtape, threads, folder):
    """{(pass, dtype): seconds}, and of models that are measured alone {dtype: MiB} of plan and process."""
    table, *arguments = row.own
    if table == "hub":
        return hub(row, bench, threads)
    common = ["--json", "--threads", str(threads)]
    if table == "model":
        found, _ = run([mixtape, "bench", *arguments, *common])
        return dict(steps(row, [found["model_steps"]])), {}, {}
    export = ["--export", folder] if table == "latency" else []
    found, _ = run([bench, "--only", table, *arguments, *common, *export])
    read = {"steps": steps, "layers": layers, "latency": latency, "decoding": decoding}[table]
    return dict(read(row, found[table])), {}, {}

"""Call 1: is the device right, and how fast is it."""
import json
import os
import re
import shutil

import npz
from session import Failed, LeftOut, Part

POLICIES = ("float32", "mixed_float16", "mixed_bfloat16")
KEPT = ("policy", "step_seconds", "best_seconds", "speed_to_float32", "first_step_seconds", "plan_bytes",
        "process_peak_bytes")


def device(session):
    """Facts of the device, of what drives it and of the machine."""
    facts = {"mixtape": session.mixtape("version").out.splitlines()[0],
             "devices": session.mixtape("devices").out.splitlines(), "cores": os.cpu_count()}
    if session.on_gpu and any(line.startswith("cuda: unavailable") for line in facts["devices"]):
        raise Failed(next(line for line in facts["devices"] if line.startswith("cuda: unavailable")))
    if shutil.which("nvidia-smi"):
        asked = "name,compute_cap,memory.total,memory.used,driver_version,clocks.max.sm,power.limit"
        facts["nvidia-smi"] = session.command(
            ["nvidia-smi", f"--query-gpu={asked}", "--format=csv"], check=False).out.splitlines()
    return facts


def training(session):
    """The guide's model on the built-in digits: losses fall, and float32 follows the CPU's."""
    steps, found = (20 if session.short else 200), {}
    for policy in POLICIES:
        log = session.scratch / f"{policy}.jsonl"
        session.mixtape("train", "--data", "digits", "--units", 64, "--batch-size", 64, "--steps", steps,
                        "--epochs", 10, "--policy", policy, "--verbose", 0, "--step-log", log)
        found[policy] = [json.loads(line)["loss"] for line in log.read_text().splitlines()]
    log = session.scratch / "cpu.jsonl"
    session.mixtape("train", "--data", "digits", "--units", 64, "--batch-size", 64, "--steps", steps,
                    "--epochs", 10, "--verbose", 0, "--step-log", log, "--device", "cpu")
    cpu = [json.loads(line)["loss"] for line in log.read_text().splitlines()]
    apart = [abs(a - b) / b for a, b in zip(found["float32"], cpu, strict=True)]
    result = {"first_loss": {policy: losses[0] for policy, losses in found.items()},
              "last_loss": {policy: losses[-1] for policy, losses in found.items()},
              "float32_from_cpu": {"first_10_steps": max(apart[:10]), "all_steps": max(apart)}}
    session.keep(result)
    for policy, losses in found.items():
        if not losses[-1] < 0.9 * losses[0]:
            raise Failed(f"{policy}: the loss went from {losses[0]} to {losses[-1]}")
    return result


def measure_steps(session, units, batch, *words, environment=None):
    if session.short:
        units, batch, words = 32, 64, (*words, "--quick")
    outcome = session.mixtape("bench", "--only", "steps", "--json", "--units", units, "--batch-size", batch,
                              *words, environment=environment)
    table = outcome.json()["steps"][0]
    rows = [{key: row.get(key) for key in KEPT} for row in table["policies"] if row["policy"] in POLICIES]
    return {"units": table["units"], "batch_size": table["batch_size"], "policies": rows}


def steps_of(units, batch):
    def steps(session):
        """Seconds of a step, of the first one with its compilation, and bytes, by policy."""
        return measure_steps(session, units, batch)
    return steps


def float32(session):
    """One step of SGD in float32 and in float64 from the same weights: TF32 would show as 1e-3 or more."""
    found = {}
    models = [("guide", ["--data", "digits", "--units", 256]), ("resnet56", [])]
    for name, words in models[:1] if session.short else models:
        common = ["train", "--model", name, *words, "--batch-size", 32, "--steps", 1, "--verbose", 0,
                  "--no-shuffle", "--optimizer", "sgd:learning_rate=1"]
        begin = session.scratch / "begin.npz"
        session.mixtape("train", "--model", name, *words, "--batch-size", 32, "--steps", 1, "--verbose", 0,
                        "--optimizer", "sgd:learning_rate=0", "--save", begin, "--device", "cpu")
        for policy in ("float32", "float64"):
            session.mixtape(*common, "--policy", policy, "--init-weights", begin, "--save",
                            session.scratch / f"{policy}.npz", "--device",
                            session.device if policy == "float32" else "cpu")
        start, single, double = (npz.read(session.scratch / f"{which}.npz")
                                 for which in ("begin", "float32", "float64"))
        # Of the updates, which are the gradients: weights would hide them.
        updates = [{key: (shape, [a - b for a, b in zip(values, start[key][1])])
                    for key, (shape, values) in which.items()} for which in (single, double)]
        found[name] = npz.largest_difference(*updates)
        session.keep(found)
        if not found[name] < 1e-4:
            raise Failed(f"{name}: float32 is {found[name]:.1e} from float64, as far as TF32 would be")
    return found


def same_bits(session):
    """Two runs of the same command, with and without --deterministic, compared bit by bit."""
    found, steps = {}, 10 if session.short else 100
    for name, words in (("default", []), ("deterministic", ["--deterministic"])):
        for run in (1, 2):
            session.mixtape("train", "--data", "digits", "--units", 64 if session.short else 1024,
                            "--batch-size", 64, "--steps", steps, "--epochs", 10, "--verbose", 0, "--policy",
                            "mixed_float16", "--save", session.scratch / f"{run}.npz", *words)
        found[name] = npz.same_bits(session.scratch / "1.npz", session.scratch / "2.npz")
        session.keep(found)
    if not found["deterministic"]:
        raise Failed("two runs with --deterministic differ")
    return found


def switches(session):
    """What the compiler's choices cost: Triton's products, 16-bit results of products, determinism."""
    ways = {"default": [], "jit_compile": ["--jit-compile"], "deterministic": ["--deterministic"]}
    found = {}
    for name, words in ways.items():
        found[name] = measure_steps(session, 4096, 8192, *words)
        session.keep(found)
    if session.on_gpu:
        flags = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_triton_gemm=false"
        found["no_triton"] = measure_steps(session, 4096, 8192, environment={"XLA_FLAGS": flags})
    return found


def upload(session):
    """Bytes a second from the host, pageable and pinned, by the CUDA runtime alone."""
    return run_native(session, "upload")


def run_native(session, what):
    if not session.on_gpu:
        raise LeftOut("only on an NVIDIA GPU")
    if not shutil.which("nvcc"):
        raise LeftOut("there is no nvcc")
    program = session.scratch / what
    if not program.exists():
        session.command(["nvcc", "-O2", "-arch=native", f"-DPART_{what}", "-o", program,
                         session.carried / "device" / "native.cu", "-lcublasLt"],
                        {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    lines = session.command([program], {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}).out
    return [json.loads(line) for line in lines.splitlines()]


# ---- tests that were carried ----


def count_cases(texts):
    """Of cmocka's output: how many passed, and what failed, with its reason."""
    passed, failed = 0, []
    for text in texts:
        passed += len(re.findall(r"^\[ +OK \]", text, re.MULTILINE))
        reasons = re.findall(r"^\[  ERROR   \] --- (.*)$", text, re.MULTILINE)
        names = re.findall(r"^\[  FAILED  \] (\S.*)$", text, re.MULTILINE)
        failed += [f"{name}: {reason}" for name, reason in zip(names, reasons + ["?"] * len(names))]
    return passed, failed


def cases(session):
    """The recorded runs of Keras: losses, decisions and weights within their bounds."""
    if not (session.carried / "reference" / "cases.json").exists():
        raise LeftOut("the recorded runs were not carried (MIXTAPE_REFERENCE_DIR)")
    texts = session.run_shares("reference", "MIXTAPE_REFERENCE_PART", {
        "MIXTAPE_TEST_DEVICE": "xla", "MIXTAPE_REFERENCE_DIR": str(session.carried / "reference")})
    passed, failed = count_cases(texts)
    result = {"passed": passed, "failed": failed}
    session.keep(result)
    if failed or not passed:
        raise Failed(f"{len(failed)} of {passed + len(failed)} recorded runs are out of their bounds")
    return result


def forms(session):
    """Each operation against the reference kernels: the largest distance in ulps, and those out of bounds."""
    texts = session.run_shares("forms", "MIXTAPE_FORMS_PART", {"MIXTAPE_FORMS_REPORT": "forms-{share}.jsonl"})
    rows = [json.loads(line) for path in sorted(session.scratch.glob("forms-*.jsonl"))
            for line in path.read_text().splitlines()]
    beyond = [row for row in rows if row["beyond"]]
    furthest = {}
    for row in rows:
        key = f"{row['op'] or row['form']} {row['dtype']}"
        if row["ulps"] is None or row["ulps"] > furthest.get(key, 0):
            furthest[key] = row["ulps"] if row["ulps"] is not None else "infinite"
    passed, failed = count_cases(texts)
    result = {"results": len(rows), "beyond_bounds": beyond, "failed": failed, "ulps": furthest}
    session.keep(result)
    if failed or not rows:
        raise Failed(f"{len(beyond)} of {len(rows)} results are out of their bounds")
    return result


PARTS = [
    Part("device", device, 30),
    Part("training", training, 60),
    Part("steps 4096/8192", steps_of(4096, 8192), 60),
    Part("float32", float32, 40),
    Part("same bits", same_bits, 40),
    Part("steps 4096/128", steps_of(4096, 128), 40),
    Part("steps 64/128", steps_of(64, 128), 30),
    Part("switches", switches, 90, least=30),
    Part("upload", upload, 30),
    Part("cases", cases, 90, least=40),
    Part("forms", forms, 90, least=30),
]

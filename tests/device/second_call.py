"""Call 2: beside PyTorch and JAX in the same minutes, and at its limits."""
import json
import signal
import subprocess
import time

import npz
from first_call import measure_steps, run_native
from session import Failed, LeftOut, Part

SIZES = [(4096, 8192), (4096, 128), (64, 128)]


def run_peer(session, peer, model, **sizes):
    """Rows of peers.py, a policy each. LeftOut if the machine lacks the peer."""
    words = [f"--{name}={value}" for name, value in sizes.items()]
    device = "cuda" if session.on_gpu else "cpu"
    outcome = session.python("peers.py", peer, model, "--device", device, *words, check=False)
    if outcome.code == 77:
        raise LeftOut(outcome.out.strip())
    if outcome.code or outcome.timed_out:
        raise Failed(f"peers.py {peer} {model}: {outcome.code}; {(outcome.out + outcome.err)[-1000:]}")
    return [json.loads(line) for line in outcome.out.splitlines() if line.startswith("{")]


def compare_steps(session):
    """The guide's step: ours, PyTorch's, JAX's, and ours once more, so that a drift shows."""
    found = []
    for units, batch in [(32, 64)] if session.short else SIZES:
        row = {"units": units, "batch_size": batch}
        found.append(row)
        for name in ("ours", "torch", "jax", "ours_again"):
            try:
                row[name] = (measure_steps(session, units, batch, "--quick") if name.startswith("ours") else
                             run_peer(session, name, "guide", units=units, batch=batch))
            except LeftOut as reason:
                row[name] = str(reason)
            session.keep(found)
    return found


def compare_model(name, batch, short_words):
    def compare(session):
        """The step of a model by name: ours and PyTorch's."""
        size = 2 if session.short else batch
        words = short_words if session.short else []
        found = {"model": name, "batch_size": size}
        outcome = session.mixtape("bench", "--model", name, "--batch-size", size, "--json",
                                  "--quick", *words)
        found["ours"] = outcome.json()["model_steps"]["policies"]
        session.keep(found)
        try:
            found["torch"] = run_peer(session, "torch", name, batch=size)
        except LeftOut as reason:
            found["torch"] = str(reason)
        return found
    return compare


def memory(session):
    """Batches that double until the device's memory is exhausted: each run trains or ends with an error that
    says so, and never by a signal."""
    found, batch = [], 256 if session.short else 1 << 18
    largest = 1024 if session.short else 1 << 23
    while batch <= largest:
        outcome = session.mixtape("train", "--data", "synthetic", "--units", 64 if session.short else 4096,
                                  "--batch-size", batch, "--steps", 2, "--verbose", 0, "--policy",
                                  "mixed_float16", check=False)
        found.append({"batch_size": batch, "code": outcome.code, "seconds": round(outcome.seconds, 1),
                      "said": outcome.err.strip()[-600:] if outcome.code else ""})
        session.keep(found)
        if outcome.timed_out:
            break
        if outcome.code:
            if outcome.code < 0 or "memory" not in outcome.err.lower():
                raise Failed(f"batch {batch} ended with {outcome.code}, not with an error that names memory")
            break
        batch *= 2
    return found


def resume(session):
    """Killed in the middle and resumed: the weights of an uninterrupted run, with --deterministic."""
    steps = 60 if session.short else 400
    common = ["train", "--data", "digits", "--units", 64, "--batch-size", 64, "--steps", steps, "--epochs",
              10, "--policy", "mixed_float16", "--deterministic", "--verbose", 0]
    session.mixtape(*common, "--save", session.scratch / "whole.npz")
    folder, log = session.scratch / "checkpoints", session.scratch / "killed.jsonl"
    words = [*common, "--checkpoint", folder, "--checkpoint-freq", 10, "--save",
             session.scratch / "resumed.npz"]
    process = subprocess.Popen([str(word) for word in
                                [session.carried / "bin" / "mixtape", *words, "--step-log", log]],
                               cwd=session.scratch, env=session.environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and session.left() > 0:
        if log.exists() and log.read_text().count("\n") >= steps // 2:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    process.kill()
    code = process.wait()
    session.mixtape(*words, "--resume")
    result = {"steps": steps, "killed": code == -signal.SIGKILL, "same_bits":
              npz.same_bits(session.scratch / "whole.npz", session.scratch / "resumed.npz")}
    session.keep(result)
    if not result["killed"]:
        raise Failed("the run ended before it was killed")
    if not result["same_bits"]:
        raise Failed("the resumed run has other weights than the uninterrupted one")
    return result


def native(session):
    """What a backend of our own could use: cuBLASLt's products and their epilogues, launches."""
    return run_native(session, "products")


PARTS = [
    Part("compare steps", compare_steps, 110),
    Part("resume", resume, 40),
    Part("compare resnet50", compare_model("resnet50", 64, ["--image-size", "32", "--classes", "10"]), 80,
         least=40),
    Part("compare transformer", compare_model("transformer", 64, [
        "--units", "16", "--layers", "1", "--heads", "2", "--filter-size", "32", "--classes", "50"]), 80,
         least=40),
    Part("memory", memory, 60, least=20),
    Part("native", native, 40, least=15),
]

#!/usr/bin/env python3
"""Test accuracies over seeds, and how far losses are from those of exact sums: in bench/results/products.md.

Trains the guide's model on MNIST (MIXTAPE_DATA_DIR) with the program `mixtape` for each policy, accumulation
and seed, and prints the least, the largest and the mean accuracy, then the median and the largest relative
difference of the losses of the first ten steps from those of `exact` with the same seed.
  bench/seeds.py --seeds 8 --units 64 --batch-size 128 --epochs 5 --accumulate exact,blocked
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 10


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "mixtape"))
    parser.add_argument("--policies", default="float32,mixed_float16,mixed_bfloat16")
    parser.add_argument("--accumulate", default="auto")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=5)
    return parser.parse_args()


def train(given, policy, accumulate, seed):
    """The test accuracy and the losses of the first steps of one run."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "steps.jsonl"
        command = [given.program, "train", "--data", given.data, "--policy", policy, "--seed", str(seed),
                   "--accumulate", accumulate, "--units", str(given.units), "--batch-size",
                   str(given.batch_size), "--epochs", str(given.epochs), "--validation-split", "0.2",
                   "--step-log", str(log), "--json"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        losses = [json.loads(line)["loss"] for line in log.read_text().splitlines()[:STEPS]]
        return json.loads(run.stdout.splitlines()[-1])["test"]["accuracy"], losses


def main():
    given = options()
    seeds = range(1, given.seeds + 1)
    for policy in given.policies.split(","):
        exact = None
        for accumulate in given.accumulate.split(","):
            runs = [train(given, policy, accumulate, seed) for seed in seeds]
            accuracies = [accuracy for accuracy, _ in runs]
            line = (f"{policy}, {accumulate}: {min(accuracies):.4f} to {max(accuracies):.4f}, "
                    f"mean {statistics.mean(accuracies):.4f}")
            if accumulate == "exact":
                exact = runs
            elif exact:
                apart = [abs(loss - wanted) / abs(wanted) for (_, losses), (_, base) in zip(runs, exact)
                         for loss, wanted in zip(losses, base)]
                line += f"; losses {statistics.median(apart):.4f}, at most {max(apart):.4f} from exact"
            print(line, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Test accuracies over seeds, and how far losses are from those of exact sums: in bench/results/products.md.

Trains the guide's model on MNIST (MIXTAPE_DATA_DIR) with the program `mixtape` for each policy, accumulation
and seed, and prints the least, the largest and the mean accuracy, then the median and the largest relative
difference of the losses of the first ten steps from those of `exact` with the same seed.
  bench/seeds.py --seeds 8 --units 64 --batch-size 128 --epochs 5 --accumulate exact,blocked
With --states it trains, in each kind of optimizer state that a policy can have, the guide's model with
RMSprop and the examples' ResNet and Transformer with Adam: in docs/manual/optimizer-state.md.
  bench/seeds.py --states --seeds 5
"""
import argparse
import json
import pathlib
import re
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
    parser.add_argument("--states", action="store_true")
    parser.add_argument("--models", default="guide,resnet,transformer", help="with --states")
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


# A policy and a state that it can have. Weights are in bfloat16 under the policy bfloat16 alone.
STATES = [("float32", "float32"), ("mixed_bfloat16", "float32"), ("mixed_bfloat16", "bfloat16"),
          ("mixed_bfloat16", "bfloat16-stochastic"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"),
          ("bfloat16", "bfloat16-stochastic"), ("bfloat16", "bfloat16-kahan")]


def accuracy_of_state(given, model, policy, state, seed):
    """The test accuracy of a guide's or an example's run; of the Transformer, the share of right lines."""
    examples = pathlib.Path(given.program).parent / "examples"
    command = {"guide": [given.program, "train", "--data", given.data, "--policy", policy, "--seed",
                         str(seed), "--units", str(given.units), "--batch-size", str(given.batch_size),
                         "--epochs", str(given.epochs), "--validation-split", "0.2", "--optimizer-state",
                         state, "--json"],
               "resnet": [str(examples / "10_resnet"), "digits", policy, str(given.epochs), str(seed), state],
               "transformer": [str(examples / "12_transformer"), policy, str(given.epochs), str(seed),
                               state]}[model]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if model == "guide":
        return json.loads(lines[-1])["test"]["accuracy"]
    found = [line for line in lines if line.startswith(policy + ":") or line.startswith(policy + ",")]
    return float(re.search(r"[01]\.[0-9]+", found[0]).group())


def compare_states(given):
    for model in given.models.split(","):
        for policy, state in STATES:
            runs = [accuracy_of_state(given, model, policy, state, seed)
                    for seed in range(1, given.seeds + 1)]
            print(f"| {model} | {policy} | {state} | {min(runs):.4f} | {statistics.mean(runs):.4f} | "
                  f"{max(runs):.4f} |", flush=True)


def main():
    given = options()
    if given.states:
        compare_states(given)
        return
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

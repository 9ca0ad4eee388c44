#!/usr/bin/env python3
"""How near the loss scale's decisions of a recorded run are to the other one.

    largest_gradients.py PROGRAM     (MIXTAPE_REFERENCE_DIR is set)

The program trains the case guide-keras3-mixed_float16-from-2e30 as recorded, with exact sums, up to each
step; the largest scaled gradient of the next one is computed here, as float16 would have it with sums in
float64. Prints for each step the largest one divided by 65520, from which on float16 rounds to infinity, and
whether Keras applied the step: below 1 it must have.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

REFERENCE = pathlib.Path(os.environ["MIXTAPE_REFERENCE_DIR"])
NAME = "guide-keras3-mixed_float16-from-2e30"
INFINITE = 65520


def weights_after(steps, case, folder):
    scale = case["loss_scale"]
    path = folder / "weights.npz"
    command = [sys.argv[1], "train", "--model", "guide", "--data", REFERENCE / case["data"], "--units",
               str(case["units"]), "--batch-size", str(case["batch"]), "--no-shuffle", "--policy",
               case["policy"], "--optimizer", "rmsprop", "--semantics", case["generation"], "--accumulate",
               "exact", "--init-weights", REFERENCE / (NAME + ".init.npz"), "--save", path, "--verbose", "0",
               "--loss-scale", f"dynamic:{scale['initial_scale']:.0f}:{scale['dynamic_growth_steps']}",
               "--steps", str(steps), "--epochs", "1000", "--loop", "custom"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with np.load(path) as file:
        return [file[name] for name in file.files]


def half(values):
    return values.astype(np.float16).astype(np.float64)


def largest_gradient(weights, x, y, scale):
    w = [half(weight) for weight in weights]
    x = half(x)
    a = np.maximum(half(half(x @ w[0]) + w[1]), 0)
    b = np.maximum(half(half(a @ w[2]) + w[3]), 0)
    logits = half(half(b @ w[4]) + w[5])
    g = np.exp(logits - logits.max(1, keepdims=True))
    g /= g.sum(1, keepdims=True)
    g[np.arange(len(y)), y] -= 1
    g = half(g * scale / len(y))
    gb = half(g @ w[4].T) * (b > 0)
    ga = half(gb @ w[2].T) * (a > 0)
    return max(np.abs(v).max() for v in (b.T @ g, g.sum(0), a.T @ gb, gb.sum(0), x.T @ ga, ga.sum(0), ga, gb))


def main():
    record = json.loads((REFERENCE / (NAME + ".json")).read_text())
    case, steps = record, record["steps"]
    with np.load(REFERENCE / case["data"]) as data:
        x, y = data["x_train"], data["y_train"]
    batches = len(x) // case["batch"]
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for step in range(2, len(steps) + 1):
            first = (step - 1) % batches * case["batch"]
            rows = slice(first, first + case["batch"])
            largest = largest_gradient(weights_after(step - 1, case, pathlib.Path(folder)), x[rows], y[rows],
                                       steps[step - 2]["loss_scale"])
            print(f"step {step}: {largest / INFINITE:.3f}, applied: {steps[step - 1]['applied']}")


main()

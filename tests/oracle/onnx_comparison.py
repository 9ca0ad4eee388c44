"""What the scripts on ONNX share: arguments, the program, and differences beside bounds. Needs numpy."""
import argparse
import pathlib
import re
import subprocess
import sys

import numpy as np


def parser_of_recordings(description):
    """Of scripts that go through recorded models."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    return parser


def difference(a, b):
    return float("inf") if a.shape != b.shape else float(np.abs(a - b).max() / max(1e-30, np.abs(b).max()))


class Comparison:
    """Of models that another library exports: what the program makes of them, and how many failed."""

    def __init__(self, description, steps, rate):
        parser = argparse.ArgumentParser(description=description,
                                         formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("program")
        parser.add_argument("folder", nargs="?", type=pathlib.Path)
        parser.add_argument("--only", type=re.compile, default=re.compile(".*"))
        self.options = parser.parse_args()
        self.steps, self.rate, self.failures = steps, rate, []

    def run(self, *arguments):
        done = subprocess.run([self.options.program, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            message = (done.stderr or done.stdout).strip()[-600:]
            raise RuntimeError(" ".join(map(str, arguments[:3])) + ": " + message)

    def say(self, name, what, value, bound):
        good = value <= bound
        print(f"{name:22} {what:12} {value:.2e}{'' if good else ' more than ' + str(bound)}", flush=True)
        if not good:
            self.failures.append(name)

    def fail(self, name, error):
        print(f"{name:22} FAILED {error}", flush=True)
        self.failures.append(name)

    def compare_predictions(self, title, path, converted, data, expected):
        """Those of the file with the expected ones, and of the file that it is converted to with these."""
        outputs = [path.parent / f"{title}_{i}.npy" for i in range(2)]
        self.run("predict", "--model", path, *data, "--output", outputs[0])
        self.say(title, "predicts", difference(np.load(outputs[0]), expected), 1e-5)
        self.run("convert", path, converted)
        self.run("predict", "--model", converted, *data, "--output", outputs[1])
        self.say(title, "converted", difference(np.load(outputs[1]), np.load(outputs[0])), 0)

    def train(self, title, model, data):
        """Predictions after the steps of SGD."""
        trained, output = model.parent / f"{title}_trained.keras", model.parent / f"{title}_2.npy"
        self.run("train", "--model", model, *data, "--epochs", self.steps, "--optimizer",
                 f"sgd:learning_rate={self.rate}", "--loss", "mean_squared_error", "--metrics", "mse",
                 "--save", trained, "--verbose", 0)
        self.run("predict", "--model", trained, *data, "--output", output)
        return np.load(output)

    def end(self):
        print(f"{len(self.failures)} failed")
        sys.exit(bool(self.failures))

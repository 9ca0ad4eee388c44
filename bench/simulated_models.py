#!/usr/bin/env python3
"""The table "Three models" of docs/manual/simulated-formats.md: the guide, the ResNet and the Transformer
under mixed_bfloat16, without and with each simulated format, for seeds 1, 2 and 3.

  bench/simulated_models.py [--build build/release] [--only MODEL] [--formats none,mxfp8,...]

Prints the table's rows in Markdown as they become known. The two examples are compiled with a file that calls
mix_simulate_products before main.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = (1, 2, 3)
FORMATS = {"none": (), "mxfp8": ("mxfp8",), "float8-current": ("float8-current",), "nvfp4": ("nvfp4",),
           "nvfp4, stochastic rounding": ("nvfp4", "stochastic")}
BEFORE_MAIN = """
#include <mixtape/simulate.h>
#include <stdlib.h>
__attribute__((constructor)) static void simulate(void) {
  const char *seed = getenv("SIMULATE_SEED");
  mix_simulate_products(.format = getenv("SIMULATE"), .stochastic_rounding = getenv("STOCHASTIC") != NULL,
                        .seed = seed ? (unsigned)atoi(seed) : 0);
}
"""
EXAMPLES = {"ResNet": ("10_resnet.c", ("digits", "mixed_bfloat16", "3"), r"test accuracy[^0-9]*([0-9.]+)"),
            "Transformer": ("12_transformer.c", ("mixed_bfloat16", "1"), r"greedy search: ([0-9.]+)")}


def compile_example(build, source, folder):
    before, program = folder / "before_main.c", folder / source.replace(".c", "")
    before.write_text(BEFORE_MAIN)
    subprocess.run(["cc", "-O2", f"-I{ROOT / 'include'}", f"-I{build / 'include'}",
                    str(ROOT / "examples" / source), str(before), "-o", str(program), f"-L{build}",
                    f"-Wl,-rpath,{build}", "-lmixtape", "-lm"], check=True)
    return program


def environment(format_words, seed):
    given = dict(os.environ)
    if format_words:
        given.update(SIMULATE=format_words[0], SIMULATE_SEED=str(seed))
    if len(format_words) > 1:
        given["STOCHASTIC"] = "1"
    return given


def run_example(program, name, format_words, seed):
    _, words, pattern = EXAMPLES[name]
    text = subprocess.run([str(program), *words, str(seed)], env=environment(format_words, seed),
                          capture_output=True, text=True, check=True).stdout
    return float(re.findall(pattern, text)[-1])


def run_guide(build, format_words, seed):
    words = ["--simulate", format_words[0]] if format_words else []
    words += ["--stochastic-rounding"] if len(format_words) > 1 else []
    text = subprocess.run([str(build / "mixtape"), "train", "--data", "digits", "--epochs", "5", "--policy",
                           "mixed_bfloat16", "--seed", str(seed), "--verbose", "0", "--json", *words],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(text.splitlines()[-1])["test"]["accuracy"]


def text_of(score):
    return f"{round(score, 6):.3f}"  # scores are float32


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--only", default="", help="guide, ResNet or Transformer")
    parser.add_argument("--formats", default="")
    given = parser.parse_args()
    build = pathlib.Path(given.build).resolve()
    models = [given.only] if given.only else ["guide", *EXAMPLES]
    formats = [name for name in FORMATS if not given.formats or name in given.formats.split(";")]
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: compile_example(build, EXAMPLES[name][0], pathlib.Path(folder))
                    for name in models if name in EXAMPLES}
        for name in formats:
            cells = []
            for model in models:
                scores = [run_guide(build, FORMATS[name], seed) if model == "guide" else
                          run_example(programs[model], model, FORMATS[name], seed) for seed in SEEDS]
                cells += [" ".join(text_of(score) for score in scores), text_of(statistics.mean(scores))]
            print("| " + " | ".join([name, *cells]) + " |", flush=True)


main()

#!/usr/bin/env python3
"""XLA's compilers for TPUs and NVIDIA's GPUs take our programs, with no such device at hand.

  compile_for.py MIXTAPE TARGET [WHAT...]

MIXTAPE is the program, TARGET a GPU of `mixtape compile --target` (h100, ...) or a topology of TPUs (v5e:2x2,
...). WHAT is some of

  cases   the training step of each case of $MIXTAPE_REFERENCE_DIR/cases.json (if nothing is given)
  forms   the forms of ops in tests/backend/xla/graphs/forms.txt
  models  for GPUs: the guide's model and models by name
  sample  30 of all these, chosen by the hash of their names
  float8  for GPUs: the guide's model and a Transformer in float8, with Triton's products and without

A line for each: seconds, and for a GPU the kernels that a step or program starts; of float8 the products that
cuBLAS multiplies in float8, too. Cases run one step on the
CPU, `mixtape graph --stablehlo` writes programs, `mixtape compile` compiles models. The compiler for TPUs is
libtpu, of $MIXTAPE_LIBTPU or Python's package, which users install by themselves: its licence does not let
others hand it on. That for GPUs is in build/pjrt (scripts/bootstrap --nightly). Without it, or without what
is asked for, this says so and ends with 77. It ends with 1 if a program is refused.
"""
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import pjrt

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED, SAMPLE = 77, 30
CUDA = {13: ("cuda13/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "cuda13/nvidia/cu13"),
        12: ("cuda12/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "cuda12/nvidia/cuda_nvcc")}
GUIDE = "--model guide --data synthetic --units 4096 --batch-size 8192 --policy "
MODELS = {
    "guide float32": GUIDE + "float32",
    "guide float32 deterministic": GUIDE + "float32 --deterministic",
    "guide mixed_float16": GUIDE + "mixed_float16",
    "guide mixed_float16 deterministic": GUIDE + "mixed_float16 --deterministic",
    "guide mixed_float16 jit_compile": GUIDE + "mixed_float16 --jit-compile",
    "guide mixed_bfloat16": GUIDE + "mixed_bfloat16",
    "resnet56 float32": "--model resnet56 --batch-size 128 --policy float32",
    "resnet56 mixed_float16": "--model resnet56 --batch-size 128 --policy mixed_float16",
    "resnet50 mixed_float16": "--model resnet50 --batch-size 64 --policy mixed_float16",
    "mobilenet_v2 mixed_float16": "--model mobilenet_v2 --batch-size 64 --policy mixed_float16",
    "transformer mixed_float16": "--model transformer --batch-size 64 --policy mixed_float16",
}

FLOAT8_LAYERS = "dense_.*|.*/(query|key|value|attention_output)|.*_ffn_(filter|output)"
FLOAT8_MAP = {"default_policy": "mixed_bfloat16", "policy_map": {FLOAT8_LAYERS: "float8_from_mixed_bfloat16"}}
FLOAT8 = {
    "guide": "--model guide --data synthetic --units 4096 --batch-size 8192",
    "transformer": "--model transformer --layers 2 --batch-size 64",
}
WITHOUT_TRITON = "--xla_gpu_enable_triton_gemm=false"


def skip(reason):
    print(f"skipped because {reason}")
    sys.exit(SKIPPED)


def run(*words, **environment):
    """What a command prints, and its log."""
    done = subprocess.run([str(word) for word in words], env=dict(os.environ, **environment),
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])
    return done.stdout, done.stderr


# ---- programs ----


def options_text(values):
    return ",".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}"
                    for key, value in values.items())


def command(program, case, folder):
    """As tests/spec/test_reference.c builds it, for one step."""
    optimizer = case["optimizer"].lower()
    if case.get("optimizer_options"):
        optimizer += ":" + options_text(case["optimizer_options"])
    line = [program, "train", "--model", "guide", "--data", folder / case["data"], "--units", case["units"],
            "--batch-size", case["batch"], "--policy", case["policy"], "--optimizer", optimizer,
            "--semantics", case["generation"], "--verbose", "0", "--no-shuffle", "--steps", "1",
            "--epochs", "1", "--loop", case.get("loop", "custom"), "--device", "cpu"]
    scale = case.get("loss_scale")
    if isinstance(scale, dict):
        scale = f"dynamic:{scale['initial_scale']}:{scale['dynamic_growth_steps']}"
    if scale is not None:
        line += ["--loss-scale", scale]
    if case.get("class_weight"):
        line += ["--class-weight", options_text(case["class_weight"])]
    return line


def steps_of(program, case, folder, scratch):
    """The StableHLO of each function that the step of a case runs."""
    log = scratch / "graphs.txt"
    log.write_text(run(*command(program, case, folder), MIXTAPE_VERBOSE="compile")[1])
    listed = run(program, "graph", log)[0]
    numbers = re.findall(r"^ *(\d+) .*# compile (?!evaluation|constants).*: as captured", listed, re.M)
    if not numbers:
        raise RuntimeError("its log has no captured function")
    return [run(program, "graph", log, "--graph", number, "--stablehlo")[0] for number in numbers]


def form_of(program, graph, scratch):
    file = scratch / "graph.txt"
    file.write_text(graph)
    return [run(program, "graph", file, "--stablehlo")[0]]


def find_cases(program, scratch):
    folder = pathlib.Path(os.environ.get("MIXTAPE_REFERENCE_DIR", "/nowhere"))
    if not (folder / "cases.json").exists():
        skip("MIXTAPE_REFERENCE_DIR has no cases.json")
    return {case["name"]: lambda case=case: steps_of(program, case, folder, scratch)
            for case in json.loads((folder / "cases.json").read_text())}


def find_float8(scratch):
    """Options, then flags of XLA."""
    file = scratch / "float8.json"
    file.write_text(json.dumps(FLOAT8_MAP))
    return {name + (" " + flag if flag else ""): (f"{options} --semantics keras3 --policy-map {file}", flag)
            for name, options in FLOAT8.items() for flag in ("", WITHOUT_TRITON)}


def find_forms(program, scratch):
    text = (ROOT / "tests/backend/xla/graphs/forms.txt").read_text()
    rows = re.findall(r"^== (.*?)(?: \|.*)?\n((?:(?!== ).*\n)*)", text, re.M)
    return {title: lambda graph=graph: form_of(program, graph, scratch) for title, graph in rows}


# ---- compilers ----


class Tpu:
    def __init__(self, topology):
        self.plugin = pjrt.Plugin(self.find())
        self.target = self.plugin.topology(topology)

    @staticmethod
    def find():
        given = os.environ.get("MIXTAPE_LIBTPU")
        if given:
            return given if os.path.exists(given) else sys.exit(f"MIXTAPE_LIBTPU: there is no file {given}")
        package = importlib.util.find_spec("libtpu")
        if package and package.submodule_search_locations:
            found = pathlib.Path(package.submodule_search_locations[0]) / "libtpu.so"
            if found.exists():
                return str(found)
        skip("libtpu is not at hand: MIXTAPE_LIBTPU names no file, and Python has no package libtpu")

    def compile(self, stablehlo):
        self.plugin.compile(stablehlo.encode(), self.target)


class Gpu:
    def __init__(self, program, name, scratch):
        self.program, self.name, self.dump = program, name, scratch / "dump"
        cuda = 12 if name == "v100" else 13
        library, self.toolkit = (ROOT / "build/pjrt" / path for path in CUDA[cuda])
        if not library.exists():
            skip(f"there is no XLA plug-in for CUDA {cuda}: scripts/bootstrap --nightly fetches it")
        self.environment = {"MIXTAPE_PJRT_PLUGIN": str(library), "MIXTAPE_XLA_CACHE": str(scratch / "cache"),
                            "XLA_FLAGS": f"--xla_dump_to={self.dump}"}
        self.compile_model("--model guide --data digits --units 16")  # whose dump tells the facts of the GPU
        facts = next(self.dump.glob("*.gpu_target_config.pbtxt")).read_text()
        self.plugin = pjrt.Plugin(library)
        self.target = self.plugin.topology("cuda", target_config=facts, topology="1x1x1")
        # As src/backend/xla/pjrt_run.c.
        self.options = {"xla_gpu_libnvjitlink_mode": "LIB_NV_JIT_LINK_MODE_DISABLED"} if cuda == 12 else {}

    def clear(self):
        for file in self.dump.glob("*"):
            file.unlink()

    def kernels(self, module):
        """Those that the program starts, without copies. Lines: "012: kCustomKernel [...] name"."""
        sequence = "".join(file.read_text() for file in self.dump.glob(f"*.{module}.thunk_sequence.txt"))
        return len(re.findall(r"^\d+: (?!kCopy\b)", sequence, re.M))

    def compile(self, stablehlo):
        self.clear()
        self.plugin.compile(stablehlo.encode(), self.target, xla_gpu_cuda_data_dir=self.toolkit,
                            xla_dump_to=self.dump, **self.options)
        return self.kernels("graph")

    def compile_model(self, options, flags=""):
        """Its training step, evaluation and prediction; the kernels of the first."""
        self.clear()
        environment = dict(self.environment, XLA_FLAGS=f"{self.environment['XLA_FLAGS']} {flags}")
        run(self.program, "compile", "--target", self.name, *options.split(), **environment)
        return self.kernels("train_step")

    def compile_float8(self, made):
        """Its kernels, and how many of them multiply in float8."""
        kernels = self.compile_model(*made)
        programs = self.dump.glob("*.train_step.*gpu_after_optimizations.txt")
        text = "".join(file.read_text() for file in programs)
        return f"{kernels}, {text.count('__cublas$lt$matmul$f8')} of them products in float8"


def compile_one(compiler, what, make):
    """Seconds for all programs of a step, and the kernels of the largest."""
    if what in ("models", "float8"):
        begin = time.monotonic()
        kernels = compiler.compile_model(make) if what == "models" else compiler.compile_float8(make)
        return time.monotonic() - begin, kernels
    programs = make()
    begin = time.monotonic()
    kernels = [compiler.compile(stablehlo) for stablehlo in programs]
    return time.monotonic() - begin, max(kernels, key=lambda count: count or 0)


def main():
    program, target, wanted = sys.argv[1], sys.argv[2], sys.argv[3:] or ["cases"]
    failed, all_seconds = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        find = {"cases": lambda: find_cases(program, scratch), "forms": lambda: find_forms(program, scratch),
                "models": lambda: MODELS, "float8": lambda: find_float8(scratch)}
        chosen = wanted if wanted != ["sample"] else ["cases", "forms", "models"]
        rows = [(what, name, make) for what in chosen for name, make in find[what]().items()]
        if wanted == ["sample"]:
            rows.sort(key=lambda row: hashlib.sha256(row[1].encode()).hexdigest())
            del rows[SAMPLE:]
        compiler = Tpu(target) if ":" in target else Gpu(program, target, scratch)
        version = ".".join(str(part) for part in compiler.plugin.version)
        print(f"{target}, PJRT API {version}: {len(rows)} programs", flush=True)
        for what, name, make in rows:
            try:
                seconds, kernels = compile_one(compiler, what, make)
                all_seconds += seconds
                started = "" if kernels is None else f" | {kernels}"
                print(f"{what} {name} | {seconds:.1f}{started}", flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{what} {name}: {error}", flush=True)
    print(f"{target}: {len(rows) - failed} compiled, {failed} refused, {all_seconds:.0f} s")
    sys.exit(1 if failed else 0)


main()

#!/usr/bin/env python3
"""Google's compiler for TPUs takes the steps of the reference cases, with no TPU at hand.

  compile_for_tpu.py MIXTAPE [TOPOLOGY...]

MIXTAPE is the program. It runs one step of each case of $MIXTAPE_REFERENCE_DIR/cases.json on the CPU,
`mixtape graph --stablehlo` writes its program, and libtpu compiles that for each topology (v5e:2x2 and
tpu7x:2x2x1 if none is given). libtpu is that of $MIXTAPE_LIBTPU, or of Python's package of that name, which
users install by themselves: its licence does not let others hand it on. Without it, or without the cases,
this says so and ends with 77. It ends with 1 if a program is refused.
"""
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Places in the table of functions of pjrt_c_api.h, API 0.
ERROR_DESTROY, ERROR_MESSAGE, INITIALIZE, EXECUTABLE_DESTROY = 0, 1, 3, 40
TOPOLOGY_CREATE, COMPILE = 82, 89
ENTRY = "GetPjrtApi"
SKIPPED = 77


def skip(reason):
    print(f"skipped because {reason}")
    sys.exit(SKIPPED)


def find_libtpu():
    given = os.environ.get("MIXTAPE_LIBTPU")
    if given:
        return given if os.path.exists(given) else sys.exit(f"MIXTAPE_LIBTPU is {given}, which is no file")
    package = importlib.util.find_spec("libtpu")
    if package and package.submodule_search_locations:
        found = pathlib.Path(package.submodule_search_locations[0]) / "libtpu.so"
        if found.exists():
            return str(found)
    skip("libtpu is not at hand: MIXTAPE_LIBTPU names no file, and Python has no package libtpu")


# ---- PJRT ----


def arguments(**members):
    """A struct of arguments: its size, no extensions, the members as given."""
    fields = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p)]
    fields += [(name, type(value)) for name, value in members.items()]
    # Members that newer versions have added follow as zeros.
    kind = type("Arguments", (ctypes.Structure,), {"_fields_": fields + [("later", ctypes.c_char * 64)]})
    return kind(struct_size=ctypes.sizeof(kind), **members)


def text(of):
    return ctypes.c_char_p(of), ctypes.c_size_t(len(of))


class Plugin:
    def __init__(self, path):
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # no question to a metadata server
        entry = getattr(ctypes.CDLL(path), ENTRY)
        entry.restype = ctypes.c_void_p
        table = entry()
        size = ctypes.c_size_t.from_address(table).value
        self.version = tuple(ctypes.c_int.from_address(table + at).value for at in (32, 36))
        if self.version[0] != 0 or size < 40 + 8 * (COMPILE + 1):
            sys.exit(f"{path}: version {self.version} of the PJRT API, with a table of {size} bytes")
        self.table = table
        self.call(INITIALIZE, arguments())

    def function(self, place):
        address = ctypes.c_void_p.from_address(self.table + 40 + 8 * place).value
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)

    def call(self, place, args):
        error = self.function(place)(ctypes.addressof(args))
        if not error:
            return args
        said = arguments(error=ctypes.c_void_p(error), text=ctypes.c_void_p(), size=ctypes.c_size_t())
        self.function(ERROR_MESSAGE)(ctypes.addressof(said))
        message = ctypes.string_at(said.text, said.size).decode(errors="replace")
        gone = arguments(error=ctypes.c_void_p(error))
        self.function(ERROR_DESTROY)(ctypes.addressof(gone))
        raise RuntimeError(message)

    def topology(self, name):
        code, size = text(name.encode())
        made = self.call(TOPOLOGY_CREATE, arguments(name=code, size=size, options=ctypes.c_void_p(),
                                                    option_count=ctypes.c_size_t(),
                                                    topology=ctypes.c_void_p()))
        return ctypes.c_void_p(made.topology)

    def compile(self, program, topology):
        code, code_size = text(program)
        form, form_size = text(b"mlir")
        options, options_size = text(compile_options())
        source = arguments(code=code, code_size=code_size, form=form, form_size=form_size)
        made = self.call(COMPILE, arguments(topology=topology,
                                            program=ctypes.c_void_p(ctypes.addressof(source)),
                                            options=options, options_size=options_size,
                                            client=ctypes.c_void_p(), executable=ctypes.c_void_p()))
        self.call(EXECUTABLE_DESTROY, arguments(executable=ctypes.c_void_p(made.executable)))


def compile_options():
    """As src/backend/xla/pjrt_run.c: one device, no excess precision."""
    build = b"\x08" + b"\xff" * 9 + b"\x01" + b"\x20\x01\x28\x01"
    name = b"xla_allow_excess_precision"
    override = b"\x0a" + bytes([len(name)]) + name + b"\x12\x02\x10\x00"
    return b"\x1a" + bytes([len(build)]) + build + b"\x3a" + bytes([len(override)]) + override


# ---- the steps ----


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
    return [str(word) for word in line]


def programs(program, case, folder, scratch):
    """The StableHLO of each function that the step runs."""
    environment = dict(os.environ, MIXTAPE_VERBOSE="compile")
    run = subprocess.run(command(program, case, folder), env=environment, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip()[-400:])
    log = scratch / "graphs.txt"
    log.write_text(run.stderr)
    listed = subprocess.run([program, "graph", log], capture_output=True, text=True, check=True).stdout
    for number in re.findall(r"^ *(\d+) .*# compile (?!evaluation|constants).*: as captured", listed, re.M):
        yield subprocess.run([program, "graph", log, "--graph", number, "--stablehlo"], check=True,
                             capture_output=True).stdout


def main():
    program, topologies = sys.argv[1], sys.argv[2:] or ["v5e:2x2", "tpu7x:2x2x1"]
    folder = pathlib.Path(os.environ.get("MIXTAPE_REFERENCE_DIR", "/nowhere"))
    if not (folder / "cases.json").exists():
        skip("MIXTAPE_REFERENCE_DIR has no cases.json")
    plugin = Plugin(find_libtpu())
    cases = json.loads((folder / "cases.json").read_text())
    targets = {name: plugin.topology(name) for name in topologies}
    print(f"libtpu with PJRT API {plugin.version[0]}.{plugin.version[1]}, {len(cases)} cases")
    seconds, compiled, failed, seen = dict.fromkeys(targets, 0.0), dict.fromkeys(targets, 0), 0, set()
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            count = 0
            try:
                for step in programs(program, case, folder, pathlib.Path(scratch)):
                    count += 1
                    if step in seen:
                        continue
                    seen.add(step)
                    for name, target in targets.items():
                        begin = time.monotonic()
                        plugin.compile(step, target)
                        seconds[name] += time.monotonic() - begin
                        compiled[name] += 1
                if not count:
                    raise RuntimeError("its log has no captured function")
            except (RuntimeError, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"{case['name']}: {error}")
    for name in targets:
        print(f"{name}: {compiled[name]} programs compiled, {seconds[name]:.0f} s")
    print(f"{len(cases) - failed} cases passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()

#!/usr/bin/env python3
"""The HDF5 library reads what the library's own writer writes, and goes on writing to it.

  hdf5_files.py BUILD MIXTAPE FOLDER...

BUILD is the folder of the release build, whose test formats/hdf5_layout writes files of every form; MIXTAPE
the program. The folders hold files of Keras (.keras, .h5), as $MIXTAPE_REFERENCE_DIR/models does. Each file
of the test is read whole by h5py, then opened for changes: 300 links and an attribute are added, half of what
was there is deleted, and it is read again. Each model that the program can read is converted to .keras, .h5
and .weights.h5; h5py reads all that is in them, zipfile finds the check sums right, arrays of 4096 bytes and
more begin at multiples of 64 of the file, and the layers' arrays of the .keras are those of Keras's own. Not
part of the tests: it needs h5py. Prints counts; exits with 1 if anything differs.
"""
import io
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

import h5py
import numpy as np

build, program = sys.argv[1:3]
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED", what)


def contents(file):
    """What is at each path: attributes, and the arrays' dtypes, shapes and bytes."""
    found = {"": (len(file), sorted(file.keys()), sorted(file.attrs.keys()))}

    def visit(path, item):
        attributes = [(name, np.asarray(value).tolist()) for name, value in item.attrs.items()]
        if isinstance(item, h5py.Dataset):
            values = np.asarray(item[()])
            found[path] = (item.dtype.str, item.shape, values.tobytes(), attributes)
        else:
            found[path] = (len(item), sorted(item.keys()), attributes)

    file.visititems(visit)
    return found


def change(path):
    """Adds and deletes, as any program may."""
    with h5py.File(path, "r+") as file:
        before = sorted(file.keys())
        for i in range(300):
            file.create_dataset(f"new_{i}", data=np.arange(i))
        if "zz" not in file.attrs:
            file.attrs["zz"] = "x" * 100
        for name in before[::2]:
            del file[name]
    with h5py.File(path, "r") as file:
        left = before[1::2] + [f"new_{i}" for i in range(300)]
        check(sorted(file.keys()) == sorted(left), f"{path}: links")
        check(all((file[f"new_{i}"][()] == np.arange(i)).all() for i in range(300)), f"{path}: new arrays")
        check(file.attrs["zz"] == "x" * 100, f"{path}: attribute")


def check_forms(folder):
    env = dict(os.environ, MIXTAPE_HDF5_OUT=str(folder))
    subprocess.run([f"{build}/tests/formats/hdf5_layout"], check=True, env=env, capture_output=True)
    paths = sorted(folder.glob("*.h5"))
    for path in paths:
        with h5py.File(path, "r") as file:
            contents(file)
        change(path)
    return len(paths)


def data_begin(path):
    """Where the archive has the first byte of the weights, from the local header."""
    with zipfile.ZipFile(path) as archive:
        check(archive.testzip() is None, f"{path}: check sums")
        at = archive.getinfo("model.weights.h5").header_offset
    with open(path, "rb") as file:
        file.seek(at + 26)
        return at + 30 + sum(struct.unpack("<HH", file.read(4)))


def weights_of(path):
    if path.suffix != ".keras":
        return h5py.File(path, "r")
    with zipfile.ZipFile(path) as archive:
        return h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r")


def check_places(path, file, begin, counts):
    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            counts["arrays"] += 1
            if item.nbytes >= 4096:
                counts["large"] += 1
                check((begin + item.id.get_offset()) % 64 == 0, f"{path}: {name} is not aligned")

    file.visititems(visit)


def layers_of(found):
    return {path: value[:3] for path, value in found.items()
            if not path.startswith("optimizer") and isinstance(value[0], str)}


def check_model(source, folder, counts):
    for end in (".keras", ".h5", ".weights.h5"):
        path = folder / ("out" + end)
        done = subprocess.run([program, "convert", str(source), str(path)], capture_output=True, text=True)
        if done.returncode:
            counts["refused"] += 1
            continue
        counts[end] += 1
        with weights_of(path) as file:
            found = contents(file)
            check_places(f"{source.name} as {end}", file, data_begin(path) if end == ".keras" else 0, counts)
        if end == source.suffix == ".keras":
            with weights_of(source) as file:
                check(layers_of(contents(file)) == layers_of(found), f"{source.name}: layers' arrays")
        path.unlink()


counts = dict.fromkeys((".keras", ".h5", ".weights.h5", "refused", "arrays", "large"), 0)
with tempfile.TemporaryDirectory() as name:
    forms = check_forms(pathlib.Path(name))
for folder in sys.argv[3:]:
    for source in sorted(pathlib.Path(folder).glob("*")):
        if source.suffix in (".keras", ".h5"):
            with tempfile.TemporaryDirectory() as name:
                check_model(source, pathlib.Path(name), counts)
print(f"{forms} files of every form; {counts}; {len(failures)} failures")
sys.exit(bool(failures))

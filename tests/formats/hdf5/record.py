#!/usr/bin/env python3
"""Writes the files of tests/formats/test_hdf5.c: python record.py FOLDER. Needs h5py (those are of 3.14)."""
import pathlib
import sys

import h5py
import numpy as np

FOLDER = pathlib.Path(sys.argv[1])


def numbers(count, dtype):
    """(0, 0.5, 1, ...) in that dtype."""
    return (np.arange(count) / 2).astype(dtype)


def fill(file, many):
    for dtype in ("f2", "f4", "f8", ">f4", "i1", "i2", "i4", "i8", "u1"):
        file.create_dataset("numbers/" + dtype.replace(">", "big_"), data=numbers(6, dtype).reshape(2, 3))
    file.create_dataset("bool", data=np.array([True, False, True]))
    file.create_dataset("scalar", data=np.float32(3.5))
    halves = file.create_dataset("bfloat16", data=np.array([0x3F80, 0xC000], "u2").view("V2"))
    halves.attrs["dtype"] = "bfloat16"
    file.create_dataset("text", data="hello")
    for i in range(many):
        file.create_dataset(f"many/d{i:03d}", data=np.float32(i))
    group = file.create_group("attributes")
    group.attrs["names"] = [f"layer/w{i}".encode() for i in range(many)]
    group.attrs["text"] = "some text"
    group.attrs["number"] = 7
    for i in range(many if many > 10 else 3):
        group.attrs[f"a{i}"] = i
    file.attrs["config"] = "x" * 5000


def chunks(file):
    file.create_dataset("zipped", data=numbers(30, "f4").reshape(5, 6), chunks=(2, 4), compression="gzip",
                        shuffle=True)
    file.create_dataset("chunked", data=numbers(30, "i8").reshape(5, 6), chunks=(3, 6))
    file.create_dataset("sparse", (6, 6), "f4", chunks=(2, 2))[3, 3] = 1


with h5py.File(FOLDER / "earliest.h5", "w", libver="earliest") as f:
    fill(f, 40)
    chunks(f)
with h5py.File(FOLDER / "v108.h5", "w", libver=("v108", "v108")) as f:
    fill(f, 40)
    chunks(f)
with h5py.File(FOLDER / "latest.h5", "w", libver="latest") as f:
    fill(f, 4)
with h5py.File(FOLDER / "refused.h5", "w", libver="earliest") as f:
    f["x"] = np.float32(1)
    f["soft/link"] = h5py.SoftLink("/x")
    f["external/link"] = h5py.ExternalLink("other.h5", "/x")
    f.create_dataset("elsewhere", (2,), "f4", external=[("/etc/passwd", 0, 8)])
    f["compound"] = np.zeros(2, [("a", "f4"), ("b", "i4")])
    f["sequences"] = h5py.Empty("f4")
    f.create_dataset("lzf", data=numbers(100, "f4"), chunks=(50,), compression="lzf")
    f["circle/self"] = f["circle"] if "circle" in f else f.create_group("circle")
with h5py.File(FOLDER / "virtual.h5", "w", libver="latest") as f:
    layout = h5py.VirtualLayout((2,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (2,))
    f.create_virtual_dataset("virtual", layout)
    f.create_dataset("chunked", data=numbers(30, "i8").reshape(5, 6), chunks=(3, 6))

# Of the least size: seeds for the fuzzer.
for name, libver in (("earliest", "earliest"), ("v108", ("v108", "v108")), ("latest", "latest")):
    with h5py.File(FOLDER / f"small-{name}.h5", "w", libver=libver) as f:
        f.create_dataset("d/vars/0", data=numbers(6, "f4").reshape(2, 3))
        f.attrs["layer_names"] = [b"d"]
    file = FOLDER / f"small-{name}-attributes.h5"
    with h5py.File(file, "w", libver=libver, track_order=name == "latest") as f:
        f.attrs["model_config"] = "{}"
        f.create_dataset("0", data=np.array([0x3F80], "u2").view("V2")).attrs["dtype"] = "bfloat16"
    with h5py.File(FOLDER / f"small-{name}-chunks.h5", "w", libver=libver) as f:
        f.create_dataset("0", data=numbers(6, "f4"), chunks=(4,), compression="gzip", shuffle=True)

"""Arrays of .npz files by the standard library alone."""
import ast
import math
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<f2": "e", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?", "|i1": "b"}


def read(path):
    """{name: (shape, values)} in the order of the file; values are a flat tuple of numbers."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            wide = data[6] > 1  # version 2 of the format has a longer size
            size, = struct.unpack_from("<I" if wide else "<H", data, 8)
            begin = (12 if wide else 10) + size
            header = ast.literal_eval(data[begin - size:begin].decode("latin1"))
            count = math.prod(header["shape"])
            values = struct.unpack_from(f"<{count}{CODES[header['descr']]}", data, begin)
            arrays[name.removesuffix(".npy")] = (header["shape"], values)
    return arrays


def same_bits(a, b):
    """Whether two files hold the same bytes in each array."""
    with zipfile.ZipFile(a) as first, zipfile.ZipFile(b) as second:
        names = first.namelist()
        return names == second.namelist() and all(first.read(name) == second.read(name) for name in names)


def largest_difference(a, b):
    """Of two results of read(): the largest difference, each over its array's largest value."""
    furthest = 0.0
    for (shape, values), (other_shape, others) in zip(a.values(), b.values(), strict=True):
        if shape != other_shape:
            raise ValueError(f"shapes {shape} and {other_shape}")
        size = max((abs(value) for value in others), default=0) or 1
        furthest = max([furthest] + [abs(x - y) / size for x, y in zip(values, others)])
    return furthest

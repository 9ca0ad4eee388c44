#!/usr/bin/env python3
"""Makes the files of this folder with Python's safetensors: pip install safetensors numpy ml_dtypes.

record.py FOLDER          writes dtypes.safetensors
record.py --check FILE    reads a file that mixtape wrote, and prints names, dtypes, shapes and sums;
                          NumPy's reader has no float8
"""
import sys

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
    "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "U32": np.uint32,
}

def record(folder):
    tensors = {"of." + name: np.array([[0, 1, 2], [3, 4, 1]]).astype(dtype) for name, dtype in DTYPES.items()}
    tensors["scalar"] = np.array(2.5, np.float32)
    tensors["empty"] = np.zeros((0, 4), np.float32)
    save_file(tensors, folder + "/dtypes.safetensors", {"format": "np"})


def check(path):
    for name, tensor in sorted(load_file(path).items()):
        print(name, tensor.dtype, list(tensor.shape), "%.9g" % tensor.astype(np.float64).sum())


if sys.argv[1] == "--check":
    check(sys.argv[2])
else:
    record(sys.argv[1])

"""Prints the dtypes in which Keras 3's operations bring two tensors together, for tests/nn/test_promotion.c.

    python tests/oracle/promotion.py > tests/nn/recorded/promotion.inc
"""

import keras
from keras.src.backend.common.dtypes import result_type

DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool".split()
print("/* Written by tests/oracle/promotion.py with Keras %s: two dtypes, and the one in which they meet. */"
      % keras.__version__)
for first in DTYPES:
    for second in DTYPES:
        print('{"%s", "%s", "%s"},' % (first, second, result_type(first, second)))

"""Checks docs/manual/files.md against the installed Keras 3: each class of operations stands there, as
supported, as refused, or as one that no file holds; and no other name stands among the supported ones.

    python tests/oracle/keras_operations.py
"""
import importlib
import inspect
import os
import pathlib
import re
import sys

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
from keras.src.ops.operation import Operation

page = (pathlib.Path(__file__).parents[2] / "docs/manual/files.md").read_text()
begin = page.index("with these operations of `keras.ops`:")
refused = page.index("Not supported, and why:", begin)
end = page.index("Functional models of tf_keras may compute", refused)
wrong = []
for module in "core einops image linalg math nn numpy".split():
    names = {name for name, item in vars(importlib.import_module("keras.src.ops." + module)).items()
             if inspect.isclass(item) and issubclass(item, Operation) and item is not Operation
             and item.__module__ == "keras.src.ops." + module}
    item = re.search(r"\* `%s`:(.*?)[;.]\n" % module, page[begin:refused], re.S).group(1)
    listed = set(re.findall(r"\w+", item))
    wrong += ["%s.%s is no class of Keras" % (module, name) for name in sorted(listed - names)]
    others = set(re.findall(r"\b[A-Z]\w+", page[refused:end]))
    wrong += ["%s.%s is not mentioned" % (module, name) for name in sorted(names - listed - others)]
    print(module, len(names), "classes,", len(listed & names), "supported")
sys.exit("\n".join(wrong))

"""Prints the first arguments that Keras 3's constructors take by position, for tests/api/arguments.py: what
a Keras user types without names. One line a class: its module, its name, its arguments.

    python tests/oracle/keras_arguments.py > tests/oracle/keras_arguments.txt
"""

import inspect

import keras

MODULES = "layers losses metrics optimizers callbacks"
print(f"# keras {keras.__version__}")
for module in MODULES.split():
    for name, item in inspect.getmembers(eval(module, vars(keras)), inspect.isclass):
        if not name[0].isupper():
            continue
        taken = [p.name for p in inspect.signature(item.__init__).parameters.values()
                 if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        print(module, name, ",".join(taken[:6]) or "-")

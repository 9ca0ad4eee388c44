"""Prints the classes that Keras 3 and tf_keras export, for tools/check_manual: what Mixtape does not have
must stand in docs/manual/keras-to-mixtape.md. One line a class: its module, its name, the libraries that
export it, and the name that the class itself has, where that is another one.

    python tests/oracle/keras_classes.py > tests/oracle/keras_classes.txt
"""

import inspect

import keras
import tf_keras

MODULES = ("layers losses metrics optimizers optimizers.schedules initializers regularizers constraints "
           "callbacks").split()
found = {}


def add(library, order, module):
    for name, item in inspect.getmembers(module, inspect.isclass):
        if name[0].isupper():
            libraries = found.setdefault((order, name), (item.__name__, []))[1]
            libraries += [library.__name__] * (library.__name__ not in libraries)


for library in keras, tf_keras:
    for order, name in enumerate(MODULES):
        add(library, order, eval(name, vars(library)))
add(tf_keras, MODULES.index("layers"), tf_keras.layers.experimental)

print(f"# keras {keras.__version__}, tf_keras {tf_keras.__version__}")
for (order, name), (own, libraries) in sorted(found.items()):
    print(MODULES[order], name, ",".join(libraries), *([own] if own != name else []))

#!/usr/bin/env python3
"""What Keras does with nested and named data: the numbers and rules of tests/train/test_nested.c.

    [PYTHONPATH=FOLDER_OF_TF_KERAS] record_nested.py tf_keras|keras

Recorded with tf_keras 2.21 and Keras 3.15 (TensorFlow 2.21) on a CPU. Keras 3 wants labels and weights nested
as the model's outputs; it fails with weights in a dict where the outputs are a list (KeyError: 0).
"""
import importlib
import sys
import warnings

import numpy as np
import tensorflow as tf

keras = importlib.import_module(sys.argv[1])
layers = keras.layers
a = np.array([[1.0], [2.0]], "float32")
b, y1, y2 = a * 3, a * 0, a * 0 + 1
w1, w2 = np.array([1.0, 2.0], "float32"), np.array([3.0, 0.0], "float32")
rows = tf.data.Dataset.from_tensor_slices


def ones(name=None):
    return layers.Dense(1, use_bias=False, kernel_initializer="ones", name=name)


def two():
    inputs = [keras.Input((1,), name="a"), keras.Input((1,), name="b")]
    model = keras.Model(inputs, [ones("o1")(inputs[0]), ones("o2")(inputs[1])])
    model.compile(keras.optimizers.SGD(0.0), "mse", weighted_metrics=[["mae"], ["mae"]])
    return model


def one():
    inputs = keras.Input((1,), name="a")
    model = keras.Model(inputs, ones("o1")(inputs))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    return model


class Sum(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = ones()

    def call(self, inputs):
        print("  call gets", type(inputs).__name__)
        first, second = (inputs["a"], inputs["b"]) if isinstance(inputs, dict) else inputs
        return self.inner(first + 10 * second)


def subclassed():
    model = Sum()
    model.compile("sgd", "mse")
    return model


def show(title, model, *data, **arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            batch = {} if isinstance(data[0], tf.data.Dataset) else {"batch_size": 2}
            print(title, model.evaluate(*data, verbose=0, return_dict=True, **batch, **arguments))
        except Exception as error:
            print(title, type(error).__name__, str(error).strip().splitlines()[-1])
        for warning in caught:
            print("  warning:", warning.message)


named_x, named_y, named_w = {"b": b, "a": a}, {"o2": y2, "o1": y1}, {"o2": w2, "o1": w1}
show("lists", two(), [a, b], [y1, y2])
show("dicts", two(), named_x, named_y)
show("nested list", two(), [[a], b], [y1, y2])
show("another input", two(), {**named_x, "z": a}, [y1, y2])
show("missing input", two(), {"a": a}, [y1, y2])
show("another output", two(), [a, b], {**named_y, "z": y1})
show("missing output", two(), [a, b], {"o1": y1})
show("weights", two(), [a, b], [y1, y2], sample_weight=[w1, w2])
show("weights by name", two(), [a, b], named_y, sample_weight=named_w)
show("weights by name, labels not", two(), [a, b], [y1, y2], sample_weight=named_w)
show("missing weights", two(), [a, b], named_y, sample_weight={"o1": w1})
show("weights None", two(), [a, b], [y1, y2], sample_weight=[w1, None])
show("other weights", two(), [a, b], named_y, sample_weight={**named_w, "z": w1})
show("one array of weights", two(), [a, b], [y1, y2], sample_weight=w1)
show("one input by name", one(), {"A": b, "a": a}, y2)
for data in [((a, b), (y1, y2)), ((a, b), (y1, y2), (w1, w2)), ((a, b), (y1, y2), w1),
             (named_x, named_y, named_w), (named_x, {"o1": y1}), ((a, b), (y1, y2), w1, w2)]:
    show("data set", two(), rows(data).batch(2))
for x in [a, b], named_x:
    show("call function", subclassed(), x, y1)
    show("call function", subclassed(), rows((tuple(x) if isinstance(x, list) else x, y1)).batch(2))

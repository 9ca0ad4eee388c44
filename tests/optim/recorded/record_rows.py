#!/usr/bin/env python3
"""What Keras makes of row-sparse gradients: writes rows.json, beside this file.

    PYTHONPATH=FOLDER_OF_TF_KERAS record_rows.py

Each case is an optimizer (tf_keras 2.21, its legacy family, Keras 3.15; TensorFlow 2.21 on a CPU) and four
updates of one table by tf.IndexedSlices that repeat indices. "state" holds the table and then all variables
of the optimizer that have its shape. The numbers of the gradients are exact in float32. With "loss_scale" a
dynamic loss-scale optimizer gets them times that scale, in the third update with an infinity.
"""
import json
import pathlib

import keras
import numpy as np
import tensorflow as tf
import tf_keras

SHAPE = (6, 3)  # row 5 never has a gradient
INDICES = [[1, 3, 1, 4], [0, 1, 1, 1], [4, 4, 2, 0], [3, 0, 3, 2]]
random = np.random.RandomState(7)
TABLE = (random.randint(-64, 65, SHAPE) / 32).astype(np.float32)
VALUES = (random.randint(-64, 65, (4, 4, 3)) / 64 + 1 / 128).astype(np.float32)

EVERYWHERE = {
    "SGD": ["SGD", {}],
    "SGD momentum": ["SGD", {"momentum": 0.5}],
    "SGD nesterov": ["SGD", {"momentum": 0.5, "nesterov": True}],
    "RMSprop": ["RMSprop", {"rho": 0.75}],
    "RMSprop momentum": ["RMSprop", {"momentum": 0.5}],
    "RMSprop centered": ["RMSprop", {"centered": True}],
    "RMSprop centered momentum": ["RMSprop", {"centered": True, "momentum": 0.5}],
    "Adam": ["Adam", {}],
    "Adam amsgrad": ["Adam", {"amsgrad": True}],
    "Adagrad": ["Adagrad", {}],
    "Adadelta": ["Adadelta", {}],
    "Adamax": ["Adamax", {}],
    "Nadam": ["Nadam", {}],
    "Ftrl": ["Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02}],
    "Ftrl shrinkage": ["Ftrl", {"l2_shrinkage_regularization_strength": 0.1, "beta": 0.1}],
    "SGD clipvalue": ["SGD", {"clipvalue": 0.25}],
    "SGD clipnorm": ["SGD", {"clipnorm": 0.5}],
    "Adagrad clipnorm": ["Adagrad", {"clipnorm": 0.5}],
    "Adam global_clipnorm": ["Adam", {"global_clipnorm": 0.5}],
}
NEW = {
    "AdamW": ["AdamW", {"weight_decay": 0.1}],
    "Lion": ["Lion", {}],
    "Adafactor": ["Adafactor", {}],
    "SGD weight decay": ["SGD", {"weight_decay": 0.1}],
    "Adagrad weight decay": ["Adagrad", {"weight_decay": 0.1}],
    "SGD average": ["SGD", {"use_ema": True, "ema_momentum": 0.75}],
    "Adagrad average": ["Adagrad", {"use_ema": True, "ema_momentum": 0.75, "ema_overwrite_frequency": 3}],
    "Adam average": ["Adam", {"use_ema": True, "ema_momentum": 0.75, "ema_overwrite_frequency": 2}],
}
LAST = {
    "Lamb": ["Lamb", {}],
    "SGD accumulation": ["SGD", {"gradient_accumulation_steps": 2}],
    "Adagrad accumulation": ["Adagrad", {"gradient_accumulation_steps": 2, "clipnorm": 0.5}],
}
SCALED = {"SGD momentum", "Adagrad", "Adam"}
SCALE = 16
GENERATIONS = {
    "tf_keras": (tf_keras.optimizers, {**EVERYWHERE, **NEW}, lambda v: tf.Variable(v)),
    "experimental": (tf_keras.optimizers.legacy, EVERYWHERE, lambda v: tf.Variable(v)),
    "keras3": (keras.optimizers, {**EVERYWHERE, **NEW, **LAST}, lambda v: keras.Variable(v)),
}


def numbers(array):
    return [float(x) for x in np.asarray(array, np.float32).reshape(-1)]


def scaled_gradients(optimizer, step, gradient):
    values = gradient.values.numpy() * SCALE
    if step == 2:  # of a row that no other one repeats: Keras 3 tests the last one of an index alone
        values[2, 0] = np.inf
    gradient = tf.IndexedSlices(tf.constant(values), gradient.indices, gradient.dense_shape)
    unscale = getattr(optimizer, "get_unscaled_gradients", None)
    return unscale([gradient])[0] if unscale else gradient


def record(generation, name, scaled):
    module, cases, variable_of = GENERATIONS[generation]
    kind, options = cases[name]
    optimizer = getattr(module, kind)(learning_rate=0.125, **options)
    plain, table = optimizer, variable_of(TABLE)
    if scaled:
        wrapper = {"tf_keras": tf_keras.mixed_precision, "keras3": keras.optimizers}[generation]
        optimizer = wrapper.LossScaleOptimizer(plain, initial_scale=SCALE)
    for step, (indices, values) in enumerate(zip(INDICES, VALUES)):
        gradient = tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant(SHAPE))
        gradient = scaled_gradients(optimizer, step, gradient) if scaled else gradient
        optimizer.apply_gradients([(gradient, table)])
    variables = plain.variables() if callable(plain.variables) else plain.variables
    state = [table] + [v for v in variables if tuple(v.shape) == SHAPE]
    config = json.loads(json.dumps(plain.get_config(), default=float))
    return {"generation": generation, "name": name, "class_name": kind, "config": config,
            "loss_scale": SCALE if scaled else 0, "state": [numbers(v.numpy()) for v in state]}


def main():
    cases = [record(generation, name, False)
             for generation in GENERATIONS for name in GENERATIONS[generation][1]]
    cases += [record(generation, name, True)
              for generation in ("tf_keras", "keras3") for name in sorted(SCALED)]
    result = {"shape": SHAPE, "table": numbers(TABLE), "indices": INDICES,
              "values": [numbers(v) for v in VALUES], "cases": cases}
    text = json.dumps(result, indent=0, separators=(",", ":")).replace(",\n", ",").replace("[\n", "[")
    text = text.replace("\n]", "]").replace('{\n"gen', '\n{"gen').replace(',"state":', ',\n"state":')
    pathlib.Path(__file__).with_name("rows.json").write_text(text + "\n")


main()

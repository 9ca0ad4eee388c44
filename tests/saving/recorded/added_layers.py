"""Writes added_layers.zip and added_layers.inc: a functional model of tf_keras that adds a loss and metrics,
whose files have them as layers, as test_added_layers.c reads them.

  python3 -m venv venv
  venv/bin/pip install tensorflow-cpu tf_keras
  venv/bin/python added_layers.py FOLDER
"""
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
import tf_keras as keras

folder = sys.argv[1]


def values(shape, phase):
    count = int(np.prod(shape))
    return np.array([0.5 * np.sin(1 + 0.7 * i + phase) for i in range(count)], np.float32).reshape(shape)


def write(out, name, numbers):
    out.write(f"static const double {name}[] = {{\n")
    numbers = [float(n) for n in np.ravel(numbers)]
    for i in range(0, len(numbers), 5):
        out.write("    " + ", ".join(f"{n:.9g}" for n in numbers[i : i + 5]) + ",\n")
    out.write("};\n")


# `side` is read by the loss alone, and made before the layers of the output
x = keras.Input((5,), name="x")
side = keras.layers.Dense(3, name="side")(x)
y = keras.layers.Dense(4, "tanh", name="hidden")(x)
model = keras.Model(x, keras.layers.Dense(1, name="out")(y))
model.add_loss(0.3 * tf.reduce_mean(tf.square(side - tf.reduce_mean(y, axis=-1, keepdims=True))))
model.add_metric(tf.abs(y), name="size")
model.add_metric(tf.reduce_max(y), name="largest")
for i, layer in enumerate(["side", "hidden", "out"]):
    kernel, bias = model.get_layer(layer).get_weights()
    model.get_layer(layer).set_weights([values(kernel.shape, 20 + i), values(bias.shape, i)])
model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse", metrics=["mae"])
model.fit(values((8, 5), 3), values((8, 1), 5), batch_size=4, shuffle=False, verbose=0)

archive = zipfile.ZipFile(f"{folder}/added_layers.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9)
for name in "added.keras", "added.h5":
    model.save(name)
    info = zipfile.ZipInfo(name, (2026, 11, 30, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    with open(name, "rb") as file:
        archive.writestr(info, file.read(), compresslevel=9)
    os.remove(name)
archive.close()

names = "loss", "mae", "size", "largest"
with open(f"{folder}/added_layers.inc", "w") as out:
    out.write("/* Written by added_layers.py: tf_keras. */\n")
    write(out, "recorded_output", model.predict(values((8, 5), 3), verbose=0))
    logs = model.evaluate(values((6, 5), 0), values((6, 1), 7), batch_size=4, verbose=0, return_dict=True)
    write(out, "recorded_evaluation", [logs[n] for n in names])
    fitted = model.fit(values((8, 5), 3), values((8, 1), 5), batch_size=4, shuffle=False, epochs=2, verbose=0)
    write(out, "recorded_history", [fitted.history[n] for n in names])
    write(out, "recorded_side", model.get_layer("side").get_weights()[0])

"""Writes recorded_batches.h: single batches, losses and metrics that layers add, of Keras 3 and tf_keras, for
test_on_batch.c and test_added.c.

  python3 -m venv venv
  venv/bin/pip install tensorflow-cpu keras tf_keras
  venv/bin/python recorded_batches.py > recorded_batches.h
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
import tf_keras


def values(shape, phase):
    count = int(np.prod(shape))
    return np.array([0.5 * np.sin(1 + 0.7 * i + phase) for i in range(count)], np.float32).reshape(shape)


def write(name, numbers):
    print(f"static const double {name}[] = {{")
    numbers = [float(n) for n in np.ravel(numbers)]
    for i in range(0, len(numbers), 5):
        print("    " + ", ".join(f"{n:.9g}" for n in numbers[i : i + 5]) + ",")
    print("};")


x1, x2 = values((6, 5), 0), values((6, 5), 10)
y1, y2 = np.array([0, 1, 2, 2, 1, 0], np.int32), np.array([2, 2, 0, 1, 0, 1], np.int32)
weights = np.array([0.5, 1, 2, 0, 1.5, 0.25], np.float32)
class_weights = {0: 1.0, 1: 2.5, 2: 0.5}
NAMES = "loss", "sparse_categorical_accuracy", "sparse_categorical_crossentropy"


def batches(name, k):
    model = k.Sequential([k.layers.Input((5,)), k.layers.Dense(4, "tanh"), k.layers.Dense(3, "softmax")])
    model.set_weights([values((5, 4), 20), np.zeros(4), values((4, 3), 30), np.zeros(3)])
    model.compile(k.optimizers.SGD(0.5), "sparse_categorical_crossentropy",
                  metrics=["sparse_categorical_accuracy"],
                  weighted_metrics=[k.metrics.SparseCategoricalCrossentropy()])
    more = {"reset_metrics": False} if k is tf_keras else {}
    logs = [model.train_on_batch(x1, y1, return_dict=True),
            model.train_on_batch(x2, y2, sample_weight=weights, return_dict=True),
            model.train_on_batch(x1, y1, class_weight=class_weights, return_dict=True),
            model.test_on_batch(x2, y2, sample_weight=weights, return_dict=True)]
    if more:
        logs += [model.train_on_batch(x1, y1, return_dict=True),
                 model.train_on_batch(x2, y2, return_dict=True, **more),
                 model.test_on_batch(x1, y1, return_dict=True, **more)]
    write(f"{name}_batches", [log[n] for log in logs for n in NAMES])
    write(f"{name}_predicted", model.predict_on_batch(x1))


def noted_layer(k):
    class Noted(k.layers.Layer):
        def __init__(self, **more):
            super().__init__(**more)
            self.dense = k.layers.Dense(4, "tanh")
            if k is keras:
                self.size = keras.metrics.Mean(name="size")

        def call(self, x):
            h = self.dense(x)
            wide = tf.cast(h, tf.float32)  # Keras 3 adds no float16 to the other losses
            self.add_loss(0.3 * tf.reduce_mean(tf.square(wide)))
            if k is keras:
                self.size.update_state(tf.abs(wide))
            else:
                self.add_metric(tf.abs(wide), name="size")
            return h

    return Noted()


def added(name, k, policy):
    k.mixed_precision.set_global_policy(policy)
    model = k.Sequential([k.layers.Input((5,)), noted_layer(k), k.layers.Dense(1, dtype="float32")])
    model.set_weights([values((5, 4), 20), np.zeros(4), values((4, 1), 30), np.zeros(1)])
    model.compile(k.optimizers.SGD(0.1), "mse", metrics=["mae"])
    x, y = values((8, 5), 3), values((8, 1), 5)
    history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0,
                        validation_data=(x1, values((6, 1), 7))).history
    write(f"{name}_added", [history[p + n] for p in ("", "val_") for n in ("loss", "mae", "size")])
    write(f"{name}_added_kernel", model.get_weights()[0])
    k.mixed_precision.set_global_policy("float32")


def alone(name, k):
    """Without a loss of compile, and without labels."""
    model = k.Sequential([k.layers.Input((5,)), noted_layer(k)])
    model.set_weights([values((5, 4), 20), np.zeros(4)])
    model.compile(k.optimizers.SGD(0.5))
    history = model.fit(values((8, 5), 3), batch_size=4, epochs=2, shuffle=False, verbose=0).history
    write(f"{name}_alone", [history[n] for n in ("loss", "size")])
    write(f"{name}_alone_kernel", model.get_weights()[0])


print("/* Made by recorded_batches.py with TensorFlow, Keras and tf_keras",
      f"{tf.__version__}, {keras.__version__}, {tf_keras.__version__}. */\n/* clang-format off */")
for name, k in ("keras3", keras), ("tf_keras", tf_keras):
    batches(name, k)
    added(name, k, "float32")
    added(f"{name}_mixed", k, "mixed_float16")
    alone(name, k)
print("/* clang-format on */")

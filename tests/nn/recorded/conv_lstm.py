# Records conv_lstm.inc, what ConvLSTM layers of Keras give, with TensorFlow 2.21 on a CPU:
#   (python conv_lstm.py keras3; python conv_lstm.py tf_keras) >conv_lstm.inc
# TensorFlow convolves with channels first on GPUs alone: those numbers are of the same layer with its
# channels last, on inputs whose channels are moved.
import sys

import numpy as np
import tensorflow as tf

generation = sys.argv[1]
if generation == "keras3":
    import keras
else:
    import tf_keras as keras
layers = keras.layers


def sines(shape, phase):
    count = int(np.prod(shape))
    return np.array([np.sin(0.7 * i + phase) * 0.6 for i in range(count)], np.float32).reshape(shape)


def last(x, first):
    return np.moveaxis(x, 2, -1) if first else x


def print_numbers(x):
    return "{%s}" % ", ".join("%.9g" % v for v in np.array(x).ravel())


cases = {
    "plain": (layers.ConvLSTM1D(2, 3, return_state=True), (2, 3, 5, 2), False),
    "strides": (
        layers.ConvLSTM2D(1, (2, 3), strides=(2, 1), padding="same", return_sequences=True,
                          return_state=True),
        (1, 2, 3, 4, 2),
        False,
    ),
    "dilation": (
        layers.ConvLSTM1D(2, 2, dilation_rate=2, go_backwards=True, use_bias=False, return_state=True),
        (1, 3, 5, 1),
        False,
    ),
    "first": (layers.ConvLSTM2D(2, 2, return_sequences=True, return_state=True), (1, 2, 2, 3, 4), True),
    "three_axes": (
        layers.ConvLSTM3D(1, (1, 2, 2), padding="same", return_state=True),
        (1, 2, 2, 2, 2, 2),
        False,
    ),
}
for name, (layer, shape, first) in cases.items():
    x = last(sines(shape, 0.3), first)
    layer.build(x.shape)
    layer.set_weights([sines(w.shape, 1.0 + i) for i, w in enumerate(layer.get_weights())])
    results = [np.array(y) for y in layer(tf.constant(x))]
    if first:
        results = [np.moveaxis(y, -1, 2 if y.ndim == 5 else 1) for y in results]
    print('{"%s", "%s", %s, %s},' % (generation, name, print_numbers(results[0]), print_numbers(results[2])))

#!/usr/bin/env python3
"""Models that tf2onnx writes of tf.keras load here, predict as TensorFlow does, and train as it does.

  onnx_tensorflow.py MIXTAPE [FOLDER] [--only PATTERN]

MIXTAPE is the program. For each model below, which tf2onnx writes into FOLDER (default: a temporary one),
operator sets 15 and 18:

  predictions of the file are those of TensorFlow within 1e-5 of the largest number,
  the file converted to .keras predicts the same bits,
  5 steps of SGD from the same weights, batch normalisation frozen, leave a model whose predictions are
  TensorFlow's after the same steps within 1e-4 of the largest number.

tf2onnx folds batch normalisation into the convolution before it, which is another model in training, so
that these models are compared in prediction alone. It writes a GRU of Keras 3 as Loop and ReverseSequence,
which is no model here. Ends with the operators that the files had. Not part of the tests: it needs
TensorFlow and tf2onnx. Exits with 1 if anything differs.
"""
import os
import pathlib
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow",
                  TF_ENABLE_ONEDNN_OPTS="0")
import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from keras import layers
from onnx_comparison import Comparison, difference

STEPS, RATE = 5, 0.05
comparison, operators = Comparison(__doc__, STEPS, RATE), set()


def gelu(x):
    """Keras's own is written by TensorFlow's Erfc, which tf2onnx 1.17 does not know."""
    return 0.5 * x * (1.0 + keras.ops.erf(x / 2**0.5))


def mlp():
    x = keras.Input((8,))
    y = layers.Dense(16, activation="relu")(x)
    return keras.Model(x, layers.Dense(4, activation="softmax")(layers.Dense(8, activation=gelu)(y)))


def convolution(x, filters, strides=1):
    y = layers.Conv2D(filters, 3, strides, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(y))


def cnn():
    """Channels last, with a shortcut: Transposes around each convolution."""
    x = keras.Input((16, 16, 3))
    y = layers.MaxPooling2D()(convolution(x, 8))
    y = layers.Add()([y, convolution(y, 8)])
    y = layers.AveragePooling2D(2)(convolution(y, 12, 2))
    y = layers.Flatten()(layers.Conv2D(6, 2, padding="valid", activation="swish")(y))
    return keras.Model(x, layers.Dense(5)(y))


def mobilenet():
    """Inverted residuals of MobileNetV2 (arXiv:1801.04381), small."""
    x = keras.Input((16, 16, 3))
    y = convolution(x, 8, 2)
    z = layers.Conv2D(24, 1, use_bias=False)(y)
    z = layers.ReLU(6.0)(layers.BatchNormalization()(z))
    z = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(z)
    z = layers.ReLU(6.0)(layers.BatchNormalization()(z))
    z = layers.BatchNormalization()(layers.Conv2D(8, 1, use_bias=False)(z))
    y = layers.Add()([y, z])
    y = layers.SeparableConv2D(12, 3, strides=2, padding="same", activation="hard_sigmoid")(y)
    return keras.Model(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(y)))


def lstm():
    x = keras.Input((7, 6))
    y = layers.LSTM(10, return_sequences=True)(x)
    return keras.Model(x, layers.Dense(3)(layers.LSTM(8)(y)))


class Places(layers.Layer):
    """A weight for each place and feature, which is added."""

    def build(self, shape):
        self.places = self.add_weight(shape=shape[1:], name="places")

    def call(self, x):
        return x + self.places


def bert():
    """Two layers of BERT (arXiv:1810.04805): words and places, post-normalisation."""
    ids = keras.Input((10,), dtype="int32")
    x = layers.LayerNormalization(epsilon=1e-12)(Places()(layers.Embedding(60, 32)(ids)))
    for _ in range(2):
        y = layers.MultiHeadAttention(4, 8)(x, x)
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, y]))
        y = layers.Dense(32)(layers.Dense(64, activation=gelu)(x))
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, y]))
    return keras.Model(ids, layers.Dense(16, activation="tanh")(x[:, 0]))


random = np.random.default_rng(0)
IMAGES = random.normal(size=(4, 16, 16, 3)).astype("float32")
SEQUENCES = random.normal(size=(3, 7, 6)).astype("float32")
MODELS = {
    "mlp": (mlp, random.normal(size=(3, 8)).astype("float32")),
    "cnn": (cnn, IMAGES),
    "mobilenet": (mobilenet, IMAGES),
    "lstm": (lstm, SEQUENCES),
    "bert": (bert, random.integers(0, 60, (3, 10)).astype("int32")),
}


def begin(model):
    """No biases of 0 and scales of 1, which tf2onnx would leave out; statistics do not train."""
    model.set_weights([w + 0.1 * random.normal(size=w.shape) for w in model.get_weights()])
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.trainable = False
            layer.set_weights([random.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()])


def write(model, x, path, opset):
    signature = [tf.TensorSpec([None, *x.shape[1:]], x.dtype, name="x")]
    proto, _ = tf2onnx.convert.from_function(tf.function(lambda x: model(x, training=False), signature),
                                             signature, opset=opset, output_path=str(path))
    onnx.checker.check_model(proto)
    operators.update(node.op_type for node in proto.graph.node)


def train(model, x, target):
    """Full batches of the mean squared error."""
    model.compile(keras.optimizers.SGD(RATE), "mean_squared_error")
    model.fit(x, target, batch_size=len(x), epochs=STEPS, shuffle=False, verbose=0)
    return model(x, training=False).numpy()


def check(name, model, x, folder):
    begin(model)
    y = model(x, training=False).numpy()
    target = (y + 0.1 * random.normal(size=y.shape)).astype("float32")
    weights = model.get_weights()
    np.savez(folder / f"{name}.npz", x=x, y=target)
    data = ["--data", folder / f"{name}.npz", "--batch-size", len(x)]
    expected = train(model, x, target)
    model.set_weights(weights)
    if difference(y, expected) < 1e-3:
        raise RuntimeError("TensorFlow's predictions have not moved")
    folded = any(isinstance(layer, layers.BatchNormalization) for layer in model.layers)
    for opset in 15, 18:
        title = f"{name}_{opset}"
        path, converted = folder / f"{title}.onnx", folder / f"{title}.keras"
        try:
            write(model, x, path, opset)
            comparison.compare_predictions(title, path, converted, data, y)
            found = difference(comparison.train(title, converted, data), expected)
            if folded:
                print(f"{title:22} trained      {found:.2e} (folded: another model)", flush=True)
            else:
                comparison.say(title, "trained", found, 1e-4)
        except RuntimeError as error:
            comparison.fail(title, error)


with tempfile.TemporaryDirectory() as temporary:
    for key, (make, inputs) in MODELS.items():
        if comparison.options.only.fullmatch(key):
            keras.utils.set_random_seed(1)
            check(key, make(), inputs, comparison.options.folder or pathlib.Path(temporary))
print("operators:", " ".join(sorted(operators)))
comparison.end()

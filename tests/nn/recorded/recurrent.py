# Records recurrent.inc, what recurrent layers of Keras give under 16-bit policies: python recurrent.py keras3
# (or tf_keras, which gives the same) >recurrent.inc, with TensorFlow 2.21 on a CPU.
import sys

import numpy as np
import tensorflow as tf

if sys.argv[1] == "keras3":
    import keras
else:
    import tf_keras as keras
layers = keras.layers


def sines(shape, phase):
    count = int(np.prod(shape))
    return np.array([np.sin(0.7 * i + phase) * 0.6 for i in range(count)], np.float32).reshape(shape)


makers = {
    "lstm": lambda policy: layers.LSTM(3, return_sequences=True, dtype=policy),
    "gru": lambda policy: layers.GRU(3, return_sequences=True, dtype=policy),
    "gru_before": lambda policy: layers.GRU(3, return_sequences=True, reset_after=False, dtype=policy),
    "simple": lambda policy: layers.SimpleRNN(3, return_sequences=True, dtype=policy),
}
for name in ["mixed_float16", "mixed_bfloat16"]:
    for kind, make in makers.items():
        layer = make(keras.mixed_precision.Policy(name) if sys.argv[1] == "tf_keras" else name)
        layer.build((2, 4, 3))
        layer.set_weights([sines(w.shape, 1.0 + i) for i, w in enumerate(layer.get_weights())])
        y = tf.cast(layer(tf.constant(sines((2, 4, 3), 0.3))), tf.float32)
        print('{"%s", "%s", {%s}},' % (name, kind, ", ".join("%.9g" % v for v in np.array(y).ravel())))

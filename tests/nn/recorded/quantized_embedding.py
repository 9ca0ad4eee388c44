# Records quantized_embedding.inc, what keras.layers.Embedding and ReversibleEmbedding store and give in int8
# and int4: python quantized_embedding.py >quantized_embedding.inc, with Keras 3.15.1, TensorFlow 2.21, CPU.
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import keras
import numpy as np
import tensorflow as tf

Q = keras.quantizers
CONFIGS = {
    "int8": lambda: Q.Int8QuantizationConfig(),
    "int8-weights": lambda: Q.Int8QuantizationConfig(activation_quantizer=None),
    "int4": lambda: Q.Int4QuantizationConfig(),
    "int4-block2": lambda: Q.Int4QuantizationConfig(block_size=2),
    "int4-channel": lambda: Q.Int4QuantizationConfig(block_size=None),
    "int4-inputs": lambda: Q.Int4QuantizationConfig(None, activation_quantizer=Q.AbsMaxQuantizer()),
}


def sines(shape, phase):
    count = int(np.prod(shape))
    return np.array([np.sin(0.7 * i + phase) * 0.6 for i in range(count)], np.float32).reshape(shape)


def text(values):
    return "{%s}" % ", ".join("%.9g" % v for v in np.array(tf.cast(values, tf.float32)).ravel())


def record(mode, policy, kind, width=5, rows=4):
    more = {"untied": {"tie_weights": False}, "capped": {"logit_soft_cap": 0.5}}.get(kind, {})
    make = keras.layers.Embedding if kind == "plain" else keras.layers.ReversibleEmbedding
    layer = make(rows, width, dtype=policy, **more)
    layer.build((2, 3))
    layer.set_weights([sines(w.shape, 1.0 + i) for i, w in enumerate(layer.get_weights())])
    layer.quantize(mode.split("-")[0], config=CONFIGS[mode]())
    out = [layer(tf.constant([[0, 2, 1], [3, 3, 0]])), [], []]
    if kind != "plain":
        hidden = tf.cast(sines((2, 3, width), 0.3), layer.compute_dtype)
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            out[1] = layer(hidden, reverse=True)
            loss = tf.reduce_sum(tf.cast(out[1], tf.float32) * sines(out[1].shape, 0.2))
        out[2] = tape.gradient(loss, hidden)
    weights = [text(w) for w in layer.variables]
    names = '{"%s"}' % '", "'.join(w.name for w in layer.variables)
    print('{"%s", "%s", "%s", %d,\n %s,' % (mode, policy, kind, len(weights), names))
    print(" {%s}," % ",\n  ".join(weights))
    print(" %s},\n" % ",\n ".join(text(values) if len(values) else "{0}" for values in out), end="")


for mode in CONFIGS:
    for kind in ["tied", "untied"]:
        record(mode, "float32", kind)
    record(mode, "mixed_bfloat16", "tied")
for mode in ["int8", "int4", "int4-channel"]:
    record(mode, "float32", "plain")
    record(mode, "float32", "capped")
record("int4-block2", "bfloat16", "untied")
record("int8", "float64", "untied")
record("int4-block2", "mixed_float16", "tied")

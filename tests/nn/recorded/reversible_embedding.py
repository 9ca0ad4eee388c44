# Records reversible_embedding.inc, what keras.layers.ReversibleEmbedding gives both ways, and gradients of
# its tables: python reversible_embedding.py >reversible_embedding.inc, with Keras 3.15.1, TensorFlow 2.21,
# CPU.
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import keras
import numpy as np
import tensorflow as tf

ROWS, WIDTH = 5, 4


def sines(shape, phase):
    count = int(np.prod(shape))
    return np.array([np.sin(0.7 * i + phase) * 0.6 for i in range(count)], np.float32).reshape(shape)


def text(values):
    return "{%s}" % ", ".join("%.9g" % v for v in np.array(tf.cast(values, tf.float32)).ravel())


def record(policy, tie, reverse_dtype, cap):
    layer = keras.layers.ReversibleEmbedding(
        ROWS, WIDTH, tie_weights=tie, reverse_dtype=reverse_dtype, logit_soft_cap=cap, mask_zero=True,
        dtype=policy
    )
    layer.build((2, 3))
    layer.set_weights([sines(w.shape, 1.0 + i) for i, w in enumerate(layer.get_weights())])
    ids = tf.constant([[0, 2, 1], [3, 3, 0]])
    hidden = tf.cast(sines((2, 3, WIDTH), 0.3), layer.compute_dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(hidden)
        rows, logits = layer(ids), layer(hidden, reverse=True)
        loss = tf.reduce_sum(tf.cast(rows, tf.float32) * sines(rows.shape, 0.1))
        loss += tf.reduce_sum(tf.cast(logits, tf.float32) * sines(logits.shape, 0.2))
    gradients = [tape.gradient(loss, v.value) for v in layer.trainable_variables]
    gradients = [tf.convert_to_tensor(g) for g in gradients] + [tf.zeros((WIDTH, ROWS))] * tie
    given = ', .reverse_dtype = "%s"' % reverse_dtype if reverse_dtype else ""
    given += ", .logit_soft_cap = %g" % cap if cap else ""
    given += "" if tie else ", .untied_weights = true"
    print('{{.dtype = "%s"%s},\n "%s", "%s",' % (policy, given, rows.dtype.name, logits.dtype.name))
    print(" %s,\n %s,\n %s,\n %s,\n %s}," % (text(rows), text(logits), text(gradients[0]), text(gradients[1]),
                                            text(tape.gradient(loss, hidden))))


for policy in ["float32", "float64", "mixed_float16", "mixed_bfloat16", "bfloat16"]:
    record(policy, True, None, None)
for policy in ["float32", "mixed_bfloat16"]:
    record(policy, False, None, None)
    record(policy, True, None, 0.5)
record("mixed_float16", True, "float32", 0.25)
record("float32", True, "bfloat16", None)
record("mixed_bfloat16", False, "float64", None)

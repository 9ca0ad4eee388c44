"""Records functions of TensorFlow as layers of tf_keras's functional models, one each: the node of its file
and what it gives, for tests/saving/test_tf_operations.c. With tf_keras 2.21, TensorFlow 2.21, CPU.

    python tests/oracle/tf_functions.py > tests/saving/recorded/tf_functions.inc
"""
import json
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
import tf_keras

m, nn, image, linalg = tf.math, tf.nn, tf.image, tf.linalg
X = np.array([1, -2, 3, -4, 5, -6], np.float32)
PLAIN, INSIDE, POSITIVE = (1, 0), (0.125, 0), (0.125, 1.25)  # x is X times the first plus the second


def row(function, domain=PLAIN, images=False):
    shape = (2, 1, 3) if images else (2, 3)
    x = tf_keras.Input(shape, name="x")
    y = function(x)
    model = tf_keras.Model(x, y)
    made = model.predict_on_batch((X * domain[0] + domain[1]).reshape(1, *shape))
    values = [np.asarray(v) for v in tf.nest.flatten(made)]
    layers = json.loads(model.to_json())["config"]["layers"][1:]
    assert len(layers) == 1, [layer["config"]["function"] for layer in layers]
    node = json.dumps(layers[0]["inbound_nodes"][0]).replace('"', "'")
    numbers = ", ".join("%.9g" % v for v in values[0].ravel().astype(np.float64))
    print('{"%s",\n "%s",\n %d,\n {%s}, .scale = %g, .shift = %g, .image = %d},'
          % (layers[0]["config"]["function"], node, values[0].size, numbers, *domain, images))


print("/* Written by tests/oracle/tf_functions.py with tf_keras %s. */" % tf_keras.__version__)
for name in ("sinh cosh asinh atan bessel_i0 erfc tan rint log_sigmoid real conj imag angle").split():
    row(getattr(m, name))
for name in "acos asin atanh erfinv".split():
    row(getattr(m, name), INSIDE)
row(m.acosh, (0.125, 2.25))
for name in "ndtri erfcinv".split():
    row(getattr(m, name), (0.0625, 0.5))
for function in (m.xlogy, m.xlog1py, m.xdivy, m.multiply_no_nan, tf.realdiv, m.atan2, tf.truncatemod):
    row(lambda x, f=function: f(x, [1.5, 0.5, 2.0]), (0.5, 1))
    row(lambda x, f=function: f(x, x), POSITIVE)
row(lambda x: m.multiply_no_nan(x, [0.0, 1.0, 2.0]))
row(lambda x: m.reduce_euclidean_norm(x, axis=1))
row(lambda x: m.scalar_mul(2.5, x))
row(lambda x: m.count_nonzero(x, axis=2))
row(lambda x: tf.truncatediv(x, 4.0))
for exclusive in False, True:
    for reverse in False, True:
        row(lambda x: m.cumsum(x, axis=2, exclusive=exclusive, reverse=reverse))
        row(lambda x: m.cumprod(x, axis=1, exclusive=exclusive, reverse=reverse))
row(nn.l2_loss)
row(nn.crelu)
row(lambda x: nn.max_pool1d(x, 2, 1, "SAME"))
row(lambda x: nn.avg_pool1d(x, 2, 2, "VALID"))
row(lambda x: nn.max_pool2d(x, 2, 1, "SAME"), images=True)
row(lambda x: nn.avg_pool2d(x, [2, 1], 1, "VALID"), images=True)
row(lambda x: nn.avg_pool(x, [1, 2, 1, 1], 1, "VALID"), images=True)
row(lambda x: nn.sigmoid_cross_entropy_with_logits(labels=x, logits=[[[0.5, 1.0, -2.0]] * 2]), (0.0625, 0.5))
row(lambda x: nn.softmax_cross_entropy_with_logits(labels=x, logits=[[[0.5, 1.0, -2.0]] * 2]), (0.0625, 0.5))
row(lambda x: tf.bitcast(x, "int32"))
row(lambda x: tf.slice(x, [0, 1, 0], [-1, 1, 2]))
row(lambda x: tf.clip_by_norm(x, 2.0, axes=[2]))
row(lambda x: tf.clip_by_norm(x, 5.0))
row(lambda x: tf.saturate_cast(x, "uint8"))
row(lambda x: linalg.band_part(x, 0, 1))
row(lambda x: linalg.band_part(x, -1, 0))
for function in (linalg.trace, linalg.diag_part, linalg.matrix_transpose, linalg.adjoint):
    row(function)
row(lambda x: linalg.set_diag(x, [[7.0, 8.0]]))
for function in (image.flip_left_right, image.flip_up_down, image.transpose, image.rot90,
                 image.rgb_to_grayscale, image.rgb_to_yiq, image.yiq_to_rgb, image.rgb_to_yuv,
                 image.yuv_to_rgb,
                 image.per_image_standardization):
    row(function, images=True)
row(image.rgb_to_hsv, POSITIVE, True)
row(image.hsv_to_rgb, (0.0625, 0.5), True)
row(lambda x: image.rot90(x, 3), images=True)
row(lambda x: image.resize(x, (1, 2)), images=True)
row(lambda x: image.resize(x, (3, 1), method="nearest"), images=True)
row(lambda x: image.extract_patches(x, [1, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), images=True)
row(lambda x: image.crop_to_bounding_box(x, 1, 0, 1, 1), images=True)
row(lambda x: image.pad_to_bounding_box(x, 0, 1, 2, 2), images=True)
row(lambda x: image.adjust_brightness(x, 0.25), images=True)
row(lambda x: image.adjust_contrast(x, 2.0), images=True)
row(lambda x: image.adjust_gamma(x, 2.0, 0.5), POSITIVE, True)

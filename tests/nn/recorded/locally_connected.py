# Records locally_connected.inc, what LocallyConnected1D and 2D of tf_keras give in their three
# implementations, and the gradient of the kernel: python locally_connected.py >locally_connected.inc, with
# tf_keras 2.21, TensorFlow 2.21, CPU.
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
import tf_keras


def sines(shape, phase):
    count = int(np.prod(shape))
    return np.array([np.sin(0.7 * i + phase) * 0.6 for i in range(count)], np.float32).reshape(shape)


def text(values):
    return "{%s}" % ", ".join("%.9g" % v for v in np.array(tf.cast(values, tf.float32)).ravel())


def record(axes, implementation, data_format, padding, policy):
    first = data_format == "channels_first"
    spatial, channels = ((7,), (4, 3))[axes - 1], (3, 2)[axes - 1]
    kind = tf_keras.layers.LocallyConnected1D if axes == 1 else tf_keras.layers.LocallyConnected2D
    layer = kind(2, (3, (3, 2))[axes - 1], strides=(2, (2, 1))[axes - 1], padding=padding,
                 data_format=data_format, implementation=implementation, dtype=policy)
    shape = (2, channels, *spatial) if first else (2, *spatial, channels)
    x = tf.cast(sines(shape, 0.3), layer.compute_dtype)
    layer.build(x.shape)
    layer.set_weights([sines(w.shape, 1.0 + i) for i, w in enumerate(layer.get_weights())])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tf.reduce_sum(tf.cast(y, tf.float32) * sines(y.shape, 0.1))
    of_kernel, of_bias, of_x = tape.gradient(loss, [*layer.trainable_variables, x])
    product = float(tf.reduce_sum(tf.convert_to_tensor(of_kernel) * sines(of_kernel.shape, 0.2)))
    print('{%d, "%s",\n {.filters = 2, .kernel_size = %s, .strides = %s, .padding = "%s",\n'
          '  .data_format = "%s", .implementation = %d, .dtype = "%s"},\n %s,\n %.9g,\n %s,\n %s},'
          % (axes, "x".join(map(str, of_kernel.shape)), ("MIX_SHAPE(3)", "MIX_SHAPE(3, 2)")[axes - 1],
             ("MIX_SHAPE(2)", "MIX_SHAPE(2, 1)")[axes - 1], padding, data_format, implementation, policy,
             text(y), product, text(of_bias), text(of_x)))


for policy in "float32", "mixed_float16":
    for axes in 1, 2:
        for implementation in 1, 2, 3:
            for data_format in "channels_last", "channels_first":
                for padding in ("valid", "same")[:1 + (implementation > 1)]:
                    record(axes, implementation, data_format, padding, policy)

"""The rows in TensorFlow with tf_keras, as compiled functions."""
import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf_keras as keras  # noqa: E402

WIDTH, CLASSES = 784, 10
UNITS, HEADS = 512, 8  # of the attention layer of `mixtape bench --only layers`
COMPILED = False  # by XLA


def begin(threads, compiled, _folder):
    global COMPILED
    COMPILED = compiled
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf.__version__


def policy_of(dtype):
    return dtype if dtype == "float32" else "mixed_" + dtype


def guide(dtype, units, batch):
    keras.mixed_precision.set_global_policy(policy_of(dtype))
    inputs = keras.Input((WIDTH,))
    x = keras.layers.Dense(units, activation="relu")(inputs)
    x = keras.layers.Dense(units, activation="relu")(x)
    x = keras.layers.Dense(CLASSES)(x)
    model = keras.Model(inputs, keras.layers.Activation("softmax", dtype="float32")(x))
    model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.RMSprop(),
                  metrics=["accuracy"])
    train = model.make_train_function()
    data = (tf.constant(np.random.rand(batch, WIDTH).astype("float32")),
            tf.constant(np.arange(batch) * 7 % CLASSES))
    batches = iter(tf.data.Dataset.from_tensors(data).repeat())
    return (lambda: [float(value) for value in train(batches).values()],)


def convolution(dtype, batch, size, channels, filters, cells, stride, multiplier=1):
    """A convolution with a bias, forward and backward, as compiled functions of given tensors."""
    out = -(-size // stride)

    def numbers(*shape):
        return tf.cast(tf.random.uniform(shape) - 0.5, dtype)
    x, bias = numbers(batch, size, size, channels), numbers(filters or channels * multiplier)
    kernel = numbers(cells, cells, channels, filters or multiplier)
    dy = numbers(batch, out, out, filters or channels * multiplier)
    conv = tf.nn.conv2d if filters else tf.nn.depthwise_conv2d
    strides = [1, stride, stride, 1]

    @tf.function
    def forward():
        return tf.nn.bias_add(conv(x, kernel, strides, "SAME"), bias)

    @tf.function
    def backward():
        dx = ()  # nothing asks for the gradient of images
        if filters:
            if channels > 3:
                dx = tf.raw_ops.Conv2DBackpropInput(input_sizes=tf.shape(x), filter=kernel, out_backprop=dy,
                                                    strides=strides, padding="SAME")
            dk = tf.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=tf.shape(kernel), out_backprop=dy,
                                                 strides=strides, padding="SAME")
        else:
            dx = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
                input_sizes=tf.shape(x), filter=kernel, out_backprop=dy, strides=strides, padding="SAME")
            dk = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=tf.shape(kernel), out_backprop=dy, strides=strides, padding="SAME")
        return dx, dk, tf.raw_ops.BiasAddGrad(out_backprop=dy)
    return forward, backward


def recurrent(dtype, kind, units, steps, batch):
    """A recurrent layer of tf_keras, forward, and forward and backward as training runs them."""
    layer = getattr(keras.layers, kind)(units, return_sequences=True, dtype=policy_of(dtype))
    x = tf.cast(tf.random.uniform((batch, steps, units)) - 0.5, dtype)
    dy = tf.cast(tf.random.uniform((batch, steps, units)) - 0.5, dtype)
    layer.build(x.shape)

    @tf.function(jit_compile=COMPILED)
    def forward():
        return layer(x, training=True)

    @tf.function(jit_compile=COMPILED)
    def both():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        return y, tape.gradient(y, [x] + layer.trainable_weights, dy)
    return forward, both


def attention(dtype, batch, length):
    """A MultiHeadAttention layer, forward, and forward and backward."""
    layer = keras.layers.MultiHeadAttention(HEADS, UNITS // HEADS,
                                            dtype=policy_of(dtype))
    x, dy = (tf.cast(tf.random.uniform((batch, length, UNITS)) - 0.5, dtype) for _ in range(2))
    layer(x, x)

    @tf.function
    def forward():
        return layer(x, x)

    @tf.function
    def backward():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, x)
        return tape.gradient(y, [x, *layer.trainable_variables], dy)
    return forward, backward


def transformer(dtype, batch, length, layers, units, heads, tokens):
    """The training step of the official model, as `mixtape bench --model transformer` has it."""
    keras.mixed_precision.set_global_policy(policy_of(dtype))
    kl = keras.layers
    table = kl.Embedding(tokens, units)

    def norm(x):
        return kl.LayerNormalization(epsilon=1e-6, dtype="float32")(x)

    def add(x, y):
        return kl.Add()([x, kl.Dropout(0.1)(y)])

    def attend(x, memory=None, causal=False):
        query = norm(x)
        return add(x, kl.MultiHeadAttention(heads, units // heads, dropout=0.1, use_bias=False)(
            query, query if memory is None else memory, use_causal_mask=causal))

    def feed_forward(x):
        return add(x, kl.Dense(units)(kl.Dropout(0.1)(kl.Dense(4 * units, activation="relu")(norm(x)))))
    inputs, targets = keras.Input((length,), dtype="int32"), keras.Input((length,), dtype="int32")
    memory = kl.Dropout(0.1)(table(inputs))
    for _ in range(layers):
        memory = feed_forward(attend(memory))
    memory = norm(memory)
    x = kl.Dropout(0.1)(kl.Lambda(lambda x: tf.pad(x, [[0, 0], [1, 0], [0, 0]])[:, :-1])(table(targets)))
    for _ in range(layers):
        x = feed_forward(attend(attend(x, causal=True), memory))

    def logits(x):
        weights = tf.cast(table.embeddings, table.compute_dtype)
        return tf.matmul(tf.cast(x, table.compute_dtype), weights, transpose_b=True)
    x = kl.Lambda(logits)(norm(x))
    table(tf.zeros((1, 1), "int32"))
    model = keras.Model([inputs, targets], kl.Activation("softmax", dtype="float32")(x))
    model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.RMSprop(),
                  metrics=["accuracy"])
    train = model.make_train_function()
    rows = tf.random.uniform((2, batch, length), 1, tokens, dtype=tf.int32)
    batches = iter(tf.data.Dataset.from_tensors(((rows[0], rows[1]), rows[1])).repeat())
    return (lambda: [float(value) for value in train(batches).values()],)


def resnet(dtype, side, batch):
    """ResNet-50 v1.5 as `--model resnet50` has it, without biases: its gradients, the images' too."""
    keras.mixed_precision.set_global_policy(policy_of(dtype))
    kl = keras.layers

    def block(x, filters, cells, stride=1, relu=True):
        x = kl.BatchNormalization()(kl.Conv2D(filters, cells, stride, padding="same", use_bias=False)(x))
        return kl.Activation("relu")(x) if relu else x
    inputs = keras.Input((side, side, 3))
    x = kl.MaxPooling2D(3, 2, padding="same")(block(inputs, 64, 7, 2))
    for stage, count in enumerate((3, 4, 6, 3)):
        filters = 64 << stage
        for i in range(count):
            stride = 2 if i == 0 and stage else 1
            y = block(block(block(x, filters, 1), filters, 3, stride), 4 * filters, 1, relu=False)
            short = block(x, 4 * filters, 1, stride, relu=False) if i == 0 else x
            x = kl.Activation("relu")(kl.Add()([y, short]))
    x = kl.Dense(1000)(kl.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, kl.Activation("softmax", dtype="float32")(x))
    images, dy = tf.random.uniform((batch, side, side, 3)), tf.random.uniform((batch, 1000))

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            tape.watch(images)
            y = model(images, training=True)
        return y, tape.gradient(y, [images, *model.trainable_weights], dy)
    return (both,)

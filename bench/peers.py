#!/usr/bin/env python3
"""The guide's training step in TensorFlow (tf_keras) and PyTorch: rows "best peer" of docs/PERFORMANCE.md.

It times whichever of the two is installed; nothing of the project needs it. Run it in an environment of its
own, on the same machine and in the same minutes as
`mixtape bench --only steps --units 4096 --batch-size 128`:

    python3 -m venv /tmp/peers
    /tmp/peers/bin/pip install tensorflow-cpu tf_keras torch
    /tmp/peers/bin/python bench/peers.py

mixed_float16 runs through XLA, without which TensorFlow takes many times as long. At batch 8192 it takes
minutes and runs only with --all.
"""
import argparse
import os
import statistics
import time

WIDTH, CLASSES = 784, 10


def report(peer, policy, batch, seconds):
    print(f"{peer:18s} {policy:15s} batch {batch:5d}: median {1e3 * statistics.median(seconds):8.1f} ms, "
          f"best {1e3 * min(seconds):8.1f}", flush=True)


def timed(step, count):
    step()  # traces, compiles, allocates
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    return seconds


def tensorflow_step(policy, units, batch):
    import numpy as np
    import tensorflow as tf
    import tf_keras as keras
    keras.mixed_precision.set_global_policy(policy)
    inputs = keras.Input((WIDTH,))
    x = keras.layers.Dense(units, activation="relu")(inputs)
    x = keras.layers.Dense(units, activation="relu")(x)
    x = keras.layers.Dense(CLASSES)(x)
    model = keras.Model(inputs, keras.layers.Activation("softmax", dtype="float32")(x))
    model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.RMSprop(),
                  metrics=["accuracy"], jit_compile=policy == "mixed_float16")
    train = model.make_train_function()
    data = (tf.constant(np.random.rand(batch, WIDTH).astype("float32")),
            tf.constant(np.arange(batch) * 7 % CLASSES))
    batches = iter(tf.data.Dataset.from_tensors(data).repeat())
    return lambda: [float(value) for value in train(batches).values()]


def torch_step(dtype, units, batch):
    import torch
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(WIDTH, units), torch.nn.ReLU(), linear(units, units), torch.nn.ReLU(),
                                linear(units, CLASSES))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-7)
    x, y = torch.rand(batch, WIDTH), torch.arange(batch) * 7 % CLASSES
    loss_of = torch.nn.CrossEntropyLoss()
    narrow = getattr(torch, dtype if dtype != "float32" else "bfloat16")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=narrow, enabled=dtype != "float32"):
            loss = loss_of(model(x).float(), y)
        loss.backward()
        optimizer.step()
        loss.item()
    return step


def tensorflow_layer(dtype, batch, size, channels, filters, cells, stride, multiplier=1):
    """A convolution with a bias, forward and backward, as compiled functions of given tensors."""
    import tensorflow as tf
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


def torch_layer(dtype, batch, size, channels, filters, cells, stride, multiplier=1):
    import torch
    narrow = getattr(torch, dtype)
    conv = torch.nn.Conv2d(channels, filters or channels * multiplier, cells, stride, cells // 2,
                           groups=1 if filters else channels).to(narrow)
    conv = conv.to(memory_format=torch.channels_last)
    x = torch.rand(batch, channels, size, size).to(narrow).to(memory_format=torch.channels_last)
    x.requires_grad_(True)
    y = conv(x)
    dy = torch.rand_like(y)

    def forward():
        with torch.no_grad():
            conv(x)

    def backward():
        sources = (x, conv.weight, conv.bias)[channels == 3:]  # nothing asks for the gradient of images
        torch.autograd.grad(y, sources, dy, retain_graph=True)
    return forward, backward


# The rows of `mixtape bench --only layers`: size, channels, filters (0: depthwise), cells, stride, and the
# filters of a channel.
LAYERS = {"3x3, 64 to 64, 56x56": (56, 64, 64, 3, 1),
          "1x1, 256 to 64, 56x56": (56, 256, 64, 1, 1),
          "7x7 stride 2, 3 to 64, 224x224": (224, 3, 64, 7, 2),
          "3x3 stride 2, 128 to 256, 56x56": (56, 128, 256, 3, 2),
          "depthwise 3x3, 128, 28x28": (28, 128, 0, 3, 1),
          "depthwise 3x3, 128 times 2, 28x28": (28, 128, 0, 3, 1, 2)}


def tensorflow_recurrent(dtype, kind, units, steps, batch, compiled=False):
    """A recurrent layer of tf_keras, forward, and forward and backward as training runs them."""
    import tensorflow as tf
    import tf_keras as keras
    policy = dtype if dtype == "float32" else "mixed_" + dtype
    layer = getattr(keras.layers, kind)(units, return_sequences=True, dtype=policy)
    x = tf.cast(tf.random.uniform((batch, steps, units)) - 0.5, dtype)
    dy = tf.cast(tf.random.uniform((batch, steps, units)) - 0.5, dtype)
    layer.build(x.shape)

    @tf.function(jit_compile=compiled)
    def forward():
        return layer(x, training=True)

    @tf.function(jit_compile=compiled)
    def both():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        return y, tape.gradient(y, [x] + layer.trainable_weights, dy)
    return forward, both


def compiled_recurrent(dtype, *sizes):
    return tensorflow_recurrent(dtype, *sizes, compiled=True)


def torch_recurrent(dtype, kind, units, steps, batch):
    import torch
    narrow = getattr(torch, dtype)
    layer = getattr(torch.nn, kind)(units, units, batch_first=True).to(narrow)
    x = (torch.rand(batch, steps, units) - 0.5).to(narrow).requires_grad_(True)
    dy = (torch.rand(batch, steps, units) - 0.5).to(narrow)

    def forward():
        with torch.no_grad():
            layer(x)

    def both():
        torch.autograd.grad(layer(x)[0], (x, *layer.parameters()), dy)
    return forward, both


# The rows of recurrent layers: class, units, steps, batch.
RECURRENT = {"LSTM, 256 units, 128 steps": ("LSTM", 256, 128, 32),
             "GRU, 256 units, 128 steps": ("GRU", 256, 128, 32),
             "LSTM, 64 units, 128 steps": ("LSTM", 64, 128, 1),
             "GRU, 64 units, 128 steps": ("GRU", 64, 128, 1)}


UNITS, HEADS = 512, 8  # of the attention layer of `mixtape bench --only layers`


def tensorflow_attention(dtype, batch, length):
    """A MultiHeadAttention layer, forward, and forward and backward."""
    import tensorflow as tf
    import tf_keras as keras
    layer = keras.layers.MultiHeadAttention(HEADS, UNITS // HEADS,
                                            dtype="mixed_bfloat16" if dtype == "bfloat16" else dtype)
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


def torch_attention(dtype, batch, length):
    import torch
    layer = torch.nn.MultiheadAttention(UNITS, HEADS, batch_first=True)
    narrow = getattr(torch, dtype)
    x, dy = (torch.rand(batch, length, UNITS).to(narrow) - 0.5 for _ in range(2))
    x.requires_grad_(True)

    def call():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != "float32"):
            return layer(x, x, x, need_weights=False)[0]

    def forward():
        with torch.no_grad():
            call()

    def backward():
        torch.autograd.grad(call(), [x, *layer.parameters()], dy)
    return forward, backward


def tensorflow_transformer(dtype, batch, length, layers, units, heads, tokens):
    """The training step of the official model, as `mixtape bench --model transformer` has it."""
    import tensorflow as tf
    import tf_keras as keras
    keras.mixed_precision.set_global_policy("mixed_bfloat16" if dtype == "bfloat16" else dtype)
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


def torch_transformer(dtype, batch, length, layers, units, heads, tokens):
    import torch
    table = torch.nn.Embedding(tokens, units)
    model = torch.nn.Transformer(units, heads, layers, layers, 4 * units, 0.1, batch_first=True,
                                 norm_first=True)
    optimizer = torch.optim.RMSprop([*table.parameters(), *model.parameters()], lr=1e-3, alpha=0.9, eps=1e-7)
    inputs, targets = torch.randint(1, tokens, (2, batch, length))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(length)
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != "float32"):
            before = torch.nn.functional.pad(table(targets), (0, 0, 1, 0))[:, :-1]
            y = model(table(inputs), before, tgt_mask=causal, tgt_is_causal=True)
            logits = torch.nn.functional.linear(y, table.weight)
        loss = loss_of(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        loss.item()
    return (step,)


def torch_decoding(dtype, batch, window, layers, units, heads, tokens):
    """The model of table decoding: a token at the last position with kept keys, and the whole window."""
    import torch
    from torch.nn import functional
    linear, norm = torch.nn.Linear, torch.nn.LayerNorm
    tables = torch.nn.Embedding(tokens, units), torch.nn.Embedding(window, units)
    blocks = [(norm(units), linear(units, 3 * units), linear(units, units), norm(units),
               linear(units, 4 * units), linear(4 * units, units)) for _ in range(layers)]
    last = norm(units), linear(units, tokens)
    if dtype != "float32":
        for part in (*tables, *last, *(part for block in blocks for part in block)):
            part.to(getattr(torch, dtype))
    kind = tables[0].weight.dtype
    caches = [torch.zeros(2, batch, heads, window, units // heads, dtype=kind) for _ in range(layers)]
    ids, places = torch.full((batch, window), 7), torch.arange(window)

    def run(first):
        with torch.inference_mode():
            x = tables[0](ids[:, first:]) + tables[1](places[first:])
            for (before, attention, output, after, wide, narrow), cache in zip(blocks, caches):
                shape = (batch, window - first, 3, heads, units // heads)
                q, k, v = attention(before(x)).view(shape).permute(2, 0, 3, 1, 4)
                cache[0, :, :, first:], cache[1, :, :, first:] = k, v
                y = functional.scaled_dot_product_attention(q, cache[0], cache[1], is_causal=first == 0)
                x = x + output(y.transpose(1, 2).flatten(2))
                x = x + narrow(functional.gelu(wide(after(x))))
            return last[1](last[0](x))[:, -1]
    return lambda: run(window - 1), lambda: run(0)


# Rows: `mixtape bench --only layers` (batch 16), `bench --only decoding`, and
# `mixtape bench --model transformer --layers 4 --units 256 --classes 8000 --length 64 --batch-size 16`.
ATTENTION = [("attention 512, 8 heads, 128 tokens", ("forward", "backward"), tensorflow_attention,
              torch_attention, (16, 128), 12),
             ("attention 512, 8 heads, 1024 tokens", ("forward", "backward"), tensorflow_attention,
              torch_attention, (16, 1024), 3),
             ("Transformer step, 4 layers of 256", ("step",), tensorflow_transformer, torch_transformer,
              (16, 64, 4, 256, 8, 8000), 8),
             *((f"GPT, 512 positions, batch {batch}", ("kept", "whole"), None, torch_decoding,
                (batch, 512, 6, 384, 6, 4096), 20) for batch in (1, 8))]


def time_attention(threads, peer):
    """One peer a process, because the two bring LLVMs that do not agree. Processor seconds tell more than the
    clock's where other work runs."""
    if peer == "tensorflow":
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    else:
        import torch
        torch.set_num_threads(threads)
    for name, passes, of_tensorflow, of_torch, sizes, count in ATTENTION:
        for dtype in "float32", "bfloat16":
            make = of_tensorflow if peer == "tensorflow" else of_torch
            runs = make(dtype, *sizes) if make else ()
            for label, run in zip(passes, runs):
                run()
                begin = time.process_time()
                seconds = timed(run, count)
                each = (time.process_time() - begin) / (count + 1)
                median = statistics.median(seconds)
                print(f"{peer:12s} {name:36s} {label:8s} {dtype:9s} median {1e3 * median:9.2f} ms, "
                      f"best {1e3 * min(seconds):9.2f}, processor {1e3 * each:9.2f}", flush=True)


def time_rows(peer, make, dtypes, table, labels):
    for name, sizes in table.items():
        for dtype in dtypes:
            try:
                for label, run in zip(labels, make(dtype, *sizes)):
                    seconds = timed(run, 30)
                    print(f"{peer:18s} {name:32s} {label:8s} {dtype:9s} median "
                          f"{1e3 * statistics.median(seconds):8.3f} ms, best {1e3 * min(seconds):8.3f}",
                          flush=True)
            except Exception as error:  # a dtype without a kernel on this processor
                print(f"{peer:18s} {name:32s} {dtype:9s} {type(error).__name__}", flush=True)


def time_layers(threads, batch, recurrent):
    dtypes = ("float32", "bfloat16")
    convolutions = {name: (batch, *sizes) for name, sizes in LAYERS.items()}
    try:
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        peer = f"tensorflow {tf.__version__}"
        if not recurrent:
            time_rows(peer, tensorflow_layer, dtypes, convolutions, ("forward", "backward"))
        time_rows(peer, tensorflow_recurrent, dtypes, RECURRENT, ("forward", "both"))
        time_rows(peer + " XLA", compiled_recurrent, dtypes, RECURRENT, ("forward", "both"))
    except ImportError as error:
        print(f"no TensorFlow: {error}")
    try:
        import torch
        torch.set_num_threads(threads)
        peer = f"torch {torch.__version__}"
        if not recurrent:
            time_rows(peer, torch_layer, dtypes, convolutions, ("forward", "backward"))
        time_rows(peer, torch_recurrent, dtypes, RECURRENT, ("forward", "both"))
    except ImportError as error:
        print(f"no PyTorch: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-size", type=int, action="append", help="default: 128 and 8192")
    parser.add_argument("--all", action="store_true", help="mixed_float16 in TensorFlow at large batches too")
    parser.add_argument("--layers", action="store_true",
                        help="instead: convolutions and recurrent layers, as `mixtape bench --only layers`")
    parser.add_argument("--recurrent", action="store_true", help="instead: the recurrent layers alone")
    parser.add_argument("--attention", choices=["tensorflow", "torch"],
                        help="instead: multi-head attention and a Transformer's step (batch 16), of one peer")
    options = parser.parse_args()
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if options.attention:
        time_attention(options.threads, options.attention)
        return
    if options.layers or options.recurrent:
        time_layers(options.threads, (options.batch_size or [8])[0], options.recurrent)
        return
    for batch in options.batch_size or [128, 8192]:
        count = 12 if batch <= 1024 else 3
        try:
            import tensorflow as tf
            if batch == (options.batch_size or [128])[0]:
                tf.config.threading.set_intra_op_parallelism_threads(options.threads)
                tf.config.threading.set_inter_op_parallelism_threads(1)
            for policy in "float32", "mixed_bfloat16", "mixed_float16":
                if policy != "mixed_float16" or batch <= 1024 or options.all:
                    report(f"tensorflow {tf.__version__}", policy, batch,
                           timed(tensorflow_step(policy, options.units, batch), count))
        except ImportError as error:
            print(f"no TensorFlow: {error}")
        try:
            import torch
            torch.set_num_threads(options.threads)
            for dtype in "float32", "bfloat16", "float16":
                report(f"torch {torch.__version__}", dtype, batch,
                       timed(torch_step(dtype, options.units, batch), count))
        except ImportError as error:
            print(f"no PyTorch: {error}")


if __name__ == "__main__":
    main()

"""Records a Vision Transformer by patches, an FNet and an MLP-Mixer as functional models of Keras 3: their
configs, and the losses of 20 steps, for tests/train/test_patch_models.c, which says what the weights are.

    python tests/oracle/patch_models.py tests/train/recorded
"""
import os
import pathlib
import sys

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import keras
import numpy as np
from keras import layers, ops

STEPS, EXAMPLES, CLASSES, WIDTH = 20, 8, 4, 16


def numbers(shape, scale):
    count = int(np.prod(shape))
    i = np.arange(count, dtype=np.float64)
    values = np.fmod(0.618033988749895 * (i + 1) * (np.fmod(i, 7) + 1), 1) * 2 - 1
    return (values * scale).astype(np.float32).reshape(shape)


def mlp(x, hidden, width):
    return layers.Dense(width)(layers.Dense(hidden, activation="gelu")(x))


def embedded(images):
    """Patches of 4 x 4 pixels, with an embedding of their places."""
    patches = ops.image.extract_patches(images, (4, 4))
    patches = ops.reshape(patches, (-1, patches.shape[1] * patches.shape[2], patches.shape[3]))
    x = layers.Dense(WIDTH)(patches)
    places = ops.cumsum(ops.ones_like(patches[..., 0], dtype="int32"), axis=1) - 1
    return x + layers.Embedding(patches.shape[1], WIDTH)(places)


def vit():
    images = keras.Input((16, 16, 3))
    x = embedded(images / 2.0)
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(2, WIDTH // 2)(y, y)
        x = x + mlp(layers.LayerNormalization(epsilon=1e-6)(x), 2 * WIDTH, WIDTH)
    x = ops.reshape(layers.LayerNormalization(epsilon=1e-6)(x), (-1, x.shape[1] * WIDTH))
    return keras.Model(images, layers.Dense(CLASSES, dtype="float32")(x), name="vit")


def fnet():
    ids = keras.Input((12,), dtype="int32")
    x = layers.Embedding(20, WIDTH)(ids)
    for _ in range(2):
        wide = ops.cast(x, "float32")
        mixed, _ = ops.fft2((wide, ops.zeros_like(wide)))
        x = layers.LayerNormalization()(x + ops.cast(mixed, x.dtype))
        x = layers.LayerNormalization()(x + mlp(x, 2 * WIDTH, WIDTH))
    return keras.Model(ids, layers.Dense(CLASSES, dtype="float32")(ops.max(x, axis=1)), name="fnet")


def mixer():
    images = keras.Input((16, 16, 3))
    x = embedded(images)
    for _ in range(2):
        y = ops.transpose(layers.LayerNormalization()(x), (0, 2, 1))
        x = x + ops.transpose(mlp(y, 24, x.shape[1]), (0, 2, 1))
        x = x + mlp(layers.LayerNormalization()(x), 2 * WIDTH, WIDTH)
    x = ops.mean(layers.LayerNormalization()(x), axis=1)
    return keras.Model(images, layers.Dense(CLASSES, dtype="float32")(x), name="mixer")


def record(make, policy, folder):
    keras.backend.clear_session()
    keras.config.set_dtype_policy(policy)
    model = make()
    text = model.to_json()
    (folder / f"{model.name}-{policy}.json").write_text(text + "\n")
    model.set_weights([w if w.ndim < 2 else numbers(w.shape, 1 / np.sqrt(np.prod(w.shape[:-1])))
                       for w in model.get_weights()])
    shape = (EXAMPLES, *model.input_shape[1:])
    x = np.arange(np.prod(shape)).reshape(shape) * 7 % 20 if model.name == "fnet" else numbers(shape, 1)
    labels = np.arange(EXAMPLES) * 3 % CLASSES
    optimizer = keras.optimizers.Adam(0.002)
    if policy != "float32":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=1024.0)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    losses = [float(model.train_on_batch(x, labels)) for _ in range(STEPS)]
    print(model.name, policy, losses[0], losses[-1], len(text), file=sys.stderr)
    return '{"%s", "%s",\n {%s}},' % (model.name, policy, ",\n  ".join(
        ", ".join("%.9g" % v for v in losses[i:i + 7]) for i in range(0, STEPS, 7)))


folder = pathlib.Path(sys.argv[1])
lines = ["/* Written by tests/oracle/patch_models.py with Keras %s. */" % keras.__version__]
POLICIES = "float32", "mixed_float16"
lines += [record(make, policy, folder) for make in (vit, fnet, mixer) for policy in POLICIES]
(folder / "patch_models.inc").write_text("\n".join(lines) + "\n")

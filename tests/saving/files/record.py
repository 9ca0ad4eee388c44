#!/usr/bin/env python3
"""Records files of real Keras, with what the models predict and how they train on.

  record.py keras3|tf_keras [CASE...]    writes keras3.zip or tf_keras.zip beside itself, or the cases into it

Recorded with Keras 3.15.1, and tf_keras 2.21.0, on TensorFlow 2.21.0 on a CPU. Each case trains two steps,
is saved in every format and predicts: NAME.keras, NAME.weights.h5, NAME.h5 (whole model), NAME.legacy.h5
(weights alone, tf_keras), and NAME.npz with x_0.., y_0.., predict_0.. Then Keras loads each whole model and
trains three steps more: keras_losses, keras_final_0.. (get_weights() order), keras_scale (of the losses at
the end), and with tf_keras h5_losses, ...
"""
import os
import pathlib
import shutil
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np

generation = sys.argv[1]
new = generation == "keras3"
if new:
    import keras
else:
    import tf_keras as keras
L = keras.layers
LossScale = keras.optimizers.LossScaleOptimizer if new else keras.mixed_precision.LossScaleOptimizer
register = keras.saving.register_keras_serializable
random = np.random.default_rng(7)


@register(package="test")
class Twice(L.Layer):
    """Two layers in attributes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.second = L.Dense(2, name="later")
        self.first = L.Dense(3, name="sooner")

    def build(self, shape):
        self.first.build(shape)
        self.second.build((None, 3))
        self.own = self.add_weight(name="own", shape=(2,), initializer="ones")
        self.built = True

    def call(self, x):
        return self.second(self.first(x)) * self.own


def nested():
    """Two inputs and outputs, a shared layer, a model called twice, models in models, frozen weights."""
    one, two = L.Input((4,), name="one"), L.Input((4,), name="two")
    a = L.Input((4,))
    # Without a bias, whose gradient before a normalization is rounding alone.
    b = L.BatchNormalization(name="norm")(L.Dense(3, use_bias=False, name="zz")(a))
    inner = keras.Model(a, L.Dense(4, name="aa")(b), name="inner")
    chain = keras.Sequential([L.Dense(4, name="s1"), L.Dropout(0.0), L.Dense(4, name="s2")], name="chain")
    chain.trainable = False
    shared = L.Dense(4, activation="tanh", name="shared")
    h = L.Add()([shared(one), shared(two)])
    h = inner(chain(inner(h)))
    return keras.Model([one, two], [L.Dense(2, name="left")(h), L.Dense(1, name="right")(h)], name="whole")


def small():
    x = L.Input((4,))
    return keras.Model(x, L.Dense(2)(L.Dense(3, activation="relu")(x)))


def policies():
    x = L.Input((4,))
    h = L.Dense(3, dtype="mixed_float16")(x)
    h = L.Dense(3, dtype="bfloat16" if new else "mixed_bfloat16")(h)
    return keras.Model(x, L.Dense(2, dtype="float32")(h))


def custom():
    x = L.Input((4,))
    return keras.Model(x, Twice(name="pair")(L.Dense(4)(x)))


def conv():
    """Norms along several axes, and an Identity."""
    x = L.Input((4, 4, 2))
    h = L.Conv2D(3, 2, kernel_constraint=keras.constraints.MaxNorm(0.3, axis=[0, 1, 2]))(x)
    h = L.Identity()(h) if hasattr(L, "Identity") else h
    return keras.Model(x, L.Dense(2)(L.Flatten()(h)))


def masked():
    """Masks that Keras 3 saves as operations: of Masking, Concatenate and Add."""
    x = L.Input((5, 3))
    a, b = L.Masking(0.0)(x), L.Masking(0.5)(x)
    h = L.Concatenate()([L.Concatenate()([a, b]), x])
    return keras.Model(x, L.Dense(2)(L.Add()([L.LSTM(3)(h), L.LSTM(3)(L.Add()([a, b])), L.LSTM(3)(a)])))


def chain():
    return keras.Sequential([L.Input((4,)), L.Dense(3), L.LayerNormalization(), L.Dense(2)], name="chain")


o = keras.optimizers
cases = {
    "nested": (nested, lambda: o.Adam(0.01, amsgrad=True)),
    "scaled": (small, lambda: LossScale(o.SGD(0.05, momentum=0.9), initial_scale=64.0,
                                        dynamic_growth_steps=3)),
    "schedule": (small, lambda: o.SGD(o.schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.9)),
    "nadam": (small, lambda: o.Nadam(0.01)),
    "averages": (chain, lambda: o.Adam(0.01, use_ema=True, ema_momentum=0.9)),
    "policies": (policies, lambda: o.SGD(0.05)),
    "custom": (custom, lambda: o.SGD(0.05)),
    "adafactor": (small, lambda: o.Adafactor(0.05)),
    "conv": (conv, lambda: o.SGD(0.05, momentum=0.9)),
    "masked": (masked, lambda: o.SGD(0.05, momentum=0.9)),
}
if new:
    cases["accumulate"] = small, lambda: o.Adam(0.01, gradient_accumulation_steps=2)
else:
    cases["old"] = small, lambda: o.legacy.Adam(0.01, decay=0.1)
    cases["old_scaled"] = small, lambda: LossScale(o.legacy.SGD(0.05, momentum=0.9), initial_scale=64.0)


def train(model, x, y):
    model.reset_metrics()
    got = model.train_on_batch(x, y)
    return float(got[0] if isinstance(got, list) else got)


def scale_of(optimizer):
    if new:
        return float(optimizer.dynamic_scale.numpy()) if hasattr(optimizer, "dynamic_scale") else 0.0
    return float(np.array(getattr(optimizer, "loss_scale", 0)))


def save_all(model, name, folder):
    model.save(f"{folder}/{name}.keras")
    model.save_weights(f"{folder}/{name}.weights.h5")
    if name in (("policies", "masked", "adafactor") if new else ("custom",)):
        return  # such files take no bfloat16, and no two weights of one name
    model.save(f"{folder}/{name}.h5")
    if not new:
        model.save_weights(f"{folder}/{name}.legacy.h5", save_format="h5")


def go_on(model, kind, x, y):
    arrays = {f"{kind}_losses": np.array([train(model, x, y) for _ in range(3)])}
    arrays |= {f"{kind}_final_{i}": np.float32(a) for i, a in enumerate(model.get_weights())}
    return arrays | {f"{kind}_scale": np.array(scale_of(model.optimizer))}


def record(name, folder):
    make, optimizer = cases[name]
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    model = make()
    outputs = len(model.outputs)
    metrics = [["mae"]] * outputs if outputs > 1 else ["mae"]
    model.compile(optimizer(), loss="mse", metrics=metrics)
    x = [random.normal(size=(6, *t.shape[1:])).astype("float32") for t in model.inputs]
    if name == "masked":
        x[0][:3, 3:] = 0
        x[0][2:5, 2:] = 0.5
    y = [random.normal(size=(6, int(t.shape[1]))).astype("float32") for t in model.outputs]
    arrays = {f"x_{i}": a for i, a in enumerate(x)} | {f"y_{i}": a for i, a in enumerate(y)}
    x, y = (x, y) if outputs > 1 else (x[0], y[0])
    train(model, x, y), train(model, x, y)
    save_all(model, name, folder)
    made = model.predict(x, verbose=0)
    arrays |= {f"predict_{i}": np.float32(a) for i, a in enumerate(made if outputs > 1 else [made])}
    for kind in "keras", "h5":
        path = f"{folder}/{name}.{kind}"
        if (kind, generation) == ("h5", "keras3") or not os.path.exists(path):
            continue  # Keras 3 does not load losses and metrics by name from .h5
        arrays |= go_on(keras.models.load_model(path), kind, x, y)
        print(path, arrays[f"{kind}_losses"], arrays[f"{kind}_scale"])
    np.savez(f"{folder}/{name}.npz", **arrays)


def in_pieces(folder):
    """The weights of `old` with lists of names in pieces, as those above 64512 bytes are."""
    import h5py
    shutil.copy(f"{folder}/old.legacy.h5", f"{folder}/pieces.legacy.h5")
    with h5py.File(f"{folder}/pieces.legacy.h5", "a") as file:
        for group, name in [(file, "layer_names"), (file["dense_1"], "weight_names")]:
            texts = group.attrs[name]
            del group.attrs[name]
            group.attrs[f"{name}0"], group.attrs[f"{name}1"] = texts[:1], texts[1:]


def main():
    place = pathlib.Path(__file__).parent / f"{generation}.zip"
    with tempfile.TemporaryDirectory() as folder:
        only = sys.argv[2:]
        if only:
            with zipfile.ZipFile(place) as archive:
                archive.extractall(folder)
        for name in only or cases:
            record(name, folder)
        if not new and not only:
            in_pieces(folder)
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(pathlib.Path(folder).iterdir()):
                archive.writestr(zipfile.ZipInfo(file.name, (1980, 1, 1, 0, 0, 0)), file.read_bytes(),
                                 zipfile.ZIP_DEFLATED, 9)
                print(file.name, file.stat().st_size)
    print(place, place.stat().st_size)


main()

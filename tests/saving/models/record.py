#!/usr/bin/env python3
"""Records what real Kerases write for models, and what these predict.

    python record.py OUT_DIR keras3|tf_keras

OUT_DIR/GENERATION-NAME.json: "text" is model.to_json(); "inputs", "weights" (of get_weights(), random) and
"outputs" (of predict) are lists of {"shape", "values"}.
"""
import json, os, sys

out, generation = sys.argv[1:]
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
if generation == "tf_keras":
    import tf_keras as keras
else:
    import keras
import numpy as np

L, K3 = keras.layers, generation == "keras3"
Policy = keras.DTypePolicy if K3 else keras.mixed_precision.Policy


def sequential():
    model = keras.Sequential([keras.Input((8,)), L.Dense(6, activation="relu", name="first"), L.Dropout(0.25),
                              L.Dense(4, use_bias=False, kernel_regularizer=keras.regularizers.L2(0.01)),
                              L.Activation("softmax", dtype="float32")], name="chain")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model, [(8,)]


def sequential_built():
    model = keras.Sequential([L.Dense(3, dtype="mixed_bfloat16"), L.LayerNormalization(), L.Dense(2)])
    model.build((None, 5))
    return model, [(5,)]


def sequential_open():
    return keras.Sequential([L.Flatten(), L.Dense(3)]), None


def several():
    a, b = keras.Input((4,), name="left"), keras.Input((4,), name="right", batch_size=None)
    shared = L.Dense(5, activation="tanh", name="tower")
    x, y = shared(a), shared(b)
    both = L.Concatenate(name="both")([x, y])
    model = keras.Model([a, b], [L.Dense(2, name="one")(both), L.Add(name="two")([x, y])], name="towers")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=["mse", "mae"], loss_weights=[1.0, 0.5])
    return model, [(4,), (4,)]


def dictionary():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    outputs = {"sum": L.Add(name="sum")([a, b]), "x": L.Dense(2, name="x")(a)}
    return keras.Model({"a": a, "b": b}, outputs), {"a": (3,), "b": (3,)}


def nested():
    inside = keras.Input((4,))
    block = keras.Model(inside, L.Dense(4, name="inner")(inside), name="block")
    chain = keras.Sequential([L.Dense(3, name="deep"), L.LeakyReLU()], name="tail")
    x = keras.Input((4,))
    y = block(x)
    y = L.Add()([block(y), x])
    return keras.Model(x, chain(y), name="outer"), [(4,)]


def nested_sequential():
    inside = keras.Input((4,))
    block = keras.Model(inside, L.Dense(5, name="inner")(inside), name="block")
    return keras.Sequential([keras.Input((4,)), block, L.Dense(2)], name="around"), [(4,)]


def policies():
    x = keras.Input((6,))
    y = L.Dense(4, dtype=Policy("mixed_float16"), name="half")(x)
    y = L.Dense(4, dtype="float64", name="double")(y)
    y = L.Dense(4, dtype="mixed_bfloat16", name="brain", trainable=False)(y)
    y = L.Activation("relu", dtype="float32", name="last")(y)
    return keras.Model(x, y), [(6,)]


def mixed():
    (keras.config.set_dtype_policy if K3 else keras.mixed_precision.set_global_policy)("mixed_float16")
    x = keras.Input((6,))
    y = L.Dense(4, activation="relu")(x)
    model = keras.Model(x, L.Activation("linear", dtype="float32")(L.Dense(2)(y)))
    model.compile(keras.optimizers.Adam(0.01), keras.losses.MeanSquaredError(),
                  metrics=[keras.metrics.MeanAbsoluteError(name="off")], weighted_metrics=["mse"])
    (keras.config.set_dtype_policy if K3 else keras.mixed_precision.set_global_policy)("float32")
    return model, [(6,)]


def norms():
    x = keras.Input((4, 4, 6))
    y = L.BatchNormalization()(x)
    y = L.BatchNormalization(axis=1, momentum=0.9, scale=False)(y, training=False)
    y = L.LayerNormalization(axis=[1, -1])(y)
    y = L.GroupNormalization(groups=3)(y)
    y = L.UnitNormalization()(y)
    y = L.PReLU(shared_axes=[1, 2])(y)
    y = L.Permute((3, 1, 2))(y)
    return keras.Model(x, L.Reshape((-1, 4))(y)), [(4, 4, 6)]


def noise():
    x = keras.Input((5, 6))
    y = L.GaussianNoise(0.1, seed=3)(x)
    y = L.SpatialDropout1D(0.2)(y)
    y = L.GaussianDropout(0.3)(y)
    y = L.Dropout(0.5, noise_shape=(None, 1, 6), seed=7)(y, training=False)
    y = L.ActivityRegularization(l2=0.01)(y)
    return keras.Model(x, L.Softmax(axis=-1)(y)), [(5, 6)]


def merges():
    a, b = keras.Input((3, 4)), keras.Input((3, 4))
    c = L.Maximum()([a, b])
    d = L.Multiply()([a, b, c])
    e = L.Dot(axes=-1, normalize=True)([c, d])
    f = L.Subtract()([L.Average()([a, b]), L.Minimum()([c, d])])
    return keras.Model(inputs=[a, b], outputs=[e, L.Concatenate(axis=1)([f, d])]), [(3, 4), (3, 4)]


def words():
    x = keras.Input((5,), dtype="int32")
    y = L.Embedding(11, 4, embeddings_initializer=keras.initializers.RandomNormal(stddev=0.02, seed=5))(x)
    y = L.Dense(3, kernel_constraint=keras.constraints.MaxNorm(2), activation="gelu")(y)
    y = L.Flatten()(y)
    return keras.Model(x, L.ReLU(max_value=6.0)(L.RepeatVector(2)(y))), [("int", (5,))]


def scaled():
    x = keras.Input((3,))
    model = keras.Model(x, L.Dense(1)(L.Rescaling(1 / 127.5, offset=-1)(x)))
    inner = keras.optimizers.RMSprop(keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.9))
    model.compile(keras.mixed_precision.LossScaleOptimizer(inner) if not K3
                  else keras.optimizers.LossScaleOptimizer(inner), "mse", jit_compile=False)
    return model, [(3,)]


def attention():
    a, b, c = keras.Input((5, 4)), keras.Input((3, 4)), keras.Input((3, 6))
    cross = L.MultiHeadAttention(2, 3, value_dim=2, dropout=0.1, name="cross")
    y, scores = cross(a, b, c, return_attention_scores=True)
    y = L.MultiHeadAttention(1, 4, use_bias=False, output_shape=4)(y, y, use_causal_mask=True)
    y = L.Attention(use_scale=True, score_mode="concat")([y, b], use_causal_mask=True)
    y = L.AdditiveAttention()([y, b, b])
    if K3:
        y = L.GroupQueryAttention(3, 4, 2, use_gate=True, sliding_window=2)(y, a)
    y = L.EinsumDense("abc,cd->abd", output_shape=(None, 3), bias_axes="d", activation="tanh")(y)
    return keras.Model([a, b, c], [y, scores]), [(5, 4), (3, 4), (3, 6)]


def applications():
    package = __import__(keras.__name__ + ".src.applications", fromlist=["convnext", "inception_resnet_v2"])
    x = keras.Input((4, 4, 6))
    y = package.convnext.LayerScale(0.1, 6)(L.Dense(6)(x))
    y = package.convnext.StochasticDepth(0.25)(y)
    return keras.Model(x, package.inception_resnet_v2.CustomScaleLayer(0.3)([x, y])), [(4, 4, 6)]


def write(name, model, shapes):
    text = model.to_json()
    record = {"name": name, "text": text}
    if shapes:
        rng = np.random.default_rng(len(name))
        weights = [rng.uniform(0.1, 0.9, w.shape).astype("float32") for w in model.get_weights()]
        model.set_weights(weights)
        make = lambda s: rng.integers(0, 11, (2,) + s[1]).astype("int32") if s[0] == "int" else \
            rng.standard_normal((2,) + tuple(s)).astype("float32")
        keys = list(shapes) if isinstance(shapes, dict) else None
        x = [make(s) for s in (shapes.values() if keys else shapes)]
        given = dict(zip(keys, x)) if keys else x if len(x) > 1 else x[0]
        y = model.predict(given, verbose=0)
        y = list(y.values()) if isinstance(y, dict) else y if isinstance(y, list) else [y]
        numbers = lambda a: [float(v) for v in np.asarray(a, "float64").ravel()]
        array = lambda a: {"shape": list(a.shape), "values": numbers(a)}
        record.update(inputs=[array(a) for a in x], weights=[array(a) for a in weights],
                      outputs=[array(a) for a in y])
    with open(os.path.join(out, f"{generation}-{name}.json"), "w") as file:
        json.dump(record, file, indent=0)
        file.write("\n")


for function in (sequential, sequential_built, sequential_open, several, dictionary, nested,
                 nested_sequential, policies, mixed, norms, noise, merges, words, scaled, attention,
                 applications):
    keras.backend.clear_session()
    write(function.__name__.replace("_", "-"), *function())

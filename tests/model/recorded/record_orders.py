"""Writes orders.inc, the orders of layers and weights of models of tf_keras 2.21 and Keras 3.15, for
test_weight_order.c, which makes the same models.

With both packages and tensorflow installed: python record_orders.py > orders.inc
"""
import os
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import tf_keras


def models(k):
    """The models of one package, by name."""
    dense = lambda name: k.layers.Dense(2, name=name)
    batch_norm = lambda name: k.layers.BatchNormalization(name=name)
    layer_norm = lambda name: k.layers.LayerNormalization(name=name)
    entry = lambda name: k.Input((2,), name=name)
    add = lambda name, *terms: k.layers.Add(name=name)(list(terms))
    stack = lambda p: [dense(p + "1"), batch_norm(p + "2"), layer_norm(p + "3"), dense(p + "4"),
                       batch_norm(p + "5")]

    def chain(p):
        x = y = entry(p + "x")
        for layer in stack(p):
            y = layer(y)
        return k.Model(x, y, name=p)

    def sequential(p):
        return k.Sequential([k.layers.InputLayer(**SHAPE[k], name=p + "x"), *stack(p)], name=p)

    def towers(last):
        """Two towers, called by turns; the order of the last call's inputs decides within a depth."""
        x = entry("x")
        a, b = dense("a1")(x), batch_norm("b1")(x)
        b = dense("b2")(b)
        a = batch_norm("a2")(a)
        b = dense("b3")(b)
        return k.Model(x, add("sum", *((a, b) if last == "ab" else (b, a))))

    def outputs():
        x, y = entry("x"), entry("y")
        p = dense("p")(x)
        return k.Model([x, y], [dense("q")(y), batch_norm("r")(p)])

    def unused():
        x, y, z = entry("x"), entry("y"), entry("z")
        return k.Model([z, x, y], dense("p")(x))

    def shared():
        x, s, t = entry("x"), dense("s"), batch_norm("t")
        u = dense("u")(x)
        return k.Model(x, add("sum", u, s(t(s(x)))))

    def shared_depths(first):
        """The shared layer's depth depends on the call that is met first, and so does what feeds it."""
        x, y, s = entry("x"), entry("y"), dense("s")
        short = s(dense("p")(x))
        long = dense("r2")(batch_norm("r1")(s(dense("q2")(dense("q1")(y)))))
        return k.Model([x, y], [short, long] if first == "short" else [long, short])

    def nested(inner, frozen=()):
        x = entry("x")
        first, last = dense("o1"), batch_norm("o2")
        model = k.Model(x, last(inner(first(x))))
        for layer in model.layers:
            if layer.name in frozen:
                layer.trainable = False
        return model

    def part():
        x = entry("x")
        h = dense("p")(x)
        return k.Model(h, batch_norm("q")(h))

    class Block(k.layers.Layer):
        def __init__(self, name):
            super().__init__(name=name)
            self.inner = [dense("c1"), batch_norm("c2"), batch_norm("c3")]

        def call(self, x):
            for layer in self.inner:
                x = layer(x)
            return x

    def frozen_model():
        model = nested(chain("i"))
        model.trainable = False
        return model

    return {
        "sequential": sequential("i"),
        "chain": chain("i"),
        "towers ab": towers("ab"),
        "towers ba": towers("ba"),
        "outputs": outputs(),
        "unused": unused(),
        "shared": shared(),
        "shared short first": shared_depths("short"),
        "shared long first": shared_depths("long"),
        "nested chain": nested(chain("i")),
        "nested sequential": nested(sequential("i")),
        "frozen layer": nested(chain("i"), ["o2"]),
        "frozen nested": nested(chain("i"), ["i"]),
        "frozen model": frozen_model(),
        "block": nested(Block("c")),
        "frozen block": nested(Block("c"), ["c"]),
        "part": part(),
    }


SHAPE = {keras: {"shape": (2,)}, tf_keras: {"input_shape": (2,)}}


def owners(layer, found):
    """The name LAYER/WEIGHT of each weight, by identity."""
    inner = getattr(layer, "layers", getattr(layer, "inner", []))
    for weight in [] if inner else layer.weights:
        found[id(weight)] = layer.name + "/" + weight.name.split("/")[-1].split(":")[0]
    for each in inner:
        owners(each, found)
    return found


def literal(words):
    lines = textwrap.wrap(" ".join(words), 96)
    return "\n".join('     "%s%s"' % (line, " " if line is not lines[-1] else "") for line in lines)


def orders(package):
    """The texts of each case: layers, weights, trainable and other weights."""
    found = {}
    for case, model in models(package).items():
        names = owners(model, {})
        # Keras puts an input layer of its own making before a model that begins in the middle.
        layers = [layer.name for layer in model.layers[case == "part":]]
        weights = [[names[id(w)] for w in each]
                   for each in (model.weights, model.trainable_weights, model.non_trainable_weights)]
        found[case] = ",\n".join(literal(words) if words else '     ""' for words in [layers, *weights])
    return found


print("/* Made by record_orders.py with tf_keras %s and Keras %s. */" %
      (tf_keras.__version__, keras.__version__))
print("static const recorded_order orders[] = {")
both = {"tf_keras": orders(tf_keras), "keras3": orders(keras)}
for case, text in both["keras3"].items():
    if both["tf_keras"][case] == text:
        print('    {"%s", NULL,\n%s},' % (case, text))
    else:
        for semantics, each in both.items():
            print('    {"%s", "%s",\n%s},' % (case, semantics, each[case]))
print("};")

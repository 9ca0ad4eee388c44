"""Prints what TensorFlow gives for decompositions of matrices in float64, with its gradients, for
tests/ops/test_linear_algebra.c.

    python tests/oracle/linear_algebra.py > tests/ops/recorded/linear_algebra.inc

A row has the name of a function in that test, a matrix, the function's value there, which does not depend on
the signs and the order of vectors, and its gradient.
"""

import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
import numpy as np
import tensorflow as tf

LA = tf.linalg


def weights(*shape):
    return np.cos(1.3 * np.arange(np.prod(shape)) + 0.2).reshape(shape)


def summed(y):
    return tf.reduce_sum(y * weights(*y.shape))


def eigenvectors(x):
    return summed(tf.square(LA.eigh(x)[1]))


def singular_roots(x):
    s, u, v = LA.svd(x)
    return summed(tf.matmul(u * tf.sqrt(s), v, transpose_b=True))


def general_eigenvalues(x):
    e = LA.eig(x)[0]
    return tf.reduce_sum(tf.math.real(e) ** 3 + tf.math.imag(e) ** 2)


def general_eigenvectors(x):
    sizes = tf.square(tf.math.abs(LA.eig(x)[1]))
    return tf.reduce_sum(tf.reduce_sum(sizes, -1) * weights(x.shape[0]))


FUNCTIONS = {
    "eigenvalues": lambda x: summed(LA.eigh(x)[0]),
    "eigenvectors": eigenvectors,
    "singular_values": lambda x: summed(LA.svd(x, compute_uv=False)),
    "singular_roots": singular_roots,
    "pseudo_inverse": lambda x: summed(LA.pinv(x)),
    "general_eigenvalues": general_eigenvalues,
    "general_eigenvectors": general_eigenvectors,
    "determinant": LA.det,
    "inverse": lambda x: summed(LA.inv(x)),
    "cholesky": lambda x: summed(LA.cholesky(tf.matmul(x, x, transpose_b=True) + np.eye(x.shape[0]))),
}


def sines(m, n):
    return np.sin(2.1 * np.arange(m * n) ** 1.5 + 0.4).reshape(m, n)


MATRICES = {
    "square": sines(4, 4),
    "wide": sines(3, 5),
    "tall": sines(5, 2),
    "close": np.diag([1, 1 + 1e-4, 3.0]) + 1e-5 * sines(3, 3),
    "equal": np.eye(3),
    "low": np.outer(sines(4, 1), sines(3, 1)),
}
SQUARE_ALONE = ["eig", "general", "determinant", "inverse", "cholesky"]
# Of equal values the vectors may be any, and gradients that tell them apart too.
LEFT_OUT = {("eigenvalues", "equal"), ("eigenvectors", "equal"), ("general_eigenvectors", "equal"),
            ("singular_values", "equal"), ("singular_values", "low"), ("singular_roots", "low")}

print("/* Written by tests/oracle/linear_algebra.py with TensorFlow %s. */" % tf.__version__)
for name, function in FUNCTIONS.items():
    for kind, matrix in MATRICES.items():
        square = matrix.shape[0] == matrix.shape[1]
        if (not square and any(name.startswith(s) for s in SQUARE_ALONE)) or (name, kind) in LEFT_OUT:
            continue
        x = tf.Variable(matrix)
        with tf.GradientTape() as tape:
            y = function(x)
        numbers = [", ".join("%.17g" % v for v in a.ravel()) for a in (matrix, tape.gradient(y, x).numpy())]
        print('{"%s", %d, %d, {%s},\n %.17g, {%s}},' % (name, *matrix.shape, numbers[0], y, numbers[1]))

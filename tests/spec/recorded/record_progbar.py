#!/usr/bin/env python3
"""What Keras's ProgbarLogger prints: the lines that tests/train/test_progress.c expects.

    [PYTHONPATH=FOLDER_OF_TF_KERAS] record_progbar.py tf_keras|keras

Recorded with tf_keras 2.21 and Keras 3.15 on a CPU. Times differ from run to run.
"""
import contextlib
import importlib
import io
import sys

import numpy as np

keras = importlib.import_module(sys.argv[1])
Logger = keras.callbacks.ProgbarLogger
x, y = np.arange(1, 6, dtype="float32")[:, None], np.zeros((5, 1), "float32")


class Extra(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        logs["extra"] = float(batch)

    def on_epoch_end(self, epoch, logs=None):
        logs["late"] = 10.0


def model():
    result = keras.Sequential([keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    result.compile(keras.optimizers.SGD(0.0), "mse")
    return result


def show(title, run):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run()
    print(title, repr(text.getvalue().replace("\b", "")))


def fit(to, callbacks, **arguments):
    to.fit(x, y, batch_size=1, shuffle=False, callbacks=callbacks, **arguments)


steps = {"count_mode": "steps"}
for given in [{}, steps, {**steps, "stateful_metrics": ["extra"]}] if sys.argv[1] == "tf_keras" else [{}]:
    for verbose in (0, 1, 2):
        show(f"fit {given} {verbose}", lambda: fit(model(), [Logger(**given)], epochs=2, verbose=verbose))
        show(f"evaluate {given} {verbose}", lambda: model().evaluate(
            x, y, batch_size=1, verbose=verbose, callbacks=[Logger(**given)]))
        show(f"predict {given} {verbose}", lambda: model().predict(
            x, batch_size=1, verbose=verbose, callbacks=[Logger(**given)]))
    for verbose in (1, 2):
        for callbacks in [Logger(**given), Extra()], [Extra(), Logger(**given)]:
            show(f"{[type(c).__name__ for c in callbacks]} {given} {verbose}",
                 lambda: fit(model(), callbacks, verbose=verbose))
    logger, trained = Logger(**given), model()
    fit(trained, [logger], verbose=0)
    show(f"evaluate after fit {given}", lambda: trained.evaluate(x, y, verbose=2, callbacks=[logger]))

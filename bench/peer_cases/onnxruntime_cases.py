"""One example in onnxruntime, by the files that `bench --only latency --export FOLDER` wrote."""
import glob
import os

import numpy as np
import onnxruntime

THREADS, FOLDER = 2, "."


def begin(threads, _compiled, folder):
    global THREADS, FOLDER
    THREADS, FOLDER = threads, folder
    return onnxruntime.__version__


def predict(name):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    path = glob.glob(os.path.join(FOLDER, f"{name}*.onnx"))[0]
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    shape = [1, *(size if isinstance(size, int) else 128 for size in first.shape[1:])]
    x = {first.name: np.random.rand(*shape).astype("float32")}
    return (lambda: session.run(None, x),)


def dense_predict(_dtype):
    return predict("dense")


def lstm_predict(_dtype):
    return predict("LSTM")


def mobilenet_predict(_dtype):
    return predict("MobileNetV2")


def resnet_predict(_dtype):
    return predict("ResNet-50")

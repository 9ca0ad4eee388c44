"""Writes recorded_events.h: the events of TensorFlow 2.21's summary writer, for test_tensorboard.c.

  python3 -m venv venv
  venv/bin/pip install tensorflow-cpu
  venv/bin/python recorded_events.py > recorded_events.h
"""
import glob
import os
import struct
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf


def records(folder):
    """The records of the only event file in the folder, with their framing."""
    with open(glob.glob(folder + "/*")[0], "rb") as file:
        data = file.read()
    while data:
        length = 16 + struct.unpack("<Q", data[:8])[0]
        yield data[:length]
        data = data[length:]


def write(name, data):
    print(f"static const unsigned char {name}[] = {{")
    for i in range(0, len(data), 20):
        print("    " + ", ".join(f"{b:d}" for b in data[i : i + 20]) + ",")
    print("};")


# The numbers of the test, with both signs.
numbers = np.array([(i * 37 % 200 - 90) * np.float32(0.013) for i in range(200)], np.float32)
with tempfile.TemporaryDirectory() as folder:
    with tf.summary.create_file_writer(folder).as_default():
        tf.summary.scalar("epoch_loss", 0.6931471805599453, step=3)
        tf.summary.scalar("batch_loss", 2.5, step=0)
        tf.summary.histogram("dense/kernel/histogram", numbers, step=1)
        tf.summary.histogram("dense/bias/histogram", np.zeros(5, np.float32), step=1)
    version, loss, at_zero, histogram, single = records(folder)
print("/* Made by recorded_events.py. */\n/* clang-format off */")
write("recorded_scalar", loss)
write("recorded_scalar_at_zero", at_zero)
write("recorded_histogram", histogram)
write("recorded_histogram_of_one_value", single)
print("/* clang-format on */")

#!/usr/bin/env python3
"""Records what real Keras prints as the summary of models in files, for a terminal of 80 columns and of some
for one of 120.

  record.py keras3|tf_keras|hub FOLDER    writes keras3.txt, tf_keras.txt or hub.txt beside itself

FOLDER: the recorded models (k3-*.keras, tfk-*.keras, hub-*.keras). KerasHub prints a task in 108 columns
whatever the terminal has.
Those of tests/saving/files are added. Files with a layer under mixed_float16 are loaded by Keras 3 while that
policy is the global one, as mixtape compiles them.
Recorded with Keras 3.15.1 and tf_keras 2.21.0 on TensorFlow 2.21.0.
"""
import os
import pathlib
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
generation, folder = sys.argv[1], pathlib.Path(sys.argv[2])
new = generation != "tf_keras"
if new:
    import keras
    if generation == "hub":
        import keras_hub  # registers its classes
else:
    import tf_keras as keras
here = pathlib.Path(__file__).resolve().parent
KINDS = ("shared", "resnet", "transformer", "mobile", "encoder", "unet", "text", "wavenet", "random3",
         "dense", "normalization", "lstm-options", "multi-head", "group-query", "bidirectional")
HUB = ("hub-bert-task-float32", "hub-gpt2-task-mixed_bfloat16", "hub-vit-task-float32", "hub-t5",
       "hub-mistral")


def hub_summaries(out):
    for name in HUB:
        is_task = "-task-" in name
        # Keras gives a chain of layers at most 88 columns: that task is compared in the width of 80 alone.
        for columns in (80, 112) if is_task and "vit" not in name else (80,):
            os.environ["COLUMNS"] = str(columns)
            lines = []
            keras.backend.clear_session()
            model = keras.models.load_model(folder / (name + ".keras"))
            model.summary(print_fn=lambda line, **_: lines.append(line),
                          line_length=76 if is_task and columns == 80 else None)  # Keras leaves 4
            out.write(f"#{name} {columns}\n" + "\n".join(lines).rstrip("\n") + "\n")


def summary(path, columns):
    os.environ["COLUMNS"] = str(columns)
    with zipfile.ZipFile(path) as archive:
        mixed = b'"mixed_float16"' in archive.read("config.json")
    keras.backend.clear_session()
    if new:
        keras.config.set_dtype_policy("mixed_float16" if mixed else "float32")
    lines = []
    keras.models.load_model(path).summary(print_fn=lambda line, **_: lines.append(line))
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    if generation == "hub":
        with open(here / "hub.txt", "w") as out:
            hub_summaries(out)
        return
    paths = [path for path in sorted(folder.glob(("k3" if new else "tfk") + "-*.keras"))
             if any(kind in path.stem for kind in KINDS) and "resnet-mixed_bfloat16" not in path.stem]
    with tempfile.TemporaryDirectory() as temporary:
        with zipfile.ZipFile(here.parent.parent / "saving" / "files" / (generation + ".zip")) as files:
            names = sorted(n for n in files.namelist() if n.endswith(".keras") and not n.startswith("custom"))
            for name in names:
                paths.append(pathlib.Path(files.extract(name, temporary)))
        with open(here / (generation + ".txt"), "w") as out:
            for path in paths:
                wide = "shared" in path.stem or "nested" in path.stem
                for columns in (80, 120) if wide else (80,):
                    out.write(f"#{path.stem} {columns}\n{summary(path, columns)}")


main()

#!/usr/bin/env python3
"""Puts real files of Keras into the corpora of the fuzz targets that read them.

  real_files.py CORPUS MIXTAPE [FOLDER...]

Into the folders of CORPUS named hdf5, keras_file, model_json and zip_members go the files of
tests/saving/files and tests/formats/hdf5, and the .keras files in the folders
($MIXTAPE_REFERENCE_DIR/models); the program MIXTAPE converts them to the legacy form. Larger ones than 64 KiB
are left out: they only slow the fuzzer down.
"""
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

LARGEST = 1 << 16
corpus, program = pathlib.Path(sys.argv[1]), sys.argv[2]
tests = pathlib.Path(__file__).resolve().parent.parent


def put(target, content):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    if len(content) <= LARGEST:
        (folder / ("real-" + hashlib.sha1(content).hexdigest()[:16])).write_bytes(content)


def take_hdf5(content):
    put("hdf5", content)
    put("keras_file", content)


def take_archive(content):
    put("keras_file", content)
    put("zip_members", content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        put("model_json", archive.read("config.json"))
        take_hdf5(archive.read("model.weights.h5"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.keras").write_bytes(content)
        made = subprocess.run([program, "convert", folder / "a.keras", folder / "a.h5"], capture_output=True)
        if made.returncode == 0:
            take_hdf5((folder / "a.h5").read_bytes())


for path in sorted((tests / "formats" / "hdf5").glob("*.h5")):
    take_hdf5(path.read_bytes())
for path in sorted((tests / "saving" / "files").glob("*.zip")):
    with zipfile.ZipFile(path) as files:
        for name in files.namelist():
            if name.endswith(".keras"):
                take_archive(files.read(name))
            elif name.endswith(".h5"):
                take_hdf5(files.read(name))
for folder in sys.argv[3:]:
    for path in sorted(pathlib.Path(folder).glob("*.keras")):
        if path.stat().st_size <= LARGEST:
            take_archive(path.read_bytes())

"""The rows of bench/peers.py: which command times ours, and which case of the peers is the same.

A row's `own` is a table of build/release/bench/bench with its options; `case` is the function of
tensorflow_cases.py, pytorch_cases.py and onnxruntime_cases.py that makes the calls to be timed, with its
arguments. `passes` are the names of these calls in the tables of bench.
"""
from dataclasses import dataclass

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Row:
    name: str
    own: tuple  # the table, then options
    case: str
    arguments: tuple
    passes: tuple = ("step",)
    dtypes: tuple = DTYPES
    peers: tuple = ("tensorflow", "pytorch")
    budget: str = ""  # --memory of the row in bfloat16


def convolution(name, *sizes):
    return Row(name, ("layers", "--rows", name), "convolution", (8, *sizes), ("forward", "backward"))


def recurrent(kind, units, batch):
    name = f"{kind}, {units} units, 128 steps"
    return Row(f"{name}, batch {batch}", ("layers", "--rows", name), "recurrent", (kind, units, 128, batch),
               ("forward", "both"), peers=("tensorflow", "xla", "pytorch"))


def attention(tokens):
    name = f"attention 512, 8 heads, {tokens} tokens"
    return Row(f"{name}, batch 16", ("layers", "--rows", name), "attention", (16, tokens),
               ("forward", "both"))


def guide(units, batch):
    return Row(f"guide, {units} units, batch {batch}",
               ("steps", "--units", str(units), "--batch-size", str(batch)), "guide", (units, batch))


def resnet(side, batch):
    name = f"ResNet-50, {side}x{side}"
    return Row(f"{name}, batch {batch}", ("layers", "--rows", name), "resnet", (side, batch), ("both",))


def hub(name, case, budget):
    return Row(f"{name}, 2 x 128 tokens, AdamW", ("hub", "--rows", name), case, (2, 128), peers=("pytorch",),
               budget=budget)


def latency(name, case, *arguments):
    return Row(f"one example: {name}", ("latency", "--rows", name), case, arguments, ("function",),
               ("float32",), ("onnxruntime", "pytorch"))


def decoding(batch):
    return Row(f"decoding, GPT of 6 layers of 384, 512 positions, batch {batch}",
               ("decoding", "--rows", f"batch {batch},"), "decoding", (batch, 512, 6, 384, 6, 4096),
               ("kept keys", "whole window"), peers=("pytorch",))


TRANSFORMER = ("model", "--model", "transformer", "--layers", "4", "--units", "256", "--classes", "8000",
               "--length", "64", "--batch-size", "16")

ROWS = (
    guide(4096, 128), guide(4096, 1024), guide(64, 128),
    hub("GPT-2 small", "gpt2", "3500MiB"), hub("BERT base", "bert", "2500MiB"),
    Row("Transformer, 4 layers of 256", TRANSFORMER, "transformer", (16, 64, 4, 256, 8, 8000)),
    resnet(64, 16), resnet(224, 4),
    recurrent("LSTM", 256, 32), recurrent("GRU", 256, 32), recurrent("LSTM", 64, 1), recurrent("GRU", 64, 1),
    attention(128), attention(1024), decoding(1), decoding(8),
    convolution("3x3, 64 to 64, 56x56", 56, 64, 64, 3, 1),
    convolution("1x1, 256 to 64, 56x56", 56, 256, 64, 1, 1),
    convolution("7x7 stride 2, 3 to 64, 224x224", 224, 3, 64, 7, 2),
    convolution("3x3 stride 2, 128 to 256, 56x56", 56, 128, 256, 3, 2),
    convolution("depthwise 3x3, 128, 28x28", 28, 128, 0, 3, 1),
    convolution("depthwise 3x3, 128 times 2, 28x28", 28, 128, 0, 3, 1, 2),
    latency("dense 784-64-64-10", "dense_predict"), latency("LSTM 64, 128 steps", "lstm_predict"),
    latency("MobileNetV2", "mobilenet_predict"), latency("ResNet-50", "resnet_predict"),
)

PLAIN_CONVOLUTIONS = tuple(r.name for r in ROWS if r.case == "convolution" and not r.name.startswith("depth"))

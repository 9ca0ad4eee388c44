#!/usr/bin/env python3
"""Models that PyTorch exports as ONNX load here, predict as PyTorch does, and train as it does.

  onnx_import.py MIXTAPE [FOLDER] [--only PATTERN]

MIXTAPE is the program. For each model below, exported by both exporters of PyTorch (the one that records a
run, operator set 17, and the one of torch.export, operator set 20) into FOLDER (default: a temporary one):

  predictions of the file are those of PyTorch within 1e-5 of the largest number,
  the file converted to .keras predicts the same bits,
  20 steps of SGD from the same weights, normalisations of batches frozen in evaluation, leave a model whose
  predictions are PyTorch's after the same steps within 1e-4 of the largest number.

The two biases of a recurrent layer are one weight here where Keras has one, so PyTorch trains one of them.
What exporters fold or join by value is another model in training: GPT's table of words stays one weight only
without their folding.
Not part of the tests: it needs torch, onnx and onnxscript. Exits with 1 if anything differs.
"""
import json
import pathlib
import tempfile
import zipfile

import numpy as np
import torch
from onnx_comparison import Comparison, difference
from torch import nn

STEPS, RATE = 20, 0.05
comparison = Comparison(__doc__, STEPS, RATE)
torch.manual_seed(0)
torch.set_num_threads(1)


class Block(nn.Module):
    """Two convolutions and a shortcut, of ResNet-18 (arXiv:1512.03385)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                      nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.pool, self.average = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(1)
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(*(nn.Sequential(Block(i, o, s), Block(o, o, 1)) for i, o, s in sizes))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = self.layers(self.pool(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(self.average(x), 1))


class MobileNet(nn.Module):
    """Inverted residuals of MobileNetV2 (arXiv:1801.04381), small."""

    def __init__(self):
        super().__init__()

        def convolution(inputs, outputs, size, stride, groups):
            convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6())

        self.features = nn.Sequential(
            convolution(3, 16, 3, 2, 1), convolution(16, 16, 3, 1, 16), nn.Conv2d(16, 8, 1, bias=False),
            nn.BatchNorm2d(8), convolution(8, 48, 1, 1, 1), convolution(48, 48, 3, 2, 48),
            nn.Conv2d(48, 24, 1, bias=False), nn.BatchNorm2d(24))
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        return self.fc(self.features(x).mean([2, 3]))


class Encoder(nn.Module):
    """Words and positions, two Transformer layers, classes."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 32), nn.Parameter(torch.randn(1, 12, 32) * 0.1)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(32, 5)

    def forward(self, ids):
        return self.fc(self.encoder(self.words(ids) + self.positions).mean(1))


class Bert(nn.Module):
    """The layers of BERT (arXiv:1810.04805): three tables, post-normalisation, a mask of padding."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(60, 32), nn.Embedding(16, 32)
        self.kinds = nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.query, self.key, self.value, self.output = (nn.Linear(32, 32) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(32, eps=1e-12), nn.LayerNorm(32, eps=1e-12)
        self.inner, self.outer = nn.Linear(32, 64), nn.Linear(64, 32)
        self.pooler = nn.Linear(32, 32)
        self.register_buffer("ids", torch.arange(16).view(1, 16))

    def forward(self, ids):
        batch, length = ids.shape
        mask = (1.0 - (ids != 0).float()[:, None, None, :]) * -10000.0
        x = self.words(ids) + self.positions(self.ids[:, :length]) + self.kinds(torch.zeros_like(ids))
        x = self.norm(x)

        def heads(t):
            return t.view(batch, length, 4, 8).permute(0, 2, 1, 3)

        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(-1, -2) / 8**0.5 + mask
        context = (scores.softmax(-1) @ heads(self.value(x))).permute(0, 2, 1, 3).reshape(batch, length, 32)
        x = self.norm1(x + self.output(context))
        x = self.norm2(x + self.outer(nn.functional.gelu(self.inner(x))))
        return torch.tanh(self.pooler(x[:, 0]))


class Gpt(nn.Module):
    """A layer of GPT-2 with a causal mask, and its table of words as the last product."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(40, 32), nn.Embedding(16, 32)
        self.norm, self.last = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.output = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))
        self.words.weight.data.mul_(0.2)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.positions(torch.arange(length, device=ids.device))
        all = self.qkv(self.norm(x))
        q, k, v = (all[..., i:i + 32].reshape(batch, length, 4, 8).transpose(1, 2) for i in (0, 32, 64))
        scores = (q @ k.transpose(-2, -1)) / 8**0.5
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf")).softmax(-1)
        x = x + self.output((scores @ v).transpose(1, 2).reshape(batch, length, 32))
        return self.last(x) @ self.words.weight.t()


class Recurrent(nn.Module):
    def __init__(self, kind, both=False):
        super().__init__()
        self.rnn = getattr(nn, kind)(6, 10, num_layers=2, batch_first=True, bidirectional=both)
        self.fc = nn.Linear(20 if both else 10, 3)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][:, -1])


class Small(nn.Module):
    """What no other model here has: groups, uneven pads, transposed convolutions, pooling that counts no
    pads, normalisation of groups, PReLU, interpolation."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 8, 3, 1, 2, dilation=2, groups=2), nn.ConvTranspose2d(8, 6, 3, 2, 1)
        self.norm, self.slope = nn.GroupNorm(3, 6), nn.PReLU(6)
        self.pool = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.up = nn.Upsample(scale_factor=2)
        self.c = nn.Conv1d(6, 5, 5, 2, 2)

    def forward(self, x):
        x = self.up(self.pool(self.slope(self.norm(self.b(self.a(x))))))
        x = nn.functional.pad(x, (1, 2, 0, 1))
        x = torch.cat([x[..., ::2], x[..., 1::2]], -1).amax(2)
        x = nn.functional.hardswish(self.c(x))
        return nn.functional.log_softmax(x.clamp(-1, 2).flatten(1), 1)


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1))


IMAGES = torch.randn(4, 3, 32, 32)
SEQUENCES = torch.randn(3, 7, 6)
MODELS = {
    "mlp": (mlp(), torch.randn(3, 8)),
    "resnet18": (ResNet18(), torch.randn(2, 3, 64, 64)),
    "mobilenet": (MobileNet(), IMAGES),
    "small": (Small(), torch.randn(3, 4, 9, 9)),
    "encoder": (Encoder(), torch.randint(0, 50, (3, 12))),
    "bert": (Bert(), torch.randint(0, 60, (3, 10)) * (torch.arange(10) < 8)),
    "gpt": (Gpt(), torch.randint(0, 40, (2, 16))),
    "lstm": (Recurrent("LSTM"), SEQUENCES),
    "bilstm": (Recurrent("LSTM", True), SEQUENCES),
    "gru": (Recurrent("GRU"), SEQUENCES),
    "rnn": (Recurrent("RNN"), SEQUENCES),
}


def begin(model):
    """Statistics and scales other than 0 and 1, and no second bias where Keras has none."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.8, 1.2)
            module.bias.data.normal_(0, 0.1)
        if isinstance(module, nn.TransformerEncoderLayer):  # copies of one, which an exporter would join
            for weight in module.parameters():
                weight.data.add_(0.01 * torch.randn_like(weight))
        if isinstance(module, nn.BatchNorm2d):
            module.requires_grad_(False)
    model.eval()


def train_second_bias(model, old):
    """The exporter by torch.export takes RNN apart into steps, which add both biases."""
    for module in model.modules():
        if isinstance(module, nn.LSTM) or (isinstance(module, nn.RNN) and not isinstance(module, nn.GRU)):
            for name, weight in module.named_parameters():
                if name.startswith("bias_hh"):
                    weight.requires_grad_(not old and isinstance(module, nn.RNN))


def is_folded(model):
    """Batch normalisation would go into convolutions, and a weight that is used twice be written twice."""
    return not isinstance(model, Gpt) and not any(isinstance(m, nn.BatchNorm2d) for m in model.modules())


def export(model, x, path, old):
    if old:  # PRESERVE: normalisations stay nodes of their own
        torch.onnx.export(model, (x,), path, opset_version=17, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, dynamo=False,
                          do_constant_folding=is_folded(model), training=torch.onnx.TrainingMode.PRESERVE)
    else:
        torch.onnx.export(model, (x,), path, opset_version=20, input_names=["x"], output_names=["y"],
                          dynamic_shapes=({0: torch.export.Dim("batch")},), dynamo=True, external_data=False,
                          optimize=is_folded(model), verbose=False)


def freeze(path, frozen):
    """The file with its normalisations of batches not trainable."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(frozen, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "config.json":
                config = json.loads(data)
                for layer in config["config"]["layers"]:
                    if layer["class_name"] == "BatchNormalization":
                        layer["config"]["trainable"] = False
                data = json.dumps(config).encode()
            new.writestr(name, data)


def train(model, x, y):
    """Full batches of the mean squared error."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        return model(x).numpy()


def check(name, model, x, folder):
    begin(model)
    with torch.no_grad():
        y = model(x)
    target = y + 0.1 * torch.randn(y.shape)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    np.savez(folder / f"{name}.npz", x=x.numpy(), y=target.numpy())
    data = ["--data", folder / f"{name}.npz", "--batch-size", len(x)]
    for old in True, False:
        title = f"{name}_{'old' if old else 'new'}"
        path, keras, frozen = (folder / f"{title}{end}" for end in (".onnx", ".keras", "_frozen.keras"))
        try:
            export(model, x, str(path), old)
            comparison.compare_predictions(title, path, keras, data, y.numpy())
            freeze(keras, frozen)
            result = comparison.train(title, frozen, data)
            train_second_bias(model, old)
            expected = train(model, x, target)
            moved = difference(y.numpy(), expected)
            if moved < 1e-3:
                raise RuntimeError(f"PyTorch's predictions moved by {moved:.1e} alone")
            comparison.say(title, "trained", difference(result, expected), 1e-4)
        except RuntimeError as error:
            comparison.fail(title, error)
        model.load_state_dict(state)


with tempfile.TemporaryDirectory() as temporary:
    for key, (module, inputs) in MODELS.items():
        if comparison.options.only.fullmatch(key):
            check(key, module, inputs, comparison.options.folder or pathlib.Path(temporary))
comparison.end()

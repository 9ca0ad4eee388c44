"""Larger models in PyTorch: images, and those of KerasHub."""
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Sequential):
    """A convolution without a bias, batch normalization, and an activation."""

    def __init__(self, before, filters, cells, stride=1, groups=1, activation=None):
        convolution = nn.Conv2d(before, filters, cells, stride, cells // 2, groups=groups, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(filters), *([activation()] if activation else []))


class Residual(nn.Module):
    """Branches that are added; `relu` after them."""

    def __init__(self, body, short, relu):
        super().__init__()
        self.body, self.short, self.relu = body, short, relu

    def forward(self, x):
        y = self.body(x) + self.short(x)
        return functional.relu(y) if self.relu else y


def resnet50():
    """Version 1.5: the stride is in the 3x3 convolution."""
    layers, before = [Block(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        filters = 64 << stage
        for i in range(count):
            stride = 2 if i == 0 and stage else 1
            body = nn.Sequential(Block(before, filters, 1, activation=nn.ReLU),
                                 Block(filters, filters, 3, stride, activation=nn.ReLU),
                                 Block(filters, 4 * filters, 1))
            short = Block(before, 4 * filters, 1, stride) if i == 0 else nn.Identity()
            layers.append(Residual(body, short, True))
            before = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def mobilenet_v2():
    layers, before = [Block(3, 32, 3, 2, activation=nn.ReLU6)], 32
    for widen, filters, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                         (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            stride, wide = first if i == 0 else 1, before * widen
            body = nn.Sequential(*([Block(before, wide, 1, activation=nn.ReLU6)] if widen > 1 else []),
                                 Block(wide, wide, 3, stride, wide, nn.ReLU6), Block(wide, filters, 1))
            same = stride == 1 and before == filters
            layers.append(Residual(body, nn.Identity(), False) if same else body)
            before = filters
    return nn.Sequential(*layers, Block(320, 1280, 1, activation=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, 1000))


class Layer(nn.Module):
    """A layer of GPT-2 (normalized before) or of BERT (after), with dropout 0.1."""

    def __init__(self, units, heads, first):
        super().__init__()
        self.heads, self.first = heads, first
        self.norms = nn.ModuleList(nn.LayerNorm(units) for _ in range(2))
        self.heads_of, self.joined = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.wide, self.narrow, self.drop = nn.Linear(units, 4 * units), nn.Linear(4 * units, units), \
            nn.Dropout(0.1)

    def attend(self, x):
        batch, length, units = x.shape
        q, k, v = self.heads_of(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0,
                                                    is_causal=self.first)
        return self.drop(self.joined(y.transpose(1, 2).reshape(batch, length, units)))

    def feed(self, x):
        form = "tanh" if self.first else "none"
        return self.drop(self.narrow(functional.gelu(self.wide(x), approximate=form)))

    def forward(self, x):
        if self.first:
            x = x + self.attend(self.norms[0](x))
            return x + self.feed(self.norms[1](x))
        x = self.norms[0](x + self.attend(x))
        return self.norms[1](x + self.feed(x))


class LanguageModel(nn.Module):
    """GPT-2 small with its tied logits, or BERT base with two classes of the first position."""

    def __init__(self, is_gpt, words, places, layers=12, units=768, heads=12):
        super().__init__()
        self.is_gpt, self.drop = is_gpt, nn.Dropout(0.1)
        self.words, self.places = nn.Embedding(words, units), nn.Embedding(places, units)
        self.layers = nn.Sequential(*(Layer(units, heads, is_gpt) for _ in range(layers)))
        self.norm = nn.LayerNorm(units)
        if not is_gpt:
            self.segments, self.pooled, self.logits = nn.Embedding(2, units), nn.Linear(units, units), \
                nn.Linear(units, 2)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        if self.is_gpt:
            return functional.linear(self.norm(self.layers(self.drop(x))), self.words.weight).flatten(0, 1)
        x = self.layers(self.drop(self.norm(x + self.segments(torch.zeros_like(ids)))))
        return self.logits(self.drop(torch.tanh(self.pooled(x[:, 0]))))

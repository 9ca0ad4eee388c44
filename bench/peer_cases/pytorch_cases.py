"""The rows in PyTorch, run eagerly, with autocast in 16 bits where models train."""
import torch
from pytorch_models import LanguageModel, mobilenet_v2, resnet50
from torch import nn

WIDTH, CLASSES = 784, 10
UNITS, HEADS = 512, 8  # of the attention layer of `mixtape bench --only layers`


def begin(threads, _compiled, _folder):
    torch.set_num_threads(threads)
    return torch.__version__


def autocast(dtype):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != "float32")


def guide(dtype, units, batch):
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(WIDTH, units), torch.nn.ReLU(), linear(units, units), torch.nn.ReLU(),
                                linear(units, CLASSES))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-7)
    x, y = torch.rand(batch, WIDTH), torch.arange(batch) * 7 % CLASSES
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with autocast(dtype):
            loss = loss_of(model(x).float(), y)
        loss.backward()
        optimizer.step()
        loss.item()
    return (step,)


def convolution(dtype, batch, size, channels, filters, cells, stride, multiplier=1):
    narrow = getattr(torch, dtype)
    conv = torch.nn.Conv2d(channels, filters or channels * multiplier, cells, stride, cells // 2,
                           groups=1 if filters else channels).to(narrow)
    conv = conv.to(memory_format=torch.channels_last)
    x = torch.rand(batch, channels, size, size).to(narrow).to(memory_format=torch.channels_last)
    x.requires_grad_(True)
    y = conv(x)
    dy = torch.rand_like(y)

    def forward():
        with torch.no_grad():
            conv(x)

    def backward():
        sources = (x, conv.weight, conv.bias)[channels == 3:]  # nothing asks for the gradient of images
        torch.autograd.grad(y, sources, dy, retain_graph=True)
    return forward, backward


def recurrent(dtype, kind, units, steps, batch):
    narrow = getattr(torch, dtype)
    layer = getattr(torch.nn, kind)(units, units, batch_first=True).to(narrow)
    x = (torch.rand(batch, steps, units) - 0.5).to(narrow).requires_grad_(True)
    dy = (torch.rand(batch, steps, units) - 0.5).to(narrow)

    def forward():
        with torch.no_grad():
            layer(x)

    def both():
        torch.autograd.grad(layer(x)[0], (x, *layer.parameters()), dy)
    return forward, both


def attention(dtype, batch, length):
    layer = torch.nn.MultiheadAttention(UNITS, HEADS, batch_first=True)
    narrow = getattr(torch, dtype)
    x, dy = (torch.rand(batch, length, UNITS).to(narrow) - 0.5 for _ in range(2))
    x.requires_grad_(True)

    def call():
        with autocast(dtype):
            return layer(x, x, x, need_weights=False)[0]

    def forward():
        with torch.no_grad():
            call()

    def backward():
        torch.autograd.grad(call(), [x, *layer.parameters()], dy)
    return forward, backward


def transformer(dtype, batch, length, layers, units, heads, tokens):
    table = torch.nn.Embedding(tokens, units)
    model = torch.nn.Transformer(units, heads, layers, layers, 4 * units, 0.1, batch_first=True,
                                 norm_first=True)
    optimizer = torch.optim.RMSprop([*table.parameters(), *model.parameters()], lr=1e-3, alpha=0.9, eps=1e-7)
    inputs, targets = torch.randint(1, tokens, (2, batch, length))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(length)
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        with autocast(dtype):
            before = nn.functional.pad(table(targets), (0, 0, 1, 0))[:, :-1]
            y = model(table(inputs), before, tgt_mask=causal, tgt_is_causal=True)
            logits = nn.functional.linear(y, table.weight)
        loss = loss_of(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        loss.item()
    return (step,)


def resnet(dtype, side, batch):
    model = resnet50().to(memory_format=torch.channels_last)
    images = torch.rand(batch, 3, side, side).to(memory_format=torch.channels_last).requires_grad_(True)
    dy = torch.rand(batch, 1000)

    def both():
        with autocast(dtype):
            y = torch.softmax(model(images).float(), -1)
        torch.autograd.grad(y, [images, *model.parameters()], dy)
    return (both,)


def language_model(dtype, model, ids, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def step():
        optimizer.zero_grad()
        with autocast(dtype):
            logits = model(ids)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        loss.backward()
        optimizer.step()
        loss.item()
    return (step,)


def gpt2(dtype, batch, length):
    ids = torch.randint(0, 50257, (batch, length))
    return language_model(dtype, LanguageModel(True, 50257, 1024), ids, ids.flatten())


def bert(dtype, batch, length):
    ids = torch.randint(0, 30522, (batch, length))
    return language_model(dtype, LanguageModel(False, 30522, 512), ids, torch.arange(batch) % 2)


def decoding(dtype, batch, window, layers, units, heads, tokens):
    """The model of table decoding: a token at the last position with kept keys, and the whole window."""
    linear, norm = torch.nn.Linear, torch.nn.LayerNorm
    tables = torch.nn.Embedding(tokens, units), torch.nn.Embedding(window, units)
    blocks = [(norm(units), linear(units, 3 * units), linear(units, units), norm(units),
               linear(units, 4 * units), linear(4 * units, units)) for _ in range(layers)]
    last = norm(units), linear(units, tokens)
    if dtype != "float32":
        for part in (*tables, *last, *(part for block in blocks for part in block)):
            part.to(getattr(torch, dtype))
    kind = tables[0].weight.dtype
    caches = [torch.zeros(2, batch, heads, window, units // heads, dtype=kind) for _ in range(layers)]
    ids, places = torch.full((batch, window), 7), torch.arange(window)

    def run(first):
        with torch.inference_mode():
            x = tables[0](ids[:, first:]) + tables[1](places[first:])
            for (before, attention, output, after, wide, narrow), cache in zip(blocks, caches):
                shape = (batch, window - first, 3, heads, units // heads)
                q, k, v = attention(before(x)).view(shape).permute(2, 0, 3, 1, 4)
                cache[0, :, :, first:], cache[1, :, :, first:] = k, v
                y = nn.functional.scaled_dot_product_attention(q, cache[0], cache[1], is_causal=first == 0)
                x = x + output(y.transpose(1, 2).flatten(2))
                x = x + narrow(nn.functional.gelu(wide(after(x))))
            return last[1](last[0](x))[:, -1]
    return lambda: run(window - 1), lambda: run(0)


def predict(model, x):
    def call():
        with torch.inference_mode():
            return model(x)
    model.eval()
    return (call,)


def dense_predict(_dtype):
    return predict(nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                                 nn.Linear(64, 10)), torch.rand(1, 784))


def lstm_predict(_dtype):
    return predict(nn.LSTM(64, 64, batch_first=True), torch.rand(1, 128, 64))


def image_predict(model):
    return predict(model.to(memory_format=torch.channels_last),
                   torch.rand(1, 3, 224, 224).to(memory_format=torch.channels_last))


def mobilenet_predict(_dtype):
    return image_predict(mobilenet_v2())


def resnet_predict(_dtype):
    return image_predict(resnet50())

#!/usr/bin/env python3
"""The same steps in PyTorch and JAX, where the machine has them.

  peers.py torch|jax guide|resnet50|transformer --device cuda|cpu --batch N [--units N] [--seconds S]

A line of JSON for each policy: the median of a step's seconds, over rounds of steps that end with a wait.
Ends with 77, and says why, if the peer or its model is not there.
"""
import argparse
import json
import statistics
import sys
import time

WIDTH, CLASSES, LENGTH, TOKENS = 784, 10, 32, 33708
POLICIES = ("float32", "mixed_float16", "mixed_bfloat16")


def left_out(reason):
    print(reason)
    sys.exit(77)


def measure(step, wait, seconds):
    """The median of rounds of enough steps that a wait does not count."""
    begin = time.perf_counter()
    step()
    wait()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    step()
    wait()
    once = time.perf_counter() - begin
    repeats, times = max(1, int(0.02 / once)), []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100):
        begin = time.perf_counter()
        for _ in range(repeats):
            step()
        wait()
        times.append((time.perf_counter() - begin) / repeats)
    return {"step_seconds": statistics.median(times), "best_seconds": min(times),
            "first_step_seconds": first, "rounds": len(times)}


def torch_model(options):
    """The model, its inputs and its labels."""
    import torch
    from torch import nn
    device, batch = options.device, options.batch
    if options.model == "guide":
        units = options.units
        model = nn.Sequential(nn.Linear(WIDTH, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(),
                              nn.Linear(units, CLASSES))
        return model, [torch.rand(batch, WIDTH, device=device)], (torch.arange(batch) * 7 % CLASSES)
    if options.model == "resnet50":
        try:
            from torchvision.models import resnet50
        except ImportError:
            left_out("there is no torchvision")
        images = torch.rand(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
        return (resnet50().to(memory_format=torch.channels_last), [images],
                torch.arange(batch) * 7 % 1000)

    class Translate(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(TOKENS, 512)
            self.body = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True)

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=source.device)
            out = self.body(self.table(source), self.table(target), tgt_mask=mask)
            return (out @ self.table.weight.T).flatten(0, 1)
    tokens = [torch.randint(1, TOKENS, (batch, LENGTH), device=device) for _ in range(3)]
    return Translate(), tokens[:2], tokens[2].flatten()


def torch_step(options, policy):
    import torch
    torch.manual_seed(0)
    model, inputs, labels = torch_model(options)
    model, labels = model.to(options.device), labels.to(options.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-7)
    scaler = torch.amp.GradScaler(options.device, enabled=policy == "mixed_float16")
    dtype = torch.float16 if policy == "mixed_float16" else torch.bfloat16
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=dtype, enabled=policy != "float32"):
            outputs = model(*inputs)
        scaler.scale(loss_of(outputs.float(), labels)).backward()
        scaler.step(optimizer)
        scaler.update()
    return step


def run_torch(options):
    try:
        import torch
    except ImportError:
        left_out("there is no PyTorch")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for policy in POLICIES:
        row = {"peer": f"PyTorch {torch.__version__}", "policy": policy}
        row.update(measure(torch_step(options, policy), wait, options.seconds))
        print(json.dumps(row), flush=True)


def jax_step(options, policy):
    """The guide's step with RMSprop and, in float16, a dynamic loss scale, jitted, its state donated."""
    import jax
    import jax.numpy as jnp
    units, batch = options.units, options.batch
    narrow = {"float32": jnp.float32, "mixed_float16": jnp.float16, "mixed_bfloat16": jnp.bfloat16}[policy]
    key, sizes = jax.random.key(0), (WIDTH, units, units, CLASSES)
    weights = [(jax.random.uniform(key, (a, b), minval=-1, maxval=1) * (6 / (a + b)) ** 0.5, jnp.zeros(b))
               for a, b in zip(sizes, sizes[1:])]
    x, y = jax.random.uniform(key, (batch, WIDTH)), jnp.arange(batch) * 7 % CLASSES

    def loss_of(weights, scale):
        h = x.astype(narrow)
        for i, (kernel, bias) in enumerate(weights):
            h = jnp.matmul(h, kernel.astype(narrow), precision="highest") + bias.astype(narrow)
            h = jax.nn.relu(h) if i < 2 else h
        logits = jax.nn.log_softmax(h.astype(jnp.float32))
        return -jnp.mean(logits[jnp.arange(batch), y]) * scale

    def train(state):
        weights, slots, scale, good = state
        gradients = jax.tree.map(lambda g: g / scale, jax.grad(loss_of)(weights, scale))
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(gradients)]))
        moved = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g * g, slots, gradients)
        stepped = jax.tree.map(lambda w, g, s: w - 1e-3 * g / (jnp.sqrt(s) + 1e-7), weights, gradients, moved)
        weights, slots = jax.tree.map(lambda new, old: jnp.where(finite, new, old), (stepped, moved),
                                      (weights, slots))
        good = jnp.where(finite, good + 1, 0)
        if policy == "mixed_float16":
            scale = jnp.where(finite, jnp.where(good == 2000, 2 * scale, scale), scale / 2)
        return weights, slots, scale, jnp.where(good == 2000, 0, good)
    jitted = jax.jit(train, donate_argnums=0)
    scale = jnp.float32(32768 if policy == "mixed_float16" else 1)
    holder = [(weights, jax.tree.map(jnp.zeros_like, weights), scale, jnp.int32(0))]

    def step():
        holder[0] = jitted(holder[0])
    return step, lambda: jax.block_until_ready(holder[0])


def run_jax(options):
    try:
        import jax
    except ImportError:
        left_out("there is no JAX")
    if options.model != "guide":
        left_out(f"JAX has no {options.model} of its own")
    for policy in POLICIES:
        row = {"peer": f"JAX {jax.__version__}", "policy": policy}
        row.update(measure(*jax_step(options, policy), options.seconds))
        print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer", choices=("torch", "jax"))
    parser.add_argument("model", choices=("guide", "resnet50", "transformer"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=1.5)
    options = parser.parse_args()
    {"torch": run_torch, "jax": run_jax}[options.peer](options)


if __name__ == "__main__":
    main()

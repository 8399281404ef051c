#!/usr/bin/env python3
"""Measures the rows of bench_cuda with PyTorch and prints one table: flow, torch, their ratio, and flow's share of
the device's limit.

tools/gpu_check_torch.py --flow FILE [--filter REGEX]

FILE is the JSON output of bench_cuda. PyTorch runs each row eagerly, and compiled where that can be faster; its
attention is the fused one. The better time counts. Limits are the copy bandwidth and the bf16 product of 8192 that
either library reached in this run.
"""

import argparse
import json
import math
import re
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("tools/gpu_check_torch.py: this Python has no torch")

from gpt2_losses import Gpt2

TOKENS, WIDTH, VOCABULARY = 8192, 768, 50304
BATCHES, BATCH_SECONDS, MOST_CALLS = 7, 0.02, 2000


def seconds_of(call):
    """As bench_cuda measures it: the median of some batches, each of which waits for the device once."""
    def batch(calls):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    batch(3)
    calls = min(MOST_CALLS, max(1, int(BATCH_SECONDS / batch(1))))
    return sorted(batch(calls) / calls for _ in range(BATCHES))[BATCHES // 2]


def normal(shape, dtype=torch.float32, requires_grad=False):
    return torch.randn(shape, device="cuda").to(dtype).requires_grad_(requires_grad)


def unary(shape, f):
    def make(dtype):
        x = normal(shape, dtype)
        return f, (x,)
    return make


def with_gradient(shape, f):
    def make(dtype):
        x = normal(shape, dtype, True)
        dy = normal(shape, dtype)
        return lambda x: torch.autograd.grad(f(x), x, dy), (x,)
    return make


def attention(backward):
    shape = (8, 12, 1024, WIDTH // 12)
    inputs = [normal(shape, torch.bfloat16, backward) for _ in range(3)]
    dy = normal(shape, torch.bfloat16)

    def call(*qkv):
        y = F.scaled_dot_product_attention(*qkv, is_causal=True)
        return torch.autograd.grad(y, qkv, dy) if backward else y
    return call, inputs


def cross_entropy():
    x = normal((TOKENS, VOCABULARY), torch.bfloat16, True)
    target = torch.randint(VOCABULARY, (TOKENS,), device="cuda")
    return lambda x: torch.autograd.grad(F.cross_entropy(x, target), x), (x,)


def embedding():
    weight = normal((VOCABULARY, WIDTH), requires_grad=True)
    tokens = torch.randint(VOCABULARY, (TOKENS,), device="cuda")
    dy = normal((TOKENS, WIDTH))
    return lambda weight: torch.autograd.grad(F.embedding(tokens, weight), weight, dy), (weight,)


def gpt2_124m():
    return Gpt2(VOCABULARY, length=1024, layers=12, heads=12, width=WIDTH).cuda()


def gpt2(compiled):
    model = gpt2_124m()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    forward = torch.compile(model) if compiled else model
    tokens, targets = (torch.randint(VOCABULARY, (8, 1024), device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = forward(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step


def adamw():
    model = gpt2_124m()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    return optimizer.step, ()


def clip():
    parameters = list(gpt2_124m().parameters())
    for p in parameters:
        p.grad = torch.randn_like(p)
    return lambda: torch.nn.utils.clip_grad_norm_(parameters, 1e-3, foreach=True), ()


def mlp():
    model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, target = normal((512, 784)), torch.randint(10, (512,), device="cuda")

    def step():
        loss = F.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step, ()


LARGE, HIDDEN, WIDE = (8192, 8192), (TOKENS, WIDTH), (TOKENS, 4 * WIDTH)
FAMILIES = {
    "copy": unary(LARGE, lambda x: x.clone()),
    "add": unary(LARGE, lambda x: x + x),
    "gelu": unary(LARGE, lambda x: F.gelu(x, approximate="tanh")),
    "sum": unary(LARGE, lambda x: x.sum()),
    "softmax": unary(LARGE, lambda x: F.softmax(x, -1)),
    "layer_norm": unary(WIDE, lambda x: F.layer_norm(x, (4 * WIDTH,))),
    "layer_norm/bwd": with_gradient(HIDDEN, lambda x: F.layer_norm(x, (WIDTH,))),
    "transpose": unary(LARGE, lambda x: x.t().contiguous()),
}
CALLS = {
    "cross_entropy/bfloat16/bwd": cross_entropy,
    "embedding/float32/bwd": embedding,
    "attention/bfloat16": lambda: attention(False),
    "attention/bfloat16/bwd": lambda: attention(True),
    "adamw/float32": adamw,
    "clip/float32": clip,
    "train/mlp": mlp,
    "call/add4x4": lambda: (lambda x: x + x, (normal((4, 4)),)),
    "to_device": lambda: (lambda x: x.cuda(), (torch.ones(1 << 24),)),
    "to_host": lambda: (lambda x: x.cpu(), (torch.ones(1 << 24, device="cuda"),)),
    "train/gpt2": lambda: (gpt2(False), ()),
    "train/gpt2/graph": lambda: (gpt2(True), ()),
}
NOT_COMPILED = ("copy", "gemm", "call", "to_", "train", "attention", "adamw", "clip", "embedding", "sum", "transpose")


def make(name):
    """The function and arguments of a row, or None for a row that this script does not know."""
    if name in CALLS:
        return CALLS[name]()
    if sizes := re.fullmatch(r"gemm/(\w+)/(\d+)x(\d+)x(\d+)", name):
        m, k, n = map(int, sizes.groups()[1:])
        dtype = getattr(torch, sizes[1])
        return torch.matmul, (normal((m, k), dtype), normal((k, n), dtype))
    if parts := re.fullmatch(r"(\w+)/(float32|bfloat16)(/bwd)?", name):
        family = FAMILIES.get(parts[1] + (parts[3] or ""))
        return family(getattr(torch, parts[2])) if family else None
    return None


def best_seconds(name):
    made = make(name)
    if made is None:
        return None
    call, arguments = made
    best = seconds_of(lambda: call(*arguments))
    if not name.startswith(NOT_COMPILED):
        compiled = torch.compile(call)
        best = min(best, seconds_of(lambda: compiled(*arguments)))
    return best


def share_of_limit(row, limits):
    limit = limits.get(row["label"])
    return f"{row['value'] / limit:.2f}" if limit and not row["name"].startswith(("to_", "gemm/float32")) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flow", required=True)
    parser.add_argument("--filter", default=".", help="a regular expression for the names of the rows")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    with open(arguments.flow) as file:
        rows = [row for row in json.load(file)["benchmarks"] if not row.get("error_occurred")]
    results = []
    for row in rows:
        row["name"] = row["name"].split("/iterations")[0]
        if not re.search(arguments.filter, row["name"]):
            continue
        try:
            seconds = best_seconds(row["name"])
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            print(f"{row['name']}: PyTorch: {str(error).splitlines()[0]}")
            seconds = None
        torch.cuda.empty_cache()
        results.append((row, row["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[row["time_unit"]], seconds))
    limits = {}
    for row, own, seconds in results:
        if row["name"] in ("copy/float32", "gemm/bfloat16/8192x8192x8192"):
            limits[row["label"]] = row["value"] * max(1, own / seconds if seconds else 1)
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; limits: "
          + ", ".join(f"{value:.0f} {unit}" for unit, value in limits.items()))
    print(f"{'row':36} {'flow us':>11} {'torch us':>11} {'ratio':>6} {'of limit':>8}  flow's rate")
    ratios = []
    for row, own, seconds in results:
        ratio = seconds / own if seconds else None
        if ratio:
            ratios.append(ratio)
        print(f"{row['name']:36} {1e6 * own:11.1f} {f'{1e6 * seconds:.1f}' if seconds else '-':>11} "
              f"{f'{ratio:.2f}' if ratio else '-':>6} {share_of_limit(row, limits):>8}  "
              f"{row['value']:.4g} {row['label']}")
    if ratios:
        print(f"geometric mean of {len(ratios)} ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    main()

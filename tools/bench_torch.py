#!/usr/bin/env python3
"""Compares the rows of bench_ops with PyTorch's, measured in turns on one thread.

tools/bench_torch.py [--filter REGEX] [--rounds N] [--seconds S] [--json FILE]

Needs build/release/bin/bench_ops (tools/build release) and a Python with torch. Each round measures a few
rows with flow, then the same rows with PyTorch; the least time of all rounds counts. Prints for each row both
times and flow's speed as a multiple of PyTorch's, then geometric means and the rows below 1.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("tools/bench_torch.py: this Python has no torch: pip install torch")

import bench_rows

ROWS_AT_ONCE = 12
BLOCK_S = 1e-3


def make_input(words):
    """The tensor that benchmarks/op_rows.h describes."""
    kind, shape = re.fullmatch(r"(.*)\[([\dx]+)\]", words).groups()
    shape = [int(size) for size in shape.split("x")]
    if kind == "bool":
        return torch.rand(shape) < 0.5
    if bounded := re.fullmatch(r"i64<(\d+)>", kind):
        return torch.randint(0, int(bounded[1]), shape)
    kind, _, view = kind.partition(".")
    stored = {"": shape, "t": shape[::-1], "s": [shape[i] for i in (0, 2, 3, 1)] if view == "s" else shape}[view]
    x = torch.rand(stored) + 0.1 if kind.endswith("+") else torch.randn(stored)
    x = x.to({"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}[kind.rstrip("+")])
    return {"": x, "t": x.t() if view == "t" else x, "s": x.permute(0, 3, 1, 2) if view == "s" else x}[view]


def in_place(function):
    def call(x, *others):
        function(x, *others)
        return x
    return call


def clip(x, gradient):
    x.grad = gradient
    return torch.nn.utils.clip_grad_norm_([x], 1e9)


def put(x, index, value):
    x[index] = value


def copy_slice(x, source):
    x.narrow(1, 4, source.size(1)).copy_(source)
    return source


class Recurrent:
    def __init__(self, kind):
        self.kind, self.modules = kind, {}

    def module(self, x):
        size = x.size(-1)
        if size not in self.modules:
            self.modules[size] = self.kind(size, size, batch_first=True)
        return self.modules[size]

    def __call__(self, x):
        return self.module(x)(x)[0]

    def parameters(self, x):
        return list(self.module(x).parameters())


EDGES = torch.linspace(0, 1, 100)

CALLS = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "abs": torch.abs,
    "neg": torch.neg, "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "relu": torch.relu, "silu": F.silu, "gelu": F.gelu,
    "gelu/tanh": lambda x: F.gelu(x, approximate="tanh"), "softplus": F.softplus, "leaky_relu": F.leaky_relu,
    "pow/2": lambda x: torch.pow(x, 2), "pow/tensor": torch.pow, "clamp": lambda x: torch.clamp(x, -1, 1),
    "add": torch.add, "add/bf16": torch.add, "add/row": torch.add, "add/column": torch.add,
    "add/channel": torch.add, "add/outer": torch.add, "add/transposed": torch.add,
    "add/number": lambda x: x + 1.5, "mul": torch.mul, "mul/column": torch.mul, "mul/bf16": torch.mul,
    "div": torch.div, "maximum": torch.maximum, "gt": torch.gt, "eq/number": lambda x: x == 3,
    "where": torch.where, "masked_fill": lambda x, m: torch.masked_fill(x, m, 0.5), "addcmul": torch.addcmul,
    "lerp": lambda a, b: torch.lerp(a, b, 0.3), "to/bf16": lambda x: x.to(torch.bfloat16),
    "to/f32": lambda x: x.to(torch.float32), "to/i64": lambda x: x.to(torch.int64),
    "add_": in_place(torch.Tensor.add_), "mul_/number": lambda x: x.mul_(1.0),
    "sum": torch.sum, "sum/dim0": lambda x: x.sum(0), "sum/dim1": lambda x: x.sum(1),
    "sum/middle": lambda x: x.sum(1), "sum/bf16": lambda x: x.sum(1), "sum/transposed": lambda x: x.sum(1),
    "mean/dim1": lambda x: x.mean(1), "var/dim1": lambda x: x.var(1), "std": torch.std,
    "prod/dim1": lambda x: x.prod(1), "norm": torch.norm, "norm/dim1": lambda x: torch.norm(x, dim=1),
    "norm/3": lambda x: torch.norm(x, 3, 1),
    "max": torch.max, "max/dim0": lambda x: torch.max(x, 0)[0], "max/dim1": lambda x: torch.max(x, 1)[0],
    "amax/dim1": lambda x: x.amax(1), "argmax/dim0": lambda x: x.argmax(0), "argmax/dim1": lambda x: x.argmax(1),
    "logsumexp/dim0": lambda x: x.logsumexp(0), "logsumexp/dim1": lambda x: x.logsumexp(1), "all": torch.all,
    "cumsum/dim0": lambda x: x.cumsum(0), "cumsum/dim1": lambda x: x.cumsum(1),
    "cumprod/dim1": lambda x: x.cumprod(1), "median/dim1": lambda x: x.median(1)[0], "clip_grad_norm_": clip,
    "sort": lambda x: x.sort()[0], "sort/rows": lambda x: x.sort()[0], "sort/i64": lambda x: x.sort()[0],
    "argsort": torch.argsort, "topk/5": lambda x: x.topk(5)[0], "topk/50": lambda x: x.topk(50)[0],
    "unique_consecutive": torch.unique_consecutive, "histc": lambda x: torch.histc(x, 100, -3, 3),
    "unique": torch.unique, "bincount": torch.bincount, "searchsorted": lambda x: torch.searchsorted(EDGES, x),
    "nonzero": torch.nonzero, "masked_select": torch.masked_select,
    "gather/dim0": lambda x, i: x.gather(0, i), "gather/dim1": lambda x, i: x.gather(1, i),
    "gather/labels": lambda x, i: x.gather(1, i), "scatter/dim1": lambda x, i, s: x.scatter(1, i, s),
    "scatter_add/dim0": lambda x, i, s: x.scatter_add(0, i, s),
    "scatter_add/dim1": lambda x, i, s: x.scatter_add(1, i, s),
    "index_select/dim0": lambda x, i: x.index_select(0, i), "index_select/dim1": lambda x, i: x.index_select(1, i),
    "index_add/dim0": lambda x, i, s: x.index_add(0, i, s), "index/rows": lambda x, i: x[i],
    "index/pairs": lambda x, i, j: x[i, j], "index/mask": lambda x, m: x[m],
    "index_put/mask": in_place(lambda x, m: put(x, m, 0.5)), "index_put/rows": in_place(put),
    "embedding": lambda w, i: F.embedding(i, w),
    "one_hot": lambda i: F.one_hot(i, 10 if i.numel() == 64 else 1000),
    "cat/dim0": lambda a, b: torch.cat([a, b], 0), "cat/dim1": lambda a, b: torch.cat([a, b], 1),
    "stack": lambda a, b: torch.stack([a, b]), "flip/dim0": lambda x: x.flip(0), "flip/dim1": lambda x: x.flip(1),
    "roll": lambda x: x.roll(3, 1), "repeat": lambda x: x.repeat(2, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0), "pad/constant": lambda x: F.pad(x, (1, 1, 1, 1)),
    "pad/reflect": lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"),
    "pad/replicate": lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"), "tril": torch.tril,
    "contiguous/transposed": lambda x: x.contiguous(),
    "contiguous/heads": lambda x: x.permute(0, 2, 1, 3).contiguous(),
    "contiguous/channels_last": lambda x: x.contiguous(),
    "contiguous/expanded": lambda x: x.expand(x.size(0), x.size(0)).contiguous(), "clone": torch.clone,
    "copy_/slice": copy_slice, "zeros": torch.zeros_like, "rand": torch.rand_like, "randn": torch.randn_like,
    "arange": lambda _: torch.arange(4096),
    "softmax/dim1": lambda x: x.softmax(1), "softmax/dim0": lambda x: x.softmax(0),
    "log_softmax/dim1": lambda x: x.log_softmax(1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.size(1),), w, b),
    "rms_norm": lambda x, w: F.rms_norm(x, (x.size(1),), w), "group_norm": lambda x, w, b: F.group_norm(x, 4, w, b),
    "batch_norm/train": lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, training=True),
    "batch_norm/eval": F.batch_norm, "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d/3x3": lambda x: F.max_pool2d(x, 3, stride=2, padding=1), "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 1),
    "interpolate/nearest": lambda x: F.interpolate(x, scale_factor=2),
    "interpolate/bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "grid_sample": lambda x, g: F.grid_sample(x, g, align_corners=False), "normalize": F.normalize,
    "conv2d/3x3": lambda x, w, b: F.conv2d(x, w, b, padding=1), "conv2d/1x1": F.conv2d,
    "dropout": F.dropout,
    "scaled_dot_product_attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "lstm": Recurrent(torch.nn.LSTM), "gru": Recurrent(torch.nn.GRU),
    "mse_loss": F.mse_loss, "l1_loss": F.l1_loss, "smooth_l1_loss": F.smooth_l1_loss,
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits, "cross_entropy": F.cross_entropy,
    "matmul": torch.matmul, "matmul/transposed": torch.matmul, "matmul/skinny": torch.matmul,
    "matmul/batched": torch.matmul, "linear": F.linear, "cdist": torch.cdist,
}


def list_rows():
    """(row name, call name, words of the inputs, number of gradients or 0) of each row of bench_ops."""
    rows = []
    for line in subprocess.run([bench_rows.BIN / "bench_ops", "--list"], check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        name = f"ops/{row['name']}/{row['size']}"
        rows.append((name, row["name"], row["inputs"], 0))
        if row["gradients"]:
            rows.append((name + "/backward", row["name"], row["inputs"], row["gradients"]))
    missing = sorted({row[1] for row in rows} - CALLS.keys())
    unused = sorted(CALLS.keys() - {row[1] for row in rows})
    if missing or unused:
        sys.exit(f"tools/bench_torch.py: no PyTorch call for {missing}, no row for {unused}")
    return rows


def run_flow(rows, seconds):
    """The microseconds of each row."""
    measured = bench_rows.measure("bench_ops", [row[0] for row in rows], seconds)
    return {name: row["value"] for name, row in measured.items()}


def run_torch(row, seconds):
    """The least microseconds of a call, as bench_ops measures them."""
    _, name, words, num_gradients = row
    call = CALLS[name]
    inputs = [make_input(word) for word in words]
    if num_gradients:
        leaves = [x.requires_grad_() for x in inputs[:num_gradients]]
        leaves += getattr(call, "parameters", lambda *_: [])(*inputs)
        gradient = torch.ones_like(call(*inputs))

        def work():
            torch.autograd.grad(call(*inputs), leaves, gradient)
    else:
        def work():
            with torch.no_grad():
                call(*inputs)
    work()
    work()
    start = time.perf_counter()
    work()
    calls = int(min(max(BLOCK_S / (time.perf_counter() - start), 1), 1e4))
    best, begin = math.inf, time.perf_counter()
    while time.perf_counter() - begin < seconds or best == math.inf:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="a regular expression for the names of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="for a row in a round")
    parser.add_argument("--json", help="also writes the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for row in list_rows() if re.search(options.filter, row[0])]
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, one thread")
    print(f"{'row':58} {'flow us':>10} {'PyTorch us':>10} {'speed':>6}")
    ratios = {}
    for first in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[first:first + ROWS_AT_ONCE]
        best = {row[0]: [math.inf, math.inf] for row in some}
        for _ in range(options.rounds):
            for name, value in run_flow(some, options.seconds).items():
                best[name][0] = min(best[name][0], value)
            for row in some:
                best[row[0]][1] = min(best[row[0]][1], run_torch(row, options.seconds))
        for name, (flow, other) in best.items():
            ratios[name] = other / flow
            print(f"{name:58} {flow:10.2f} {other:10.2f} {ratios[name]:6.2f}", flush=True)
    large = [ratio for name, ratio in ratios.items() if "/large" in name]
    mean = bench_rows.geometric_mean
    print(f"geometric mean {mean(list(ratios.values())):.2f}, of the large sizes {mean(large):.2f}")
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < 1)
    print(f"{len(slower)} of {len(ratios)} rows below 1:")
    for ratio, name in slower:
        print(f"  {ratio:5.2f}  {name}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(ratios, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

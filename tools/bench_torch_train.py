#!/usr/bin/env python3
"""Compares the training steps of bench_train with PyTorch's, measured in turns.

tools/bench_torch_train.py [--filter REGEX] [--rounds N] [--seconds S] [--threads 1|2] [--json FILE]

Needs build/release/bin/bench_train (tools/build release) and a Python with torch. The models, batches and
optimizers are those of benchmarks/train_models.cpp. Each round measures PyTorch's eager step of a model before
and after flow's eager and compiled ones; with one thread in processor time, with two in wall-clock time. The
lower quartiles of a round count. A speed is the median over the rounds of PyTorch's time, the mean of the two,
divided by flow's: some hosts change their clock within minutes, so the fastest rounds of both would compare
different clocks. The last column has the least and the greatest speed of the eager step in a round. The times
are medians.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    sys.exit("tools/bench_torch_train.py: this Python has no torch: pip install torch")

import bench_rows


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class Lenet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))


def conv_norm_relu(channels, out, kernel, stride=1, groups=1):
    return [nn.Conv2d(channels, out, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(out), nn.ReLU6()]


class InvertedResidual(nn.Module):
    def __init__(self, channels, out, stride, expansion):
        super().__init__()
        hidden = channels * expansion
        layers = conv_norm_relu(channels, hidden, 1) if expansion != 1 else []
        layers += conv_norm_relu(hidden, hidden, 3, stride, hidden)
        layers += [nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.conv = nn.Sequential(*layers)
        self.adds_input = stride == 1 and channels == out

    def forward(self, x):
        return x + self.conv(x) if self.adds_input else self.conv(x)


class MobileNetV2(nn.Sequential):
    def __init__(self):
        channels, layers = 32, conv_norm_relu(3, 32, 3, 2)
        for expansion, width, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                 (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(blocks):
                layers.append(InvertedResidual(channels, width, stride if block == 0 else 1, expansion))
                channels = width
        layers += conv_norm_relu(channels, 1280, 1)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.fc_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (part.view(n, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, length, width))
        return x + self.fc_proj(F.gelu(self.fc(self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, length, layers, heads, width):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.ln_f(self.blocks(self.wte(tokens) + self.wpe.weight)))


def momentum_sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def tokens(*shape):
    return torch.randint(0, 256, shape)


def labels(batch):
    return torch.randint(0, 10, (batch,))


# By name: functions that make the model, the optimizer, the input and the target.
MODELS = {
    "mlp64": (Mlp, momentum_sgd, lambda: torch.randn(64, 784), lambda: labels(64)),
    "mlp512": (Mlp, momentum_sgd, lambda: torch.randn(512, 784), lambda: labels(512)),
    "lenet": (Lenet, momentum_sgd, lambda: torch.randn(64, 1, 28, 28), lambda: labels(64)),
    "mbv2": (MobileNetV2, momentum_sgd, lambda: torch.randn(32, 3, 32, 32), lambda: labels(32)),
    "gpt-char": (lambda: Gpt(128, 4, 4, 128), adamw, lambda: tokens(16, 128), lambda: tokens(16, 128)),
    "gpt-small": (lambda: Gpt(256, 6, 6, 384), adamw, lambda: tokens(8, 256), lambda: tokens(8, 256)),
}


def make_step(name):
    make_model, make_optimizer, make_input, make_target = MODELS[name]
    model, x, y = make_model(), make_input(), make_target()
    optimizer = make_optimizer(model.parameters())

    def step():
        output = model(x)
        F.cross_entropy(output.reshape(y.numel(), -1), y.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def run_torch(step, seconds, clock):
    """The milliseconds of a step."""
    step()
    step()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = clock()
        step()
        times.append(clock() - start)
    return 1e3 * sorted(times)[len(times) // 4]


def run_flow(rows, seconds):
    """The milliseconds of each row of bench_train."""
    return {name: row["ms"] for name, row in bench_rows.measure("bench_train", rows, seconds).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="a regular expression for the names of the models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="for a row in a round")
    parser.add_argument("--threads", type=int, default=1, choices=(1, 2))
    parser.add_argument("--json", help="also writes the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    suffix = "" if options.threads == 1 else "/threads:2"
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {options.threads} thread(s)")
    print(f"{'model':12} {'eager ms':>10} {'graph ms':>10} {'PyTorch ms':>10} {'eager':>6} {'graph':>6} "
          f"{'eager, range':>13}")
    speeds = {}
    for name in MODELS:
        if not re.search(options.filter, name):
            continue
        rows = [f"train/{name}{suffix}", f"train/{name}/graph{suffix}"]
        eager, graph, other = [], [], []
        step = make_step(name)
        for _ in range(options.rounds):
            before = run_torch(step, options.seconds, clock)
            flow = run_flow(rows, options.seconds)
            eager.append(flow[rows[0]])
            graph.append(flow[rows[1]])
            other.append((before + run_torch(step, options.seconds, clock)) / 2)
        eager_speeds = [torch_ms / ms for torch_ms, ms in zip(other, eager)]
        speeds[name] = {"eager": statistics.median(eager_speeds),
                        "graph": statistics.median(torch_ms / ms for torch_ms, ms in zip(other, graph))}
        times = " ".join(f"{statistics.median(ms):10.3f}" for ms in (eager, graph, other))
        print(f"{name:12} {times} {speeds[name]['eager']:6.2f} {speeds[name]['graph']:6.2f} "
              f"{min(eager_speeds):6.2f} {max(eager_speeds):6.2f}", flush=True)
    for kind in ("eager", "graph"):
        ratios = [speed[kind] for name, speed in speeds.items() if name != "mbv2"]
        if ratios:
            print(f"{kind}: geometric mean without mbv2 {bench_rows.geometric_mean(ratios):.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(speeds, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

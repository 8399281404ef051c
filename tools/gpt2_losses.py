#!/usr/bin/env python3
"""Trains a GPT-2 with train_gpt2 and with PyTorch, from the same weights and data, and compares the losses.

tools/gpt2_losses.py PROGRAM [--device cuda|cpu] [--steps N] [--layers N --heads N --width N --length N
                     --vocabulary N --batch N] [--limit SHARE] [--out DIR]

PROGRAM is build/.../bin/train_gpt2. Both train in bfloat16 mixed precision with AdamW, weight decay on matrices,
clipped gradients and the schedule of the example. The tokens follow a made rule with noise, so that losses fall.
flow's losses are flow.jsonl in the folder --out, PyTorch's are torch.jsonl. PyTorch trains a second time with
attention as separate products, to show how far two correct trainings drift apart. The exit status is 1 if a loss
differs by more than --limit (0.01) of PyTorch's. Needs a Python with torch.
"""

import argparse
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    sys.exit("tools/gpt2_losses.py: this Python has no torch: pip install torch")

LEARNING_RATE, LEAST_RATE = 6e-4, 6e-5  # of examples/train_gpt2.cpp
PADDING = 128


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attn["c_attn"](self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """The names of the parameters are those of Hugging Face's model."""

    def __init__(self, vocabulary, length, layers, heads, width):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                std = 0.02 / math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 0.02
                nn.init.normal_(parameter, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().float().contiguous().cpu().numpy().tobytes())


def weights_for_file(model, vocabulary):
    tensors = {}
    for name, parameter in model.named_parameters():
        value = parameter[:vocabulary] if name == "wte.weight" else parameter
        is_linear = parameter.dim() == 2 and not name.startswith("w")
        tensors[name] = value.t() if is_linear else value
    return tensors


def make_tokens(count, vocabulary):
    """Most tokens follow from the one before; the others come from a few frequent ones."""
    generator = torch.Generator().manual_seed(2)
    follows = torch.randperm(vocabulary, generator=generator).tolist()
    ranks = torch.rand(count, generator=generator).pow(4).mul(vocabulary).long().clamp(max=vocabulary - 1).tolist()
    is_random = (torch.rand(count, generator=generator) < 0.4).tolist()
    tokens, last = [], 0
    for rank, draws in zip(ranks, is_random):
        last = rank if draws else follows[last]
        tokens.append(last)
    return tokens


def rate_factor(step, steps):
    low = LEAST_RATE / LEARNING_RATE
    cosine = low + (1 - low) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, step / max(1, steps))))
    return min((step + 1) / max(1.0, steps / 10), cosine)


def train_torch(model, tokens, options):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0.0}], lr=LEARNING_RATE, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, options.steps))
    data = torch.tensor(tokens, device=options.device)
    length, losses = options.length, []
    num_samples = (len(tokens) - 1) // length
    for step in range(options.steps):
        first = step % (num_samples // options.batch) * options.batch
        starts = [(first + i) * length for i in range(options.batch)]
        x = torch.stack([data[s:s + length] for s in starts])
        y = torch.stack([data[s + 1:s + 1 + length] for s in starts])
        with torch.autocast(options.device, torch.bfloat16):
            loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=0.01)
    parser.add_argument("--out", type=pathlib.Path)
    for name, default in (("steps", 200), ("layers", 12), ("heads", 12), ("width", 768), ("length", 1024),
                          ("vocabulary", 50257), ("batch", 8)):
        parser.add_argument("--" + name, type=int, default=default)
    options = parser.parse_args()
    torch.manual_seed(1)
    padded = -(-options.vocabulary // PADDING) * PADDING
    model = Gpt2(padded, options.length, options.layers, options.heads, options.width).to(options.device)
    with torch.no_grad():
        model.wte.weight[options.vocabulary:] = 0
    first_weights = {name: value.clone() for name, value in model.state_dict().items()}
    tokens = make_tokens(options.steps * options.batch * options.length + 1, options.vocabulary)
    sizes = [f"--{name}={getattr(options, name)}"
             for name in ("steps", "layers", "heads", "width", "length", "vocabulary", "batch")]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        out = options.out or work
        out.mkdir(parents=True, exist_ok=True)
        (work / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        write_safetensors(work / "init.safetensors", weights_for_file(model, options.vocabulary))
        start = time.monotonic()
        subprocess.run([options.program, "--device", options.device, "--data", work / "tokens.bin", "--in-order",
                        "--init", work / "init.safetensors", "--log", out / "flow.jsonl", *sizes], check=True)
        middle = time.monotonic()
        own = [json.loads(line)["loss"] for line in open(out / "flow.jsonl")]
    theirs = train_torch(model, tokens, options)
    end = time.monotonic()
    model.load_state_dict(first_weights)
    with sdpa_kernel(SDPBackend.MATH):
        again = train_torch(model, tokens, options)
    if options.out:
        with open(options.out / "torch.jsonl", "w") as file:
            file.writelines(json.dumps({"loss": a, "again": b}) + "\n" for a, b in zip(theirs, again))
    drift = max(abs(a - b) / abs(a) for a, b in zip(theirs, again))
    if len(own) != len(theirs):
        sys.exit(f"flow logged {len(own)} losses, and PyTorch {len(theirs)}")
    differences = [abs(a - b) / abs(b) for a, b in zip(own, theirs)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    for step in sorted({0, worst, len(own) // 2, len(own) - 1}):
        print(f"step {step + 1:4d}  flow {own[step]:.5f}  PyTorch {theirs[step]:.5f}")
    print(f"losses of {len(own)} steps: they differ by {differences[worst]:.3%} at most, "
          f"PyTorch's with another attention by {drift:.3%}; "
          f"{middle - start:.1f} s, PyTorch {end - middle:.1f} s")
    sys.exit(0 if differences[worst] <= options.limit else 1)


if __name__ == "__main__":
    main()

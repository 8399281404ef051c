#!/usr/bin/env python3
"""Computes the golden data of tests/parity with PyTorch in float64. See README.md."""

import argparse
import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from module_cases import Packed, module_texts, parametrized_cases, transformer_cases

STEPS = 10
EPOCHS = 50


def optimizer_cases():
    """Every rule with its defaults and with all of its options away from them."""
    decay = {"weight_decay": 0.1}
    up = {"maximize": True}
    cases = [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, **decay, **up}),
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, **decay}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, **decay, **up}),
        ("Adam", {}),
        ("Adam", {"lr": 0.05, "betas": [0.7, 0.9], "eps": 1e-3, **decay, **up}),
        ("Adam", {"lr": 0.05, "amsgrad": True, "betas": [0.5, 0.6]}),
        ("AdamW", {}),
        ("AdamW", {"lr": 0.05, "betas": [0.7, 0.9], "eps": 1e-3, **decay, **up}),
        ("AdamW", {"lr": 0.05, "amsgrad": True, "betas": [0.5, 0.6]}),
        ("Adamax", {}),
        ("Adamax", {"lr": 0.05, "betas": [0.7, 0.9], "eps": 1e-3, **decay, **up}),
        ("NAdam", {}),
        ("NAdam", {"lr": 0.05, "momentum_decay": 0.1, **decay, **up}),
        ("NAdam", {"lr": 0.05, "decoupled_weight_decay": True, **decay}),
        ("RAdam", {}),
        ("RAdam", {"lr": 0.05, "betas": [0.7, 0.9], "eps": 1e-3, **decay, **up}),
        ("RAdam", {"lr": 0.05, "decoupled_weight_decay": True, **decay}),
        ("RMSprop", {}),
        ("RMSprop", {"lr": 0.05, "alpha": 0.8, "eps": 1e-3, **decay, **up}),
        ("RMSprop", {"lr": 0.05, "momentum": 0.7}),
        ("RMSprop", {"lr": 0.05, "momentum": 0.7, "centered": True, **decay}),
        ("Adagrad", {}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5,
                     "eps": 1e-3, **decay, **up}),
        ("Adadelta", {}),
        ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, **decay, **up}),
        ("ASGD", {}),
        ("ASGD", {"lr": 0.1, "lambd": 0.2, "alpha": 0.5, "t0": 3.0, **decay, **up}),
        ("Rprop", {}),
        ("Rprop", {"lr": 0.05, "etas": [0.3, 1.7], "step_sizes": [0.02, 0.2], **up}),
        ("Adafactor", {}),
        ("Adafactor", {"lr": 0.3, "beta2_decay": -0.5, "eps": [1e-3, 0.5], "d": 1.5, **decay, **up}),
        ("LAMB", {}),
        ("LAMB", {"lr": 0.05, "betas": [0.7, 0.9], "eps": 1e-3, **decay}),
        ("LAMB", {"lr": 0.05, "adam_w_mode": False, **decay}),
    ]
    counts = {}
    for name, args in cases:
        counts[name] = counts.get(name, 0) + 1
        yield {"id": f"{name.lower()}_{counts[name]}", "optimizer": name, "args": args}
    yield {"id": "groups", "optimizer": "AdamW", "args": {"lr": 0.05},
           "param_groups": {"bias": {"lr": 0.2, "weight_decay": 0.0}, "weight": {}}}


def clip_cases():
    base = {"optimizer": "SGD", "args": {"lr": 0.1, "momentum": 0.9}}
    for number, clip in enumerate([
            {"kind": "norm", "max_norm": 1.0},
            {"kind": "norm", "max_norm": 100.0},
            {"kind": "norm", "max_norm": 0.5, "norm_type": 1.0},
            {"kind": "norm", "max_norm": 0.5, "norm_type": "inf"},
            {"kind": "value", "clip_value": 0.25}]):
        yield {"id": f"clip_{number + 1}", **base, "clip": clip}


def matrix_cases():
    """Muon, which works in bfloat16 and on matrices only."""
    for number, args in enumerate([
            {"lr": 0.02},
            {"lr": 0.02, "weight_decay": 0.0, "momentum": 0.8, "nesterov": False, "ns_steps": 3,
             "adjust_lr_fn": "match_rms_adamw"},
            {"lr": 0.02, "ns_coefficients": [2.0, -1.5, 0.5],
             "adjust_lr_fn": "spectral_unclamped"}]):
        yield {"id": f"muon_{number + 1}", "optimizer": "Muon", "args": args}


def scheduler_cases():
    linear = {"scheduler": "LinearLR", "args": {"start_factor": 0.1, "total_iters": 7}}
    cosine = {"scheduler": "CosineAnnealingLR", "args": {"T_max": 30, "eta_min": 0.001}}
    step = {"scheduler": "StepLR", "args": {"step_size": 6, "gamma": 0.5}}
    restarts = {"scheduler": "CosineAnnealingWarmRestarts", "args": {"T_0": 4, "T_mult": 2}}
    exponential = {"scheduler": "ExponentialLR", "args": {"gamma": 0.9}}
    constant = {"scheduler": "ConstantLR", "args": {"factor": 0.25, "total_iters": 8}}
    polynomial = {"scheduler": "PolynomialLR", "args": {"total_iters": 20, "power": 1.7}}
    bumpy = [1.0, 0.5, 0.6, 0.7, 0.49999, 0.8, 0.8, 0.2] + [0.2] * 42
    cases = [
        ("LambdaLR", {"lr_lambda": [1.0, 0.5, 0.7, 2.0, 0.1]}),
        ("MultiplicativeLR", {"lr_lambda": [1.0, 0.5, 1.7, 0.99]}),
        ("StepLR", {"step_size": 7}),
        ("MultiStepLR", {"milestones": [3, 20, 20, 8], "gamma": 0.3}),
        ("ConstantLR", {}),
        ("ConstantLR", {"factor": 0.7, "total_iters": 1}),
        ("LinearLR", {}),
        ("LinearLR", {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 33}),
        ("ExponentialLR", {"gamma": 0.93}),
        ("PolynomialLR", {}),
        ("PolynomialLR", {"total_iters": 40, "power": 2.5}),
        ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
        ("CosineAnnealingLR", {"T_max": 50}),
        ("CosineAnnealingWarmRestarts", {"T_0": 5}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
        ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 6}),
        ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 6, "step_size_down": 3,
                      "mode": "triangular2"}),
        ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 6, "gamma": 0.95,
                      "mode": "exp_range", "cycle_momentum": False}),
        ("OneCycleLR", {"max_lr": 0.4, "total_steps": 50}),
        ("OneCycleLR", {"max_lr": 0.4, "epochs": 10, "steps_per_epoch": 6, "pct_start": 0.4,
                        "anneal_strategy": "linear", "three_phase": True}),
        ("ChainedScheduler", {"schedulers": [constant, exponential]}),
        ("ChainedScheduler", {"schedulers": [linear, step, cosine]}),
        ("SequentialLR", {"schedulers": [linear, cosine], "milestones": [7]}),
        ("SequentialLR", {"schedulers": [constant, exponential, restarts],
                          "milestones": [8, 20]}),
        ("SequentialLR", {"schedulers": [exponential, step, polynomial],
                          "milestones": [5, 25]}),
        ("SequentialLR", {"schedulers": [{"scheduler": "ChainedScheduler", "args": {
            "schedulers": [constant, exponential]}}, cosine], "milestones": [12]}),
    ]
    counts = {}
    for name, args in cases:
        counts[name] = counts.get(name, 0) + 1
        yield {"id": f"{name}_{counts[name]}", "base_lr": 0.2, "scheduler": name, "args": args}
    for number, args in enumerate([
            {"patience": 1},
            {"patience": 2, "factor": 0.5, "threshold": 0.3, "threshold_mode": "abs",
             "cooldown": 4, "min_lr": 0.02},
            {"mode": "max", "patience": 3, "factor": 0.3}]):
        yield {"id": f"ReduceLROnPlateau_{number + 1}", "base_lr": 0.2,
               "scheduler": "ReduceLROnPlateau", "args": args, "metrics": bumpy}


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, bias-corrected; PyTorch has no LAMB of its own."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
                 adam_w_mode=True):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      adam_w_mode=adam_w_mode))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["step"] += 1
                g = p.grad
                if not group["adam_w_mode"]:
                    g = g + group["weight_decay"] * p
                state["m"] = beta1 * state["m"] + (1 - beta1) * g
                state["v"] = beta2 * state["v"] + (1 - beta2) * g * g
                m = state["m"] / (1 - beta1 ** state["step"])
                v = state["v"] / (1 - beta2 ** state["step"])
                update = m / (v.sqrt() + group["eps"])
                if group["adam_w_mode"]:
                    update = update + group["weight_decay"] * p
                p_norm, u_norm = p.norm(), update.norm()
                ratio = p_norm / u_norm if p_norm > 0 and u_norm > 0 else 1.0
                p -= group["lr"] * ratio * update


def make_optimizer(case, params):
    kind = Lamb if case["optimizer"] == "LAMB" else getattr(torch.optim, case["optimizer"])
    groups = case.get("param_groups")
    if groups:
        return kind([{"params": [params[name]], **groups[name]} for name in sorted(groups)],
                    **case["args"])
    return kind(list(params.values()), **case["args"])


def run_optimizer(case, start, grads):
    params = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimizer = make_optimizer(case, params)
    trajectory = {name: [] for name in params}
    norms = []
    for step in range(STEPS):
        for name, p in params.items():
            p.grad = grads[name][step].clone()
        clip = case.get("clip")
        if clip and clip["kind"] == "norm":
            norms.append(torch.nn.utils.clip_grad_norm_(
                params.values(), clip["max_norm"], float(clip.get("norm_type", 2.0))))
        elif clip:
            torch.nn.utils.clip_grad_value_(params.values(), clip["clip_value"])
        optimizer.step()
        for name, p in params.items():
            trajectory[name].append(p.detach().clone())
    out = {f"{case['id']}/traj.{name}": torch.stack(t) for name, t in trajectory.items()}
    if norms:
        out[f"{case['id']}/total_norm"] = torch.stack(norms)
    return out


def make_scheduler(case, optimizer):
    args = dict(case["args"])
    kind = getattr(torch.optim.lr_scheduler, case["scheduler"])
    if "lr_lambda" in args:
        table = args["lr_lambda"]
        args["lr_lambda"] = lambda epoch: table[min(epoch, len(table) - 1)]
    if "schedulers" in args:
        args["schedulers"] = [make_scheduler(inner, optimizer) for inner in args["schedulers"]]
        if case["scheduler"] == "ChainedScheduler":
            return kind(args["schedulers"])
    return kind(optimizer, **args)


def run_scheduler(case):
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=case["base_lr"], momentum=0.9)
    scheduler = make_scheduler(case, optimizer)
    rates, momenta = [], []
    for epoch in range(EPOCHS):
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        if "metrics" in case:
            scheduler.step(case["metrics"][epoch])
        else:
            scheduler.step()
    return rates, momenta


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def make_optim(folder):
    torch.manual_seed(1)
    start = {"bias": torch.randn(5), "weight": torch.randn(3, 4)}
    grads = {name: torch.randn(STEPS, *value.shape) for name, value in start.items()}
    grads["bias"][:, 0] = 0  # an element that never gets a gradient
    inputs = {f"param.{name}": value for name, value in start.items()}
    inputs.update({f"grads.{name}": value for name, value in grads.items()})
    save_file(inputs, folder / "optim_inputs.safetensors")
    spec = {"steps": STEPS, "inputs": "optim_inputs.safetensors",
            "optimizers": list(optimizer_cases()), "clip": list(clip_cases()),
            "matrix_optimizers": list(matrix_cases()), "schedulers": list(scheduler_cases())}
    write_json(folder / "optim.json", spec)
    golden = {}
    for case in spec["optimizers"] + spec["clip"]:
        golden.update(run_optimizer(case, start, grads))
    for case in spec["matrix_optimizers"]:
        golden.update(run_optimizer(case, {"weight": start["weight"]}, grads))
    save_file(golden, folder / "optim_golden.safetensors")
    rates = {}
    for case in spec["schedulers"]:
        rates[case["id"]], momenta = run_scheduler(case)
        if len(set(momenta)) > 1:
            rates[case["id"] + "/momentum"] = momenta
    (folder / "scheduler_golden.json").write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rates.items()) + "\n}\n")


def layer_cases():
    """Name, layer, shapes of its inputs, keyword arguments of the call, whether it trains."""
    nn = torch.nn
    plain = [
        ("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
        ("conv2d", nn.Conv2d(4, 6, (3, 2), padding="same", dilation=2, bias=False), (2, 4, 7, 5)),
        ("conv3d", nn.Conv3d(2, 3, 2, stride=(1, 2, 1), padding=1), (2, 2, 3, 4, 5)),
        ("conv_transpose2d",
         nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
         (2, 4, 5, 4)),
        ("batch_norm1d", nn.BatchNorm1d(4), (6, 4)),
        ("batch_norm1d_l", nn.BatchNorm1d(4, momentum=None), (3, 4, 5)),
        ("batch_norm2d", nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), (4, 3, 5, 2)),
        ("batch_norm2d_eval", nn.BatchNorm2d(3).eval(), (4, 3, 5, 2)),
        ("batch_norm2d_plain", nn.BatchNorm2d(3, affine=False, track_running_stats=False).eval(),
         (4, 3, 5, 2)),
        ("batch_norm3d", nn.BatchNorm3d(2), (2, 2, 3, 2, 2)),
        ("layer_norm", nn.LayerNorm((3, 4), bias=False), (5, 3, 4)),
        ("rms_norm", nn.RMSNorm(6), (5, 6)),
        ("group_norm", nn.GroupNorm(2, 6), (3, 6, 4)),
        ("instance_norm1d", nn.InstanceNorm1d(3, affine=True), (2, 3, 7)),
        ("instance_norm2d", nn.InstanceNorm2d(3), (2, 3, 4, 5)),
        ("instance_norm2d_tracked", nn.InstanceNorm2d(3, track_running_stats=True), (2, 3, 4, 5)),
        ("upsample", nn.Upsample((7, 5), mode="bilinear", align_corners=True), (2, 3, 4, 6)),
        ("upsample_nearest", nn.Upsample(scale_factor=2), (2, 3, 4, 3)),
        ("reflection_pad1d", nn.ReflectionPad1d((2, 1)), (2, 3, 5)),
        ("replication_pad2d", nn.ReplicationPad2d(1), (2, 3, 4, 3)),
        ("circular_pad2d", nn.CircularPad2d((1, 2, 0, 1)), (2, 3, 4, 3)),
        ("constant_pad3d", nn.ConstantPad3d((1, 0, 0, 2, 1, 1), 2.5), (2, 2, 3, 2)),
        ("zero_pad2d", nn.ZeroPad2d((1, -1, 2, 0)), (2, 3, 4, 3)),
        ("max_pool1d", nn.MaxPool1d(3, stride=2, padding=1, ceil_mode=True), (2, 3, 8)),
        ("avg_pool1d", nn.AvgPool1d(3, padding=1, count_include_pad=False), (2, 3, 8)),
        ("avg_pool2d", nn.AvgPool2d((2, 3), stride=1, divisor_override=5), (2, 3, 5, 6)),
        ("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(3), (2, 3, 8)),
        ("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)),
        ("encoder_layer",
         nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), (2, 5, 8)),
        ("encoder_layer_pre",
         nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", norm_first=True), (5, 2, 8)),
    ]
    for name, layer, shape in plain:
        yield name, layer, [torch.randn(shape)], {}
    special = torch.tensor([[-30.0, -7.0, -6.0, -3.0, -1.0, -0.5, 0.0, 0.25],
                            [0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 25.0, 45.0]])
    for layer in [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(),
                  nn.LeakyReLU(0.2), nn.ELU(0.7), nn.Softplus(), nn.Softmax(1), nn.LogSoftmax(1),
                  nn.ReLU6(), nn.CELU(1.3), nn.SELU(), nn.Mish(), nn.Hardsigmoid(),
                  nn.Hardswish(), nn.Hardtanh(-2.0, 3.0), nn.Hardshrink(), nn.Softshrink(),
                  nn.Tanhshrink(), nn.Softsign(), nn.LogSigmoid(), nn.GLU(), nn.PReLU(),
                  nn.PReLU(8), nn.Threshold(0.5, -1.0), nn.RReLU().eval()]:
        name = type(layer).__name__
        if name == "GELU" and layer.approximate == "tanh":
            name = "GELUTanh"
        if name == "PReLU" and layer.num_parameters == 8:
            name = "PReLUChannels"
        yield name, layer, [special.clone()], {}
    mask = torch.zeros(4, 6)
    mask[0, 2] = -torch.inf
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, 4:] = True
    query, key = torch.randn(4, 2, 8), torch.randn(6, 2, 8)
    yield ("attention", nn.MultiheadAttention(8, 2), [query, key, torch.randn(6, 2, 8)],
           {"attn_mask": mask, "key_padding_mask": padding})
    yield ("attention_fast", nn.MultiheadAttention(8, 4, bias=False), [query, key, key.clone()],
           {"key_padding_mask": padding, "need_weights": False})
    yield ("attention_extra",
           nn.MultiheadAttention(8, 2, kdim=5, vdim=3, add_bias_kv=True, add_zero_attn=True,
                                 batch_first=True),
           [torch.randn(2, 4, 8), torch.randn(2, 6, 5), torch.randn(2, 6, 3)],
           {"average_attn_weights": False})
    x = torch.randn(5, 3, 4)
    yield "lstm", nn.LSTM(4, 3), [x], {}
    yield ("lstm_deep", nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True),
           [x, torch.randn(4, 5, 3), torch.randn(4, 5, 3)], {})
    yield "gru", nn.GRU(4, 3, bias=False), [x], {}
    yield ("gru_deep", nn.GRU(4, 3, num_layers=2, bidirectional=True),
           [x, torch.randn(4, 3, 3)], {})
    yield ("cosine_similarity", nn.CosineSimilarity(2),
           [torch.randn(2, 3, 5), torch.randn(2, 1, 5)], {})
    yield "pairwise_distance", nn.PairwiseDistance(3), [torch.randn(4, 5), torch.randn(4, 5)], {}
    a, b, sign = torch.randn(7), torch.randn(7), torch.tensor([1.0, -1, 1, -1, 1, 1, -1])
    yield "margin_ranking", nn.MarginRankingLoss(0.3), [a, b, sign], {}
    for name, layer, shape in [
        ("conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=3, padding=1, output_padding=2),
         (2, 4, 5)),
        ("conv_transpose3d",
         nn.ConvTranspose3d(2, 4, (2, 1, 3), stride=2, padding=(0, 0, 1), groups=2, dilation=2,
                            bias=False), (2, 2, 3, 2, 4)),
        ("conv1d_circular", nn.Conv1d(2, 3, 4, padding=3, padding_mode="circular"), (2, 2, 6)),
        ("conv1d_same", nn.Conv1d(2, 3, 4, padding="same", padding_mode="replicate"), (2, 2, 6)),
        ("conv2d_reflect",
         nn.Conv2d(2, 4, (3, 2), stride=2, padding=(2, 1), groups=2, padding_mode="reflect"),
         (2, 2, 5, 6)),
        ("conv2d_same", nn.Conv2d(2, 3, (2, 3), padding="same", dilation=(3, 1),
                                  padding_mode="circular"), (2, 2, 5, 6)),
        ("conv2d_valid", nn.Conv2d(2, 3, 2, padding="valid", padding_mode="reflect"),
         (2, 2, 4, 5)),
        ("conv3d_replicate", nn.Conv3d(2, 3, 2, padding=(1, 0, 2), padding_mode="replicate"),
         (1, 2, 3, 3, 2)),
        ("max_pool3d", nn.MaxPool3d((2, 3, 1), stride=2, padding=(1, 1, 0), ceil_mode=True),
         (2, 2, 5, 4, 3)),
        ("avg_pool3d", nn.AvgPool3d(2, stride=1, padding=1, count_include_pad=False),
         (2, 2, 3, 4, 3)),
        ("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d((2, 3, 1)), (2, 2, 5, 4, 3)),
        ("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(3), (2, 3, 8)),
        ("adaptive_max_pool2d", nn.AdaptiveMaxPool2d((3, 2)), (2, 3, 7, 5)),
        ("adaptive_max_pool3d", nn.AdaptiveMaxPool3d((2, 1, 3)), (2, 2, 3, 4, 5)),
        ("fold", nn.Fold((4, 5), (2, 3), padding=1, stride=2), (2, 12, 9)),
        ("unfold", nn.Unfold((2, 3), dilation=(1, 2), padding=1, stride=2), (2, 3, 4, 7)),
        ("pixel_shuffle", nn.PixelShuffle(2), (2, 8, 2, 3)),
        ("pixel_unshuffle", nn.PixelUnshuffle(3), (2, 2, 6, 3)),
        ("unflatten", nn.Unflatten(-2, (2, -1)), (3, 6, 2)),
    ]:
        yield name, layer, [torch.randn(shape)], {}
    triple = [torch.randn(4, 5) for _ in range(3)]
    yield "triplet", nn.TripletMarginLoss(0.7), triple, {}
    yield ("triplet_swap", nn.TripletMarginLoss(1.5, p=3, eps=1e-3, swap=True, reduction="none"),
           triple, {})
    cosines = torch.rand(4, 6) * 1.8 - 0.9
    yield "combined_margin", CombinedMargin(0.9, 0.4, 0.1), [cosines], {}
    yield "combined_margin_plain", CombinedMargin(1.0, 0.0, 0.35), [cosines], {}
    yield "instance_norm3d", nn.InstanceNorm3d(2, affine=True), [torch.randn(2, 2, 3, 2, 2)], {}
    yield ("attention_single", nn.MultiheadAttention(8, 2),
           [torch.randn(4, 8), torch.randn(6, 8), torch.randn(6, 8)],
           {"attn_mask": mask, "key_padding_mask": padding[1]})
    blind = padding.clone()
    blind[0] = True
    yield ("attention_blind", nn.MultiheadAttention(8, 2), [query, key, key.clone()],
           {"key_padding_mask": blind, "need_weights": False})
    yield ("lstm_single", nn.LSTM(4, 3, batch_first=True), [torch.randn(5, 4)], {})
    yield ("gru_single", nn.GRU(4, 3), [torch.randn(5, 4), torch.randn(1, 3)], {})
    yield ("lstm_proj", nn.LSTM(4, 5, num_layers=2, bidirectional=True, proj_size=3),
           [torch.randn(6, 2, 4), torch.randn(4, 2, 3), torch.randn(4, 2, 5)], {})
    yield "rnn", nn.RNN(4, 3), [x], {}
    yield ("rnn_deep", nn.RNN(4, 3, num_layers=2, nonlinearity="relu", batch_first=True,
                              bidirectional=True), [x, torch.randn(4, 5, 3)], {})
    yield "rnn_single", nn.RNN(4, 3, bias=False), [torch.randn(5, 4)], {}
    state = torch.randn(5, 3)
    yield "rnn_cell", nn.RNNCell(4, 3), [x[:, 0]], {}
    yield "rnn_cell_relu", nn.RNNCell(4, 3, False, "relu"), [x[:, 0], state], {}
    yield "gru_cell", nn.GRUCell(4, 3), [x[:, 0], state], {}
    yield "lstm_cell", nn.LSTMCell(4, 3), [x[0, 0], state[0], state[1]], {}
    yield from transformer_cases()
    yield from parametrized_cases()
    padded = torch.randn(4, 3, 5)
    yield ("lstm_packed", Packed(nn.LSTM(5, 3, 2, bidirectional=True, proj_size=2)),
           [padded, torch.randn(4, 3, 2), torch.randn(4, 3, 3)], {})
    yield "gru_packed", Packed(nn.GRU(5, 3, bidirectional=True)), [padded], {}
    yield "rnn_packed", Packed(nn.RNN(5, 3)), [padded, torch.randn(1, 3, 3)], {}


class CombinedMargin(torch.nn.Module):
    """Which PyTorch has not: cos(m1 angle + m2) - m3 at the labels."""

    labels = torch.tensor([2, 0, 5, 2])

    def __init__(self, m1, m2, m3):
        super().__init__()
        self.margins = m1, m2, m3

    def forward(self, cosines):
        m1, m2, m3 = self.margins
        at_label = torch.nn.functional.one_hot(self.labels, cosines.shape[1]).bool()
        return torch.where(at_label, torch.cos(m1 * torch.acos(cosines) + m2) - m3, cosines)


def flat_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value if part is not None for t in flat_tensors(part)]


def make_layers(folder):
    torch.manual_seed(2)
    golden = {}
    for name, layer, inputs, call in layer_cases():
        for value in list(layer.parameters()) + list(layer.buffers()):
            if value.is_floating_point():
                value.data = value.data + torch.rand_like(value) * 0.5
        golden.update({f"{name}/state.{k}": v.clone() for k, v in layer.state_dict().items()})
        golden.update({f"{name}/call.{k}": v for k, v in call.items()
                       if isinstance(v, torch.Tensor)})
        inputs = [x.clone().requires_grad_() for x in inputs]
        golden.update({f"{name}/in.{i}": x.detach().clone() for i, x in enumerate(inputs)})
        args = list(inputs)
        if name in ("lstm_deep", "lstm_proj", "lstm_cell"):
            args = [args[0], (args[1], args[2])]
        out = flat_tensors(layer(*args, **call))
        gout = [torch.randn_like(y) for y in out]
        sum((y * g).sum() for y, g in zip(out, gout)).backward()
        golden.update({f"{name}/out.{i}": y.detach().clone() for i, y in enumerate(out)})
        golden.update({f"{name}/gout.{i}": g for i, g in enumerate(gout)})
        golden.update({f"{name}/gin.{i}": x.grad for i, x in enumerate(inputs)
                       if x.grad is not None})
        golden.update({f"{name}/grad.{k}": p.grad for k, p in layer.named_parameters()})
        golden.update({f"{name}/after.{k}": b.clone() for k, b in layer.named_buffers()})
    save_file({k: v.clone().contiguous() for k, v in golden.items()},
              folder / "layers_golden.safetensors")


def hashed(count, stream):
    """Numbers in [-1, 1) that the tests compute too: 32 bits of each index, mixed."""
    mask = 0xFFFFFFFF
    h = (torch.arange(count, dtype=torch.int64) * 0x9E3779B1 + stream * 0x85EBCA6B) & mask
    h = h ^ (h >> 16)
    h = (h * 0x7FEB352D) & mask
    h = h ^ (h >> 15)
    h = (h * 0x846CA68B) & mask
    h = h ^ (h >> 16)
    return h.double() / 2.0**31 - 1.0


def fill_parameters(state):
    """Matrices and kernels within 1 / sqrt(fan_in), other weights around 1, biases around 0."""
    for stream, name in enumerate(sorted(state)):
        value = state[name]
        if "running" in name or "num_batches" in name:
            continue
        numbers = hashed(value.numel(), stream).reshape(value.shape)
        if value.dim() >= 2:
            numbers = numbers / (value.numel() / value.shape[0]) ** 0.5
        else:
            numbers = numbers * 0.1 + (1.0 if name.endswith("weight") else 0.0)
        value.copy_(numbers)


class Mlp(torch.nn.Module):
    def __init__(self, sizes, activations):
        super().__init__()
        self.activations = activations
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            setattr(self, f"fc{i + 1}", torch.nn.Linear(a, b))

    def forward(self, x):
        for i, name in enumerate(self.activations):
            x = getattr(torch, name)(getattr(self, f"fc{i + 1}")(x))
        return getattr(self, f"fc{len(self.activations) + 1}")(x)


class Lenet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 32, 5, padding="same")
        self.conv2 = torch.nn.Conv2d(32, 64, 5, padding="same")
        self.hidden = torch.nn.Linear(3136, 512)
        self.outlayer = torch.nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.outlayer(torch.relu(self.hidden(x.flatten(1))))


class GptBlock(torch.nn.Module):
    def __init__(self, d, heads, gelu):
        super().__init__()
        self.heads, self.gelu = heads, gelu
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
        self.attn, self.mlp = torch.nn.Module(), torch.nn.Module()
        self.attn.c_attn, self.attn.c_proj = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.mlp.c_fc, self.mlp.c_proj = torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.reshape(b, t, self.heads, -1).transpose(1, 2)
                   for part in self.attn.c_attn(self.ln_1(x)).split(d, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn.c_proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate=self.gelu))


class Gpt(torch.nn.Module):
    def __init__(self, layers, d, heads, T, vocab, tied, gelu):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(vocab, d), torch.nn.Embedding(T, d)
        self.h = torch.nn.ModuleList(GptBlock(d, heads, gelu) for _ in range(layers))
        self.ln_f = torch.nn.LayerNorm(d)
        if not tied:
            self.lm_head = torch.nn.Linear(d, vocab, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        head = self.lm_head if hasattr(self, "lm_head") else self.wte
        return F.linear(self.ln_f(x), head.weight)


def conv_norm_relu(a, b, kernel, stride, groups):
    return torch.nn.Sequential(
        torch.nn.Conv2d(a, b, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
        torch.nn.BatchNorm2d(b), torch.nn.ReLU6())


class InvertedResidual(torch.nn.Module):
    def __init__(self, a, b, stride, t):
        super().__init__()
        self.adds_input = stride == 1 and a == b
        layers = [] if t == 1 else [conv_norm_relu(a, a * t, 1, 1, 1)]
        self.conv = torch.nn.Sequential(
            *layers, conv_norm_relu(a * t, a * t, 3, stride, a * t),
            torch.nn.Conv2d(a * t, b, 1, bias=False), torch.nn.BatchNorm2d(b))

    def forward(self, x):
        return x + self.conv(x) if self.adds_input else self.conv(x)


class MobileNetV2(torch.nn.Module):
    def __init__(self, settings, stem, last, classes):
        super().__init__()
        layers, width = [conv_norm_relu(3, stem, 3, 2, 1)], stem
        for t, c, n, s in settings:
            for i in range(n):
                layers.append(InvertedResidual(width, c, s if i == 0 else 1, t))
                width = c
        layers.append(conv_norm_relu(width, last, 1, 1, 1))
        self.features = torch.nn.Sequential(*layers)
        self.classifier = torch.nn.Sequential(torch.nn.Dropout(0), torch.nn.Linear(last, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def training_cases():
    """Data: x is hashed with stream 1000 (tokens: mapped to the vocabulary), y with 1001."""
    yield {"id": "mlp", "model": {"kind": "mlp", "sizes": [24, 32, 16, 5],
                                  "activations": ["relu", "tanh"]},
           "x": [16, 24], "classes": 5, "optimizer": "SGD",
           "args": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}}
    yield {"id": "lenet", "model": {"kind": "lenet"}, "x": [4, 1, 28, 28], "classes": 10,
           "optimizer": "Adam", "args": {"lr": 1e-3}}
    gpt = {"kind": "gpt", "layers": 2, "d": 16, "heads": 2, "T": 12, "vocab": 11}
    yield {"id": "gpt", "model": {**gpt, "tied": False, "gelu": "none"}, "x": [3, 12],
           "classes": 11, "optimizer": "AdamW", "args": {"lr": 3e-3, "weight_decay": 0.1}}
    yield {"id": "gpt_tied", "model": {**gpt, "tied": True, "gelu": "tanh"}, "x": [3, 10],
           "classes": 11, "optimizer": "RMSprop", "args": {"lr": 1e-3}}
    yield {"id": "mobilenet_v2",
           "model": {"kind": "mobilenet_v2", "stem": 8, "last": 32, "classes": 10, "dropout": 0.0,
                     "settings": [[1, 8, 1, 1], [6, 16, 2, 2], [6, 24, 2, 2]]},
           "x": [4, 3, 32, 32], "classes": 10, "optimizer": "SGD",
           "args": {"lr": 0.05, "momentum": 0.9}}


def make_model(spec):
    options = {k: v for k, v in spec.items() if k not in ("kind", "dropout")}
    return {"mlp": Mlp, "lenet": Lenet, "gpt": Gpt, "mobilenet_v2": MobileNetV2}[spec["kind"]](
        **options)


def bucketed(count, stream, buckets):
    return ((hashed(count, stream) + 1.0) / 2.0 * buckets).floor().long()


def run_training(case, steps=20, batches=4):
    model = make_model(case["model"])
    with torch.no_grad():
        fill_parameters(model.state_dict())
    count = batches * torch.Size(case["x"]).numel()
    is_gpt = case["model"]["kind"] == "gpt"
    x = bucketed(count, 1000, case["classes"]) if is_gpt else hashed(count, 1000)
    x = x.reshape(batches, *case["x"])
    y = bucketed(x.numel() if is_gpt else batches * case["x"][0], 1001, case["classes"])
    y = y.reshape(batches, -1)
    optimizer = getattr(torch.optim, case["optimizer"])(model.parameters(), **case["args"])
    losses, norms = [], []
    for step in range(steps):
        optimizer.zero_grad()
        logits = model(x[step % batches])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y[step % batches])
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.get_total_norm(
            [p.grad for p in model.parameters()]).item())
        optimizer.step()
    return {**case, "steps": steps, "batches": batches, "losses": losses, "grad_norms": norms}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "data")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    make_optim(options.out)
    make_layers(options.out)
    write_json(options.out / "repr_golden.json", module_texts())
    write_json(options.out / "training.json", [run_training(case) for case in training_cases()])


if __name__ == "__main__":
    main()

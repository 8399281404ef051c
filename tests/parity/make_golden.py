#!/usr/bin/env python3
"""Computes the golden data of tests/parity with PyTorch in float64. See README.md."""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

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
            "schedulers": list(scheduler_cases())}
    write_json(folder / "optim.json", spec)
    golden = {}
    for case in spec["optimizers"] + spec["clip"]:
        golden.update(run_optimizer(case, start, grads))
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
    a, b, sign = torch.randn(7), torch.randn(7), torch.tensor([1.0, -1, 1, -1, 1, 1, -1])
    yield "margin_ranking", nn.MarginRankingLoss(0.3), [a, b, sign], {}


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
        if name == "lstm_deep":
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


if __name__ == "__main__":
    main()

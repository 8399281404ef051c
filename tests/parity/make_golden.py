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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "data")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    make_optim(options.out)


if __name__ == "__main__":
    main()

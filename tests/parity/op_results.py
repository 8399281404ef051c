"""Functions with two results, products and distances of all rows, bounds, common shapes."""

import torch

from op_arrange import listed
from op_case import NAN, add, f32, ints, mask, r


def spreads():
    for op in ["var_mean", "std_mean"]:
        add(op, r(3, 4))
        add(op, r(3, 4), dim=[0], keepdim=True)
        add(op, r(2, 3, 2), dim=[-1, 0], keepdim=True, correction=2)
        add(op, r(3, 4), dim=[-1], correction=0)
        add(op, r(3, 4), dim=[1], unbiased=False)
        add(op, r(3, 4), dim=[0], unbiased=False)
        add(op, r(3, 4), dim=[2], error=True)
        add(op, ints(9, 3), error=True)


def extrema():
    add("aminmax", r(3, 4))
    add("aminmax", r(3, 4), dim=0)
    add("aminmax", r(3, 4), dim=-1, keepdim=True)
    add("aminmax", r(2, 3, 2), dim=1, keepdim=True)
    add("aminmax", f32([[1.0, NAN], [2.0, 3.0]]), dim=1, grads=False)
    add("aminmax", ints(9, 3, 4), dim=0)
    add("aminmax", mask(3, 4), dim=0)
    add("aminmax", r(3, 4), dim=2, error=True)


def products():
    add("inner", [r(3, 4), r(2, 4)])
    add("inner", [r(2, 3, 4), r(4)])
    add("inner", [r(4), r(4)])
    add("inner", [r(), r(3, 4)])
    add("inner", [ints(9, 2, 3), ints(9, 4, 3)])
    add("inner", [r(3, 4), r(3)], error=True)
    for p in [0.5, 1.0, 3.0, "inf"]:
        add("dist", [r(3, 4), r(3, 4)], p=p)
    add("dist", [r(3, 4), r(3, 4)], p=0.0, grads=False)  # PyTorch has no gradient of it
    add("dist", [r(3, 4), r(4)])
    add("dist", [r(3, 4), r(3)], error=True)


def bounds():
    for op, name in [("clamp_min", "min"), ("clamp_max", "max")]:
        add(op, r(3, 4), **{name: 0.25})
        add(op, r(3, 4), **{name: -0.5})
        add(op, ints(9, 3, 4), **{name: 4})
        add(op, [r(3, 4), r(4)])
        add(op, [r(3, 1), r(3, 4)])
        add(op, [r(3, 4), r(3)], error=True)


def shapes():
    spread = listed(lambda tensors: torch.broadcast_tensors(*tensors))
    add("broadcast_tensors", [r(3, 1), r(2)], spread)
    add("broadcast_tensors", [r(2, 1, 2), r(), ints(9, 3, 1)], spread)
    add("broadcast_tensors", [r(3, 1), r(3, 2), r(3)], spread, error=True)


def all_results():
    for family in [spreads, extrema, products, bounds, shapes]:
        family()

"""Calls that a comparison of random calls with PyTorch's has found to differ."""

import torch
import torch.nn.functional as F

from op_case import INF, NAN, add, f32, ints, kwargs_named, r, special, unit
from op_refusals import refuse


def scalars_among_indices():
    """A scalar tensor in an index counts as a number: it does not separate the other tensors."""
    named = {"i": torch.tensor(-2), "j": torch.tensor([1, 0, 1])}

    def at(*tensors, expr):
        return eval(expr, {"x": tensors[0], **named})  # the case's own expression

    for expr, shape, names in [
            ("x[i, :, j]", (3, 4, 2), "ij"), ("x[:, j, None, i]", (2, 2, 3), "ij"),
            ("x[i, 1:, i, [0, 1]]", (2, 3, 3, 2), "i"), ("x[i, None, i]", (2, 3), "i"),
            ("x[j, :, i, j]", (2, 3, 3, 2), "ij")]:
        inputs = [("x", r(*shape))] + [(name, named[name]) for name in names]
        add("slice", inputs, lambda *tensors, expr=expr: at(*tensors, expr=expr), expr=expr)


def ignored_classes():
    """The weight of an ignored class takes no part."""
    weighted = kwargs_named("weight")(F.cross_entropy, 2)
    add("cross_entropy", {"x": r(4, 3), "target": torch.tensor([0, 2, 1, 2]),
                          "weight": f32([0.5, NAN, 2.0])},
        weighted, constant=("weight",), reduction="sum", ignore_index=1)


def numbers():
    """Numbers that the dtype of the tensor does not hold."""
    narrow = torch.tensor([0, 1, 3, 200], dtype=torch.uint8)
    add("xlogy", narrow, other=-2)
    add("xlog1py", narrow, lambda x, c: torch.special.xlog1py(c, x), c=-2)
    add("zeta", narrow + 2, torch.special.zeta, other=300)
    add("copysign", narrow, other=-3)
    for diagonal in [-2**63, 2**63 - 1]:
        add("triu", r(3, 4), diagonal=diagonal)
        add("tril", r(4, 3), diagonal=diagonal)


def corners():
    add("threshold", special(), F.threshold, threshold=0.25, value=-1.0, grads=False)
    add("hardshrink", special(), F.hardshrink, lambd=0.5, grads=False)
    add("clamp", r(2, 3), min="nan", max=1.0)
    add("clamp_min", ints(5, 3), min="nan")
    add("clamp_", r(3), lambda x, **attrs: x.clone().clamp_(**attrs), max="nan", grads=False)
    add("add", r(3), other=3, alpha="inf", grads=False)
    add("logit", unit(2, 4), eps=0.75)
    add("histc", f32([-0.5, 0.0, 1e-30, -1.0, -1e-30]), torch.histc, bins=4, min=-1.0, max=0.0,
        grads=False)
    add("diff", {"x": r(2, 3), "prepend": r(2, 1), "append": r(2, 2)},
        kwargs_named("prepend", "append")(torch.diff, 1), n=0)
    for ind in [-2**63, -1]:
        refuse("tensorinv", r(2, 2), torch.linalg.tensorinv, ind=ind)
    for shape in [(1,), ()]:
        refuse("batch_norm", {"x": r(4, 3), "running_mean": r(3), "running_var": unit(3),
                              "bias": r(*shape)},
               lambda x, mean, var, bias, **attrs: F.batch_norm(x, mean, var, bias=bias, **attrs),
               training=False)
    add("chebyshev_polynomial_t", unit(2), torch.special.chebyshev_polynomial_t, n=200000,
        grads=False, differs="each degree is a step of the recurrence")


def unread():
    """PyTorch looks at the data; flow does not wait for it."""
    late = "it would read the data on the host, and wait for the device"
    refuse("gaussian_nll_loss", {"x": r(3), "target": r(3), "var": f32([1.0, -0.5, 2.0])},
           differs=late)
    refuse("cov", {"x": r(2, 3), "fweights": torch.tensor([2, -1, 1])},
           lambda x, fweights: torch.cov(x, fweights=fweights), differs=late)


def untrained():
    for eps in [0.0, -1e-5]:
        refuse("batch_norm", r(4, 3), lambda x, **attrs: F.batch_norm(x, None, None, **attrs),
               training=True, eps=eps)


def fuzzed():
    for family in [scalars_among_indices, ignored_classes, numbers, corners, unread]:
        family()

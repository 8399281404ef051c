"""Elementwise functions and in-place methods that have no cases of their own elsewhere, and other
names of functions."""

import torch
import torch.nn.functional as F

from op_case import add, ints, pos, r, special, unit


def other_names():
    for op, make in [("acos", unit), ("asin", unit), ("atan", r), ("atanh", unit), ("asinh", r),
                     ("acosh", lambda *shape: pos(*shape) + 1), ("cosh", r), ("sinh", r),
                     ("tan", r)]:
        add(op, make(2, 3))
        add(op, special(), grads=False)
        add(op, [("x", make(3, 2), (0, 1))])
        add(op, ints(2, 3))
    for op in ["arccos", "arcsin", "arctan", "arctanh", "arcsinh"]:
        add(op, unit(3))
    add("arccosh", pos(3) + 1)
    add("ndtr", r(2, 3), torch.special.ndtr)
    add("ndtr", special(), torch.special.ndtr, grads=False)
    add("ndtr_", r(2, 3), torch.special.ndtr)
    add("silu_", r(2, 3), F.silu)
    add("gelu_tanh", r(2, 3), lambda x: F.gelu(x, approximate="tanh"))
    add("expit", r(3), torch.special.expit)
    for op in ["absolute", "fix", "negative"]:
        add(op, r(3))
    for op in ["atan2", "arctan2"]:
        add(op, [r(2, 1, 4), r(3, 1)])
        add(op, [r(2, 3), r(3)])
    trunc = lambda x, y: torch.div(x, y, rounding_mode="trunc")
    add("trunc_divide", [r(2, 3, scale=5.0), pos(3)], trunc, grads=False)
    add("trunc_divide", [ints(9, 4, low=-8), ints(4, 4, low=1)], trunc)
    add("clip", r(2, 3), min=-0.5, max=0.5)
    add("to", r(2, 3, scale=5.0), lambda x, dtype: x.to(dtype), dtype="int64", grads=False)
    cast = lambda x, dtype: x.to(dtype)
    add("cast", r(2, 3, scale=5.0), cast, dtype="int32", grads=False)
    add("cast", ints(3, 4), cast, dtype="bool")
    add("cast", ints(9, 4), cast, dtype="float32")
    add("scaled_dot_product_attention", [("q", r(2, 3, 4))] * 3)

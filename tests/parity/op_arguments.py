"""Arguments of elementwise ops, reductions, orders and products with values that are not their
defaults. With the main cases, each argument is given in two cases at least (coverage_test.cpp)."""

import torch
import torch.nn.functional as F

from op_case import INF, NAN, add, f32, ints, kwargs_named, mask, pos, r, special, unit


def each(op, make, *variants, call=None, **options):
    """A case with new inputs for each of the attributes in `variants`."""
    for attrs in variants:
        add(op, make(), call, **options, **attrs)


def form(op, inputs, **attrs):
    """A case of an in-place method, on a copy, because a leaf cannot be written."""
    def call(x, *rest, **given):
        return getattr(x.clone(), op)(*rest, **given)
    add(op, inputs, call, **attrs)


def numbers():
    """A number in the place of one of the operands."""
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        add(op, ints(5, 6), other=2)
    for op in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
        add(op, ints(99, 4), other=-9)
    for op in ["bitwise_left_shift", "bitwise_right_shift"]:
        add(op, ints(99, 4, low=-99), other=5)
        add(op, [ints(99, 2, 1, dtype=torch.int32), ints(5, 3, dtype=torch.int32)])
    add("copysign", r(2, 3), other=2.0)
    add("copysign", [r(2, 1), r(3)])
    for op in ["fmod", "remainder", "floor_divide"]:
        add(op, r(2, 3, scale=5.0), other=0.75, grads=op != "floor_divide")
    add("xlogy", unit(2, 3), other=0.5)
    for op in ["maximum", "minimum"]:
        each(op, lambda: r(2, 3), {"other": 0.5}, {"other": -0.25},
             call=lambda x, other, op=op: getattr(torch, op)(x, torch.tensor(other)))
    each("add", lambda: r(2, 3), {"c": 1.5}, {"c": -2}, call=lambda x, c: c + x)
    each("mul", lambda: r(2, 3), {"c": 1.5}, {"c": -2}, call=lambda x, c: c * x)
    each("div", lambda: pos(2, 3), {"c": 1.5}, {"c": -2}, call=lambda x, c: c / x)
    add("sub", ints(9, 3), lambda x, c: c - x, c=4)
    add("add", r(2, 3), other=2, alpha=0.5)
    add("add", [ints(9, 3), ints(9, 2, 1)], alpha=3)
    add("sub", [r(2, 0), r(1, 1)], alpha=2)
    each("div", lambda: r(2, 3, scale=5.0), {"rounding_mode": "floor", "other": 1.5},
         {"rounding_mode": "trunc", "other": -1.5}, grads=False)
    each("pow", lambda: r(2, 3), {"base": 0.5}, call=lambda x, base: torch.pow(base, x))
    each("rsub", lambda: r(2, 3), {"other": 1.5}, {"other": -2})
    add("rsub", [r(2, 3), r(3)])
    add("rsub", [ints(9, 2, 1), r(3)])
    add("where", {"c": mask(2, 3), "x": r(2, 1)}, other=2.5)
    each("where", lambda: {"c": mask(2, 3), "y": r(3)}, {"input": 0.5}, {"input": -2.5},
         call=lambda c, y, input: torch.where(c, input, y))
    add("masked_fill", {"x": r(2, 3), "m": mask(2, 3), "value": r()})
    add("masked_fill", {"x": r(0, 3), "m": mask(1, 3), "value": r()})
    between = kwargs_named("min", "max")(torch.clamp, 1)
    add("clamp", {"x": r(2, 3), "min": r(3) - 0.5, "max": r(3) + 0.5}, between)
    add("clamp", {"x": r(2, 3), "min": r(2, 1), "max": r(3)}, between)
    add("clamp", {"x": r(2, 3), "min": r(3)}, kwargs_named("min")(torch.clamp, 1))
    add("clamp", {"x": r(2, 3), "min": r()}, kwargs_named("min")(torch.clamp, 1))
    add("clamp", {"x": r(2, 0), "max": r(2, 1)}, kwargs_named("max")(torch.clamp, 1))
    add("isclose", [f32([1.0, 2.0, NAN, INF]), f32([1.05, 2.5, NAN, INF])], rtol=0.1,
        equal_nan=True, grads=False)
    add("isclose", [f32([1.0, 2.0, NAN, -INF]), f32([1.3, 2.3, NAN, INF])], rtol=0.0, atol=0.31,
        equal_nan=True, grads=False)
    add("isclose", [r(2, 3), r(3)], atol=0.5, grads=False)
    add("nan_to_num", special(), nan=-1.0, posinf=3.0, neginf=-2.0)
    each("addcmul", lambda: [r(2, 3), r(3), r(2, 1)], {"value": 3})
    each("addcdiv", lambda: [r(2, 3), r(3), pos(2, 1)], {"value": -0.5}, {"value": 3})
    add("lerp", [r(2, 3), r(3), ("weight", r())])
    add("heaviside", [r(2, 3), r(3)], grads=False)
    add("logit", unit(2, 3), eps=0.1)
    add("round", r(2, 3, scale=100.0), decimals=2)


def in_place_numbers():
    for op in ["add_", "sub_", "mul_"]:
        form(op, r(2, 3), other=1.5)
        form(op, ints(9, 3), other=2)
    form("add_", [r(2, 3), r(3)], alpha=0.5)
    form("add_", [r(2, 3), r(1)])
    form("mul_", [r(2, 3), r(3)])
    form("mul_", [r(0, 3), r(1)])
    for mode in ["floor", "trunc"]:
        form("div_", r(2, 3, scale=5.0), other=1.5, rounding_mode=mode, grads=False)
    form("div_", r(2, 3), other=-0.5)
    form("div_", [r(2, 3), pos(2, 1)])
    for op in ["fmod_", "remainder_", "floor_divide_"]:
        has_grads = op != "floor_divide_"
        for other in [-1.25, 0.75]:
            form(op, r(2, 3, scale=5.0), other=other, grads=has_grads)
        form(op, [r(2, 3, scale=5.0), f32([1.5, -1.5, 2.0])], grads=has_grads)
        form(op, [ints(9, 4, low=-8), ints(4, 4, low=1)])
    for exponent in [3, -0.5]:
        form("pow_", pos(2, 3), exponent=exponent)
    form("pow_", [pos(2, 3), r(2, 1)])
    form("addcmul_", [r(2, 3), r(3), r(2, 1)], value=3)
    form("addcdiv_", [r(2, 3), r(3), pos(2, 1)], value=-3)
    form("lerp_", [r(2, 3), r(3)], weight=0.3)
    form("lerp_", [r(2, 3), r(3), ("weight", unit(3))])
    form("clamp_min_", r(2, 3), min=-0.5)
    form("clamp_max_", r(2, 3), max=-0.5)
    form("clamp_", r(2, 3), min=-0.5, max=0.5)
    form("clamp_", r(2, 3), min=0.25)
    form("clamp_", ints(9, 4), min=2, max=5)
    form("clamp_", r(2, 3), max=0.25)
    form("clip_", r(2, 3), min=-0.25, max=1.0)
    for value in [0.5, -2.0]:
        form("fill_", r(2, 3), value=value)
        form("masked_fill_", {"x": r(2, 3), "m": mask(3)}, value=value)
    form("zero_", r(2, 3))
    form("copy_", [r(2, 3), r(3)])
    form("copy_", [ints(9, 3), r(3)], grads=False)
    for op in ["tril_", "triu_"]:
        form(op, r(3, 4), diagonal=2)
        form(op, r(2, 3, 3), diagonal=-2)
    form("squeeze_", r(1, 2, 1), dim=0)
    form("unsqueeze_", r(2, 3), dim=-2)
    form("transpose_", r(2, 3, 4), dim0=-2, dim1=0)


def activations():
    each("leaky_relu", lambda: r(2, 3), {"negative_slope": -0.5})
    each("elu", lambda: r(2, 3), {"alpha": 2.5})
    each("softplus", lambda: r(2, 3, scale=5.0), {"beta": 0.5, "threshold": 1.0})
    each("hardtanh", lambda: r(2, 3, scale=3.0), {"min_val": 0.5, "max_val": 0.75})
    each("gelu", lambda: r(2, 2), {"approximate": "tanh"}, {"approximate": "none"})
    each("hardshrink", lambda: r(2, 3), {"lambd": 0.2}, call=F.hardshrink)
    each("softshrink", lambda: r(2, 3), {"lambd": 1.0}, {"lambd": 0.0}, call=F.softshrink)
    each("threshold", lambda: r(2, 3), {"threshold": -0.5, "value": 2.0}, call=F.threshold)
    each("rrelu", lambda: r(2, 3), {"lower": 0.2, "upper": 0.2}, {"lower": -0.5, "upper": 1.5},
         call=F.rrelu)
    each("glu", lambda: r(4, 2, 3), {"dim": -3})
    each("softmin", lambda: r(2, 3), {"dim": -2}, {"dim": 0}, call=F.softmin)
    for op in ["softmax", "log_softmax"]:
        add(op, ints(5, 2, 3), dim=-1, dtype="float32")
        add(op, r(2, 3), dim=0, dtype="bfloat16", limit=0.02)
    add("dropout", r(2, 3), p=0.3, training=False)


def reductions():
    for op in ["argmax", "argmin", "any", "all"]:
        has_grads = False
        add(op, r(2, 3, 4), dim=0, keepdim=True, grads=has_grads)
        add(op, r(2, 1), dim=-1, keepdim=True, grads=has_grads)
    for op in ["max", "min"]:
        add(op, r(2, 3), dim=-2, keepdim=True)
        add(op, [r(2, 1), r(3)])
    add("prod", r(2, 3), dim=0, keepdim=True)
    for op in ["sum", "prod", "nansum"]:
        for dtype in ["int32", "float32"]:
            add(op, ints(4, 2, 3, low=1), dim=1, dtype=dtype)
    for op in ["cumsum", "cumprod"]:
        for dtype in ["int32", "float32"]:
            add(op, ints(4, 2, 3, low=1), dim=-1, dtype=dtype)
    for op in ["mean", "nanmean"]:
        add(op, ints(9, 2, 3) if op == "mean" else r(2, 3), dim=0, dtype="float32")
        add(op, r(2, 3), dim=0, dtype="bfloat16", limit=0.02)
    for op in ["nansum", "nanmean"]:
        add(op, f32([[1.0, NAN, 2.0], [NAN, 0.5, NAN]]), dim=-2, keepdim=True)
        add(op, r(2, 0), dim=0)
    for op in ["var", "std"]:
        add(op, r(3, 4), dim=-2, unbiased=False, keepdim=True)
        add(op, r(3, 4), dim=0, unbiased=True)
    each("norm", lambda: r(2, 3), {"dtype": "float32"}, {"dtype": "float32", "dim": 1})
    each("vector_norm", lambda: r(2, 3), {"dtype": "float32"}, {"dtype": "float32", "dim": -1},
         {"ord": 3, "dim": -2}, {"dim": 0})
    each("normalize", lambda: r(2, 3, 2), {"p": 3.0, "dim": 0}, {"p": 0.5, "dim": 2, "eps": 9.0})
    each("cosine_similarity", lambda: [r(2, 3), r(2, 3)], {"dim": 0}, {"dim": -2, "eps": 0.01})
    # PyTorch's gradient takes no notice that eps replaces a norm.
    add("cosine_similarity", [r(2, 3), r(2, 3)], dim=-2, eps=4.0, grads=False)
    each("pairwise_distance", lambda: [r(3, 4), r(3, 4)], {"p": 3.0, "eps": 0.1, "keepdim": True},
         {"p": 1.5, "eps": 0.25})
    each("count_nonzero", lambda: ints(2, 3, 4), {"dim": -2}, {"dim": [0, 1]})
    add("logsumexp", r(2, 3), dim=[-1, 0], keepdim=True)
    for op in ["median", "nanmedian"]:
        add(op, r(2, 3), dim=0, keepdim=True)
    add("mode", ints(3, 2, 5), dim=-2, keepdim=True)
    add("mode", ints(3, 5, 1), dim=1)
    add("kthvalue", r(3, 4), k=1, dim=-2, keepdim=True)
    add("kthvalue", r(3, 1), k=1, dim=1)
    for op in ["quantile", "nanquantile"]:
        for interpolation in ["lower", "higher", "nearest", "midpoint"]:
            add(op, r(2, 5), q=0.6, dim=0, keepdim=True, interpolation=interpolation)
    each("logcumsumexp", lambda: r(2, 3), {"dim": -2}, {"dim": -1})
    add("diff", r(3, 4), dim=-2, n=3)
    add("diff", r(3, 4), dim=0, n=0)
    add("diff", {"x": r(2, 3), "prepend": r(1, 3), "append": r(0, 3)},
        kwargs_named("prepend", "append")(torch.diff, 1), dim=0)
    for op in ["sort", "argsort"]:
        add(op, r(3, 2), dim=-2, descending=True, grads=op == "sort")
        add(op, r(1, 3), dim=0, grads=op == "sort")
        add(op, r(), dim=0, grads=op == "sort")
    add("topk", r(3, 4), k=1, dim=-2, sorted=False)
    add("topk", r(3, 4), k=1, dim=1, sorted=False, largest=False)


def products():
    add("cov", r(3, 5), correction=2)
    add("cov", {"x": r(5), "fweights": ints(4, 5, low=1)}, kwargs_named("fweights")(torch.cov, 1))
    add("cov", {"x": r(2, 3), "aweights": pos(3)}, kwargs_named("aweights")(torch.cov, 1),
        constant=("aweights",))
    each("pdist", lambda: r(4, 3), {"p": 3.0}, {"p": "inf"}, {"p": 0.0}, call=F.pdist)
    each("combinations", lambda: r(4), {"r": 1}, {"r": 3, "with_replacement": True},
         {"r": 2, "with_replacement": True}, {"r": 0},
         call=lambda x, r, with_replacement=False: torch.combinations(x, r, with_replacement))
    each("vander", lambda: r(3), {"N": 2}, {"N": 5, "increasing": True}, {"N": 0}, grads=False)
    add("bilinear", {"x": r(0, 3), "y": r(0, 4), "weight": r(5, 3, 4), "bias": r(5)}, F.bilinear)
    add("bilinear", {"x": r(3), "y": r(4), "weight": r(2, 3, 4)}, F.bilinear)
    add("trapezoid", r(2, 4), lambda x, dx, dim: torch.trapezoid(x, dx=dx, dim=dim), dx=2.0,
        dim=-2)
    add("trapezoid", r(2, 4))
    add("tensordot", [r(2, 3), r(3, 2)], dims=1)
    add("tensordot", [r(2, 3), r(3, 2)], dims=[[-1], [-2]])
    add("sdpa", {"q": r(2, 3, 4), "k": r(2, 3, 4), "v": r(2, 3, 4)}, scale=2.0)
    add("lstm_cell", {"x": r(1, 3), "h": r(1, 2), "c": r(1, 2), "wi": r(8, 3), "wh": r(8, 2),
                      "bi": r(8), "bh": r(8)},
        lambda x, h, c, *rest: torch.lstm_cell(x, (h, c), *rest))
    for op, gates in [("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)]:
        for rows in [1, 3]:
            given = {"x": r(rows, 3), "h": r(rows, 2), "wi": r(2 * gates, 3),
                     "wh": r(2 * gates, 2)}
            add(op, given)
            given = {name: r(*value.shape) for name, value in given.items()}
            add(op, given | {"bi": r(2 * gates), "bh": r(2 * gates)})


def arguments():
    for family in [numbers, in_place_numbers, activations, reductions, products]:
        family()

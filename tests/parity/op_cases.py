"""The op cases of tests/parity: a few for each op, the awkward ones among them."""

import torch
import torch.nn.functional as F

from op_case import INF, NAN, add, cases, f32, generator, ints, mask, pos, r, special, unit
from op_arguments import arguments
from op_arguments_shapes import shape_arguments
from op_arguments_windows import window_arguments
from op_arrange import arrange
from op_degenerate import degenerate
from op_differences import differences
from op_dtypes import dtypes
from op_edges import edges
from op_fractional import fractional_pools
from op_fourier import fourier, integer_signals
from op_fuzzed import fuzzed, untrained
from op_in_place import in_place
from op_indexed_pools import indexed_pools
from op_linalg import ldl, linear_algebra, more_linear_algebra
from op_names import other_names
from op_norms import losses, norms
from op_polynomials import polynomials
from op_ranks import all_ranks
from op_refusals import refusals
from op_results import all_results
from op_scalars import antialias, corners, integers, scalars
from op_selection import selection
from op_special import special_functions
from op_vectors import all_vectors


def pointwise():
    for op in ["neg", "abs", "sign", "square", "floor", "ceil", "round", "exp", "expm1", "sin",
               "cos", "tanh", "erf", "sigmoid", "relu", "isnan", "isinf", "isfinite"]:
        has_grads = not op.startswith("is")
        add(op, r(2, 3, scale=2.0), grads=has_grads)
        add(op, special(), grads=False)
        add(op, [("x", r(3, 4), (0, 1))], grads=has_grads)
        add(op, r(0, 3), grads=has_grads)
    for op in ["log", "log1p", "sqrt", "rsqrt", "reciprocal"]:
        add(op, pos(2, 3))
        add(op, special(), grads=False)
        add(op, [("x", pos(3, 4), (0, 1))])
    for op in ["exp", "sqrt", "sigmoid", "sin", "reciprocal"]:
        add(op, ints(5, 2, 3, low=1))
    add("neg", ints(5, 4, low=-4))
    add("neg", mask(4), error=True)
    add("logical_not", ints(2, 5))
    add("logical_not", f32([0.0, NAN, -0.0, 2.0]), grads=False)
    add("round", r(6, scale=100.0), decimals=1)
    add("round", r(6, scale=100.0), decimals=-1)
    add("round", f32([0.5, 1.5, 2.5, -0.5]))

    for op in ["add", "sub", "mul", "div", "maximum", "minimum"]:
        add(op, [r(2, 3), r(2, 3)])
        add(op, [r(2, 1, 4), r(3, 1)])
        if op != "div":  # x / x has gradients that are rounding alone
            add(op, [("x", r(3, 3))] * 2)
        add(op, [r(0, 3), r(1, 3)])
        add(op, [r(2, 3), ("y", r(3, 2), (0, 1))])
        add(op, [r(2, 3), r()])
        add(op, [r(2, 3), r(2, 4)], error=True)
    for op in ["maximum", "minimum"]:
        add(op, [f32([1.0, 2.0, NAN, INF]), f32([1.0, 3.0, 1.0, INF])], grads=False)
        add(op, [f32([1.0, 2.0, 3.0]), f32([1.0, 3.0, 3.0])])
        add(op, [ints(5, 4), ints(5, 4)])
    for op in ["add", "sub", "mul", "div"]:
        add(op, r(2, 3), other=2.5)
        add(op, ints(9, 4), other=2)
        add(op, [ints(9, 4), r(4)], constant=())
        add(op, [ints(9, 4, low=1, dtype=torch.int32), ints(9, 4, low=1)])
    add("add", [r(2, 3), r(3)], alpha=-1.5)
    add("sub", [r(2, 3), r(3)], alpha=0.5)
    add("sub", r(2, 3), lambda x, c: c - x, c=1.5)
    add("sub", [mask(3), mask(3)], error=True)
    add("mul", [mask(3), r(3)])
    add("div", [r(2, 3), pos(2, 3)], rounding_mode="floor", grads=False)
    add("div", [r(2, 3, scale=5.0), pos(2, 3)], rounding_mode="trunc", grads=False)
    add("div", [ints(9, 5, low=-8), ints(4, 5, low=1)], rounding_mode="floor")
    add("div", [ints(9, 5, low=-8), ints(4, 5, low=1)], rounding_mode="trunc")
    add("div", [r(3), r(3)], rounding_mode="up", error=True)
    add("div", [f32([1.0, 0.0, -1.0]), f32([0.0, 0.0, 0.0])], grads=False)
    for op in ["fmod", "remainder"]:
        add(op, [r(2, 3, scale=5.0), f32([[1.5, -1.5, 2.0]])])
        add(op, r(2, 3, scale=5.0), other=-1.25)
        add(op, [ints(9, 5, low=-8), ints(4, 5, low=1)])
    add("floor_divide", [r(2, 3, scale=5.0), f32([[1.5, -1.5, 2.0]])], grads=False)
    add("floor_divide", [ints(9, 5, low=-8), ints(4, 5, low=1)])
    add("floor_divide", ints(9, 5, low=-8), other=3)
    add("pow", [pos(2, 3), r(3)])
    add("pow", [f32([0.0, 0.0, 2.0]), f32([0.0, 2.0, 0.0])])
    add("pow", r(2, 3), exponent=2)
    add("pow", r(2, 3), exponent=3)
    add("pow", pos(2, 3), exponent=-0.5)
    add("pow", r(2, 3), exponent=0)
    add("pow", r(2, 3), lambda x, base: torch.pow(base, x), base=2.5)
    add("pow", ints(5, 4), exponent=3)
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        add(op, [ints(3, 2, 3), ints(3, 3)])
        add(op, [f32([NAN, 1.0, INF]), f32([NAN, 1.0, INF])], grads=False)
        add(op, r(4), other=0.25, grads=False)
        add(op, [r(2, 3), r(4)], error=True)
    for op in ["logical_and", "logical_or", "logical_xor"]:
        add(op, [mask(4), mask(4)])
        add(op, [ints(2, 2, 3), f32([0.0, 1.0, NAN])], grads=False)

    add("addcmul", [r(2, 3), r(3), r(2, 1)])
    add("addcmul", [r(2, 3), r(3), r(2, 1)], value=-0.5)
    add("addcdiv", [r(2, 3), r(3), pos(2, 1)], value=2.0)
    add("lerp", [("x", r(2, 3)), ("y", r(3)), ("weight", unit(2, 1))])
    add("lerp", [r(2, 3), r(3)], weight=0.3)
    add("lerp", [r(2, 3), r(3)], weight=0.8)
    add("where", {"c": mask(2, 3), "x": r(2, 3), "y": r(3)})
    add("where", {"c": mask(2, 1), "x": r(3), "y": ints(4, 2, 3)})
    add("where", {"c": mask(3), "x": r(3)}, other=-1.5)
    add("where", {"c": r(3), "x": r(3), "y": r(3)}, error=True)
    add("clamp", r(2, 3, scale=2.0), min=-0.5, max=0.5)
    add("clamp", r(2, 3), min=0)
    add("clamp", f32([NAN, INF, -INF, 0.5]), max=0.5)
    add("clamp", ints(9, 4), min=2, max=5)
    add("clamp", r(3), error=True)
    add("masked_fill", {"x": r(2, 3), "m": mask(3)}, value=-1.5)
    add("masked_fill", {"x": r(2, 3), "m": mask(2, 1)}, value="-inf")
    add("masked_fill", {"x": r(2, 3), "m": ints(2, 3)}, value=1.0, error=True)
    add("cast", r(2, 3, scale=5.0), lambda x: x.to(torch.int64), grads=False)
    add("cast", ints(5, 4), lambda x: x.to(torch.float64))
    add("cast", f32([0.0, -0.0, NAN, 0.3]), lambda x: x.to(torch.bool), grads=False)


def activations():
    for op in ["silu", "selu", "mish", "hardswish", "hardsigmoid", "softsign", "logsigmoid",
               "relu6", "gelu", "leaky_relu", "elu", "celu", "softplus", "hardtanh"]:
        add(op, f32([[-45.0, -7.0, -6.0, -3.0, -1.0, -0.25], [0.25, 1.0, 3.0, 6.0, 7.0, 45.0]]))
        add(op, [("x", r(3, 2, 4, scale=2.0), (0, 2))])
        add(op, special(), grads=False)
        add(op, r(0, 2))
    add("logsigmoid", r(2, 2))
    add("gelu", r(2, 3), approximate="tanh")
    add("gelu", r(3), approximate="erf", error=True)
    add("leaky_relu", r(2, 3), negative_slope=0.3)
    add("elu", r(2, 3), alpha=0.7)
    add("celu", r(2, 3), alpha=1.7)
    add("softplus", r(2, 3, scale=5.0), beta=2.0, threshold=3.0)
    add("hardtanh", r(2, 3, scale=3.0), min_val=-0.5, max_val=2.0)
    add("prelu", {"x": r(2, 3, 4), "weight": pos(3)})
    add("prelu", {"x": r(2, 3), "weight": pos(1)})
    add("prelu", {"x": r(2, 3), "weight": pos(2)}, error=True)
    add("glu", r(2, 6))
    add("glu", r(4, 3), dim=0)
    add("glu", r(2, 3), error=True)
    for op in ["softmax", "log_softmax"]:
        add(op, r(2, 5), dim=1)
        add(op, r(2, 5, 3), dim=-2)
        add(op, [("x", r(3, 4), (0, 1))], dim=0)
        add(op, f32([[1000.0, 0.0, -1000.0], [-INF, 0.0, 1.0]]), dim=1)
        add(op, r(2, 1), dim=1)
        add(op, r(2, 0), dim=1)
        add(op, r(), dim=0)
        add(op, r(2, 3), dim=2, error=True)
    add("dropout", r(2, 3), p=0.5, training=False)
    add("dropout", r(2, 3), p=0.0)
    add("dropout", r(2, 3), p=1.0)
    add("dropout", r(2, 3), p=1.5, error=True)


def reductions():
    for op in ["sum", "mean", "amax", "amin", "prod", "logsumexp", "var", "std", "norm"]:
        if op != "logsumexp":
            add(op, r(2, 3, 4))
            add(op, r())
        add(op, r(2, 3, 4), dim=1)
        add(op, r(2, 3, 4), dim=-1, keepdim=True)
        add(op, [("x", r(2, 3, 4), (0, 2))], dim=0)
        add(op, r(2, 3), dim=2, error=True)
        if op != "prod":
            add(op, r(2, 3, 4), dim=[0, -1])
            add(op, r(2, 3, 4), dim=[0, 2], keepdim=True)
    for op in ["sum", "mean", "prod", "logsumexp", "norm"]:
        add(op, r(2, 0, 3), dim=1)
    for op in ["sum", "mean", "amax", "max", "min", "prod"]:
        add(op, f32([[1.0, NAN, 2.0], [INF, -INF, 0.0]]), dim=1, grads=False)
    for op in ["sum", "prod", "cumsum", "cumprod"]:
        extra = {"dim": 0} if op.startswith("cum") else {}
        add(op, ints(4, 2, 3, low=1), **extra)
        add(op, mask(5), **extra)
    add("sum", r(2, 3), dim=[0, 0], error=True)
    add("mean", ints(4, 3), error=True)
    add("sum", r(0))
    add("mean", r(0))
    add("prod", r(0))
    add("prod", f32([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]), dim=1)
    add("prod", f32([2.0, 0.0, 3.0]))
    add("amax", f32([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), dim=1)
    add("amin", f32([[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]]))
    add("amax", r(2, 0), dim=1, error=True)
    for op in ["max", "min"]:
        add(op, r(2, 3))
        add(op, f32([[3.0, 3.0, 1.0], [2.0, 1.0, 1.0]]))
        add(op, r(2, 3, 4), dim=-1)
        add(op, r(2, 3, 4), dim=1, keepdim=True)
        add(op, f32([[3.0, 3.0, 1.0], [2.0, 1.0, 1.0]]), dim=1)
        add(op, [r(2, 3), r(3)])
        add(op, ints(9, 2, 3), dim=0)
        add(op, r(0), error=True)
    for op in ["argmax", "argmin"]:
        add(op, r(2, 3), grads=False)
        add(op, r(2, 3, 4), dim=-2, keepdim=True, grads=False)
        add(op, f32([[3.0, 3.0, 1.0], [2.0, 1.0, 1.0]]), dim=1, grads=False)
        add(op, f32([1.0, NAN, 2.0, NAN]), dim=0, grads=False)
        add(op, ints(9, 2, 3), dim=0)
        add(op, r(0), error=True)
    for op in ["any", "all"]:
        add(op, mask(2, 3))
        add(op, mask(2, 3), dim=1)
        add(op, f32([[0.0, NAN], [0.0, 0.0]]), dim=-1, keepdim=True, grads=False)
        add(op, mask(0))
        add(op, ints(2, 2, 3), dim=0)
    for op in ["var", "std"]:
        add(op, r(2, 5), dim=1, unbiased=False)
        add(op, r(2, 5), dim=1, correction=2)
        add(op, r(2, 5), correction=0)
        add(op, r(2, 1), dim=1, correction=0, grads=op == "var")
    add("norm", r(2, 3), p="fro")
    for p in [0, 1, 1.5, 2, 3, "inf", "-inf"]:
        add("norm", r(2, 4), p=p, dim=1)
        add("vector_norm", r(2, 3, 4), ord=p, dim=[0, 2], keepdim=True)
    add("norm", torch.zeros(3, dtype=torch.float32))
    add("vector_norm", r(2, 3))
    add("logsumexp", f32([[1000.0, 1000.0], [-INF, -INF], [INF, 1.0]]), dim=1, grads=False)
    for op in ["cumsum", "cumprod"]:
        add(op, r(2, 3, 4), dim=1)
        add(op, r(2, 3, 4), dim=-1)
        add(op, r(5), dim=0)
        add(op, r(2, 0), dim=1)
        add(op, r(2, 3), dim=2, error=True)
    add("cumprod", f32([[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]]), dim=1)
    for op in ["sort", "argsort"]:
        has_grads = op == "sort"
        add(op, r(2, 5), grads=has_grads)
        add(op, r(4, 3), dim=0, descending=True, grads=has_grads)
        add(op, f32([2.0, NAN, 1.0, 2.0, 1.0]), stable=True, dim=0, grads=has_grads)
        add(op, f32([2.0, NAN, 1.0, 2.0, 1.0]), stable=True, dim=0, descending=True,
            grads=has_grads)
        add(op, ints(20, 3, 4))
        add(op, r(2, 0), grads=has_grads)
    add("topk", r(3, 6), k=2)
    add("topk", r(6, 3), k=4, dim=0, largest=False)
    add("topk", r(5), k=5)
    add("topk", r(5), k=0)
    add("topk", r(5), k=6, error=True)
    add("normalize", r(2, 3, 4))
    add("normalize", r(2, 3, 4), p=1.0, dim=-1)
    add("normalize", torch.zeros(2, 3, dtype=torch.float32), eps=0.1)
    add("cosine_similarity", [r(3, 4), r(3, 4)])
    add("cosine_similarity", [r(3, 4, 2), r(4, 2)], dim=-1, eps=1e-3)
    add("pairwise_distance", [r(3, 4), r(3, 4)])
    add("pairwise_distance", [r(3, 4), r(4)], p=1.0, keepdim=True)


def products():
    add("matmul", [r(4), r(4)])
    add("matmul", [r(3, 4), r(4, 2)])
    add("matmul", [r(4), r(4, 2)])
    add("matmul", [r(3, 4), r(4)])
    add("matmul", [r(2, 1, 3, 4), r(5, 4, 2)])
    add("matmul", [r(2, 3, 4), r(4)])
    add("matmul", [("x", r(4, 3), (0, 1)), ("y", r(2, 4), (0, 1))])
    add("matmul", [("x", r(3, 3))] * 2)
    add("matmul", [r(3, 0), r(0, 2)])
    add("matmul", [r(0, 3), r(3, 2)])
    add("matmul", [ints(5, 2, 3), ints(5, 3, 2)])
    add("matmul", [r(3, 4), r(3, 4)], error=True)
    add("matmul", [r(3, 4), r()], error=True)
    add("mm", [r(3, 4), r(4, 2)])
    add("mm", [r(3, 4), r(2, 4, 2)], error=True)
    add("bmm", [r(2, 3, 4), r(2, 4, 2)])
    add("bmm", [("x", r(2, 4, 3), (1, 2)), ("y", r(2, 4, 2))])
    add("bmm", [r(2, 3, 4), r(3, 4, 2)], error=True)
    add("mv", [r(3, 4), r(4)])
    add("dot", [r(5), r(5)])
    add("dot", [r(5), r(4)], error=True)
    add("addmm", {"c": r(2), "x": r(3, 4), "y": r(4, 2)})
    add("addmm", {"c": r(3, 2), "x": r(3, 4), "y": r(4, 2)}, beta=0.5, alpha=-2.0)
    add("addmm", {"c": f32([[NAN, INF]]), "x": r(3, 4), "y": r(4, 2)}, beta=0.0,
        constant=("c",))
    add("baddbmm", {"c": r(2, 3, 2), "x": r(2, 3, 4), "y": r(2, 4, 2)}, beta=2.0, alpha=0.5)
    add("baddbmm", {"c": r(3, 1), "x": r(2, 3, 4), "y": r(2, 4, 2)})
    add("linear", {"x": r(2, 3, 4), "weight": r(5, 4), "bias": r(5)})
    add("linear", {"x": r(4), "weight": r(5, 4)})
    add("linear", {"x": r(0, 4), "weight": r(5, 4), "bias": r(5)})
    add("linear", {"x": r(2, 3), "weight": r(5, 4)}, error=True)

    def einsum(*tensors, equation):
        return torch.einsum(equation, *tensors)

    for equation, shapes in [
            ("ij,jk->ik", [(2, 3), (3, 4)]), ("bqd,bkd->bqk", [(2, 3, 4), (2, 5, 4)]),
            ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("i,j->ij", [(3,), (4,)]), ("ij->ji", [(2, 3)]),
            ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("ij,ij->", [(2, 3), (2, 3)]),
            ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("b...->...", [(2, 3, 4)]),
            ("ba,cb", [(2, 3), (4, 2)])]:
        add("einsum", [r(*shape) for shape in shapes], einsum, equation=equation)
    add("einsum", [r(2, 3), r(4, 2)], einsum, equation="ij,jk->ik", error=True)
    add("tensordot", [r(2, 3, 4), r(3, 4, 5)])
    add("tensordot", [r(2, 3, 4), r(4, 3)], dims=[[1, 2], [1, 0]])
    add("tensordot", [r(2), r(3)], dims=0)

    q, k, v = (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)

    def attend(query, key, value, attn_mask=None, **attrs):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, **attrs)

    add("sdpa", {"q": r(*q), "k": r(*k), "v": r(*v)})
    add("sdpa", {"q": r(2, 3, 4), "k": r(2, 3, 4), "v": r(2, 3, 4)}, is_causal=True)
    add("sdpa", {"q": r(*q), "k": r(*k), "v": r(*v)}, scale=0.3, is_causal=True)
    add("sdpa", {"q": r(*q), "k": r(*k), "v": r(*v), "m": r(3, 5)}, attend)
    seen = mask(3, 5)
    seen[:, 0] = True
    add("sdpa", {"q": r(*q), "k": r(*k), "v": r(*v), "m": seen}, attend)
    add("sdpa", [("q", r(2, 3, 4))] * 3)
    add("sdpa", {"q": r(2, 3, 4), "k": r(2, 5, 3), "v": r(2, 5, 3)}, error=True)

    def lstm(x, h, c, wi, wh, bi=None, bh=None):
        return torch.lstm_cell(x, (h, c), wi, wh, bi, bh)

    add("lstm_cell", {"x": r(2, 3), "h": r(2, 4), "c": r(2, 4), "wi": r(16, 3), "wh": r(16, 4),
                      "bi": r(16), "bh": r(16)}, lstm)
    add("lstm_cell", {"x": r(2, 3), "h": r(2, 4), "c": r(2, 4), "wi": r(16, 3),
                      "wh": r(16, 4)}, lstm)
    add("gru_cell", {"x": r(2, 3), "h": r(2, 4), "wi": r(12, 3), "wh": r(12, 4), "bi": r(12),
                     "bh": r(12)})


def shapes():
    add("reshape", r(2, 6), shape=[3, -1])
    add("reshape", [("x", r(2, 6), (0, 1))], shape=[4, 3])
    add("reshape", r(0, 3), shape=[3, 0, 2])
    add("reshape", r(2, 3), shape=[4, 2], error=True)
    add("reshape", r(2, 3), shape=[-1, -1], error=True)
    add("view", r(2, 6), lambda x, size: x.view(size), size=[12])
    add("view", [("x", r(2, 6), (0, 1))], lambda x, size: x.view(size), size=[12], error=True)
    add("view_as", [r(2, 6), r(3, 4)])
    add("reshape_as", [r(2, 6), r(3, 4)])
    add("expand", r(3, 1), lambda x, size: x.expand(size), size=[2, 3, 4])
    add("expand", r(2, 1, 3), lambda x, size: x.expand(size), size=[-1, 5, -1])
    add("expand", r(2, 3), lambda x, size: x.expand(size), size=[4, 3], error=True)
    add("broadcast_to", r(3, 1), size=[2, 3, 4])
    add("expand_as", [r(3, 1), r(2, 3, 4)])
    add("flatten", r(2, 3, 4))
    add("flatten", r(2, 3, 4, 2), start_dim=1, end_dim=-2)
    add("flatten", r())
    add("flatten", r(2, 3, 4), start_dim=2, end_dim=1, error=True)
    add("squeeze", r(1, 3, 1))
    add("squeeze", r(1, 3, 1), dim=-1)
    add("squeeze", r(2, 3), dim=0)
    add("unsqueeze", r(2, 3), dim=-1)
    add("unsqueeze", r(), dim=0)
    add("unsqueeze", r(2, 3), dim=3, error=True)
    add("permute", r(2, 3, 4), dims=[2, 0, -2])
    add("permute", r(2, 3, 4), dims=[0, 0, 1], error=True)
    add("transpose", r(2, 3, 4), dim0=0, dim1=-1)
    add("swapaxes", r(2, 3, 4), axis0=0, axis1=1)
    add("t", r(2, 3))
    add("t", r(3))
    add("t", r(2, 3, 4), error=True)
    add("movedim", r(2, 3, 4), source=0, destination=-1)
    add("movedim", r(2, 3, 4), source=[0, 1], destination=[2, 0])
    add("diagonal", r(3, 4))
    add("diagonal", r(2, 3, 4), offset=-1, dim1=1, dim2=-1)
    add("diag_embed", r(2, 3), offset=1)
    add("diag", r(3), diagonal=-1)
    add("diag", r(3, 4), diagonal=1)
    add("contiguous", [("x", r(2, 3), (0, 1))])
    add("clone", r(2, 3))

    def cat(*tensors, **attrs):
        return torch.cat(tensors, **attrs)

    def stack(*tensors, **attrs):
        return torch.stack(tensors, **attrs)

    add("cat", [r(2, 3), r(4, 3)], cat)
    add("cat", [r(2, 3), r(2, 1), r(2, 0)], cat, dim=-1)
    add("cat", [r(0), r(2, 3)], cat)
    add("cat", [r(3), ints(4, 2)], cat)
    add("cat", [("x", r(2, 2))] * 2, cat, dim=1)
    add("cat", [r(2, 3), r(2, 4)], cat, error=True)
    add("cat", [], cat, error=True)
    add("stack", [r(2, 3), r(2, 3)], stack)
    add("stack", [r(2, 3), r(2, 3), r(2, 3)], stack, dim=-1)
    add("stack", [r(2, 3), r(3, 2)], stack, error=True)
    add("stack", [], stack, error=True)
    add("repeat", r(2, 3), lambda x, repeats: x.repeat(repeats), repeats=[2, 1, 3])
    add("repeat", r(2), lambda x, repeats: x.repeat(repeats), repeats=[0])
    add("repeat", r(2, 3), lambda x, repeats: x.repeat(repeats), repeats=[2], error=True)
    add("tile", r(2, 3), dims=[2])
    add("tile", r(3), dims=[2, 2])
    add("flip", r(2, 3, 4), dims=[0, -1])
    add("flip", r(2, 3), dims=[0, 0], error=True)
    add("roll", r(2, 3), shifts=1)
    add("roll", r(4, 3), shifts=[-1, 5], dims=[0, 1])
    add("pad", r(2, 3), pad=[1, 2])
    add("pad", r(2, 3), pad=[-1, 1, 0, 2], value=1.5)
    for mode in ["reflect", "replicate", "circular"]:
        add("pad", r(1, 2, 4), pad=[2, 1], mode=mode)
        add("pad", r(1, 2, 3, 4), pad=[2, 1, 1, 2], mode=mode)
    add("pad", r(1, 2, 3), pad=[3, 0], mode="reflect", error=True)
    add("tril", r(3, 4))
    add("tril", r(2, 3, 3), diagonal=1)
    add("triu", r(4, 3), diagonal=-1)
    add("triu", r(3), error=True)
    add("split", r(5, 2), split_size_or_sections=2)
    add("split", r(2, 5), split_size_or_sections=[1, 4], dim=-1)
    add("split", r(2, 5), split_size_or_sections=[1, 3], dim=1, error=True)
    add("chunk", r(5, 2), chunks=3)
    add("chunk", r(2, 7), chunks=4, dim=1)
    add("unbind", r(3, 2))
    add("unbind", r(3, 2), dim=-1)
    add("narrow", r(5, 2), dim=0, start=1, length=3)
    add("narrow", r(5, 2), dim=0, start=3, length=3, error=True)
    add("select", r(5, 2), dim=0, index=-2)
    add("select", r(5, 2), dim=1, index=2, error=True)


def indexing():
    def at(*tensors, expr):
        return eval(expr, {"x": tensors[0], "i": i, "j": j, "m": m})  # the case's own expression

    i, j = torch.tensor([0, 2, 0, -1]), torch.tensor([1, 1, 0, 2])
    m = torch.tensor([True, False, True, True])
    named = {"i": i, "j": j, "m": m}
    for expr, shape, names in [
            ("x[1:4, ::2]", (5, 4), ""), ("x[..., None, 0]", (2, 3, 4), ""), ("x[-1]", (3, 2), ""),
            ("x[:, -2:]", (2, 5), ""), ("x[3:1]", (5,), ""), ("x[None, 1, ..., 0:1]", (3, 2, 4), ""),
            ("x[10:]", (5, 2), ""), ("x[...]", (2, 3), ""), ("x[i]", (4, 2), "i"),
            ("x[i, j]", (4, 3), "ij"), ("x[:, i]", (2, 4), "i"), ("x[i, :, j]", (4, 2, 3), "ij"),
            ("x[:, i, j]", (2, 4, 3), "ij"), ("x[m]", (4, 3), "m"), ("x[m, 1:]", (4, 3), "m"),
            ("x[:, m]", (2, 4), "m"), ("x[i, 1]", (4, 3), "i"), ("x[1, ..., i]", (2, 3, 4), "i"),
            ("x[[0, 2]]", (4, 2), ""), ("x[None, i]", (4, 2), "i")]:
        inputs = [("x", r(*shape))] + [(name, named[name]) for name in names]
        add("slice", inputs, lambda *tensors, expr=expr: at(*tensors, expr=expr), expr=expr)
    for expr, shape, names in [("x[5]", (5, 2), ""), ("x[0, 0, 0]", (5, 2), ""), ("x[m]", (3,), "m"),
                               ("x[i, j]", (2, 3), "ij")]:
        inputs = [("x", r(*shape))] + [(name, named[name]) for name in names]
        add("slice", inputs, lambda *tensors, expr=expr: at(*tensors, expr=expr), expr=expr,
            error=True)
    add("index_put", {"x": r(4, 3), "i": torch.tensor([0, 2, 3]), "values": r(3, 3)},
        lambda x, i, values: x.index_put((i,), values))
    add("index_put", {"x": r(4, 3), "i": i, "j": j, "values": r(4)},
        lambda x, i, j, values, accumulate: x.index_put((i, j), values, accumulate),
        accumulate=True)
    add("index_put", {"x": r(4, 3), "m": m, "values": r()},
        lambda x, m, values: x.index_put((m,), values))
    add("index_select", {"x": r(4, 3), "i": torch.tensor([0, 2, 0])},
        lambda x, i, dim: x.index_select(dim, i), dim=0)
    add("index_select", {"x": r(4, 3), "i": torch.tensor([2, 1])},
        lambda x, i, dim: x.index_select(dim, i), dim=-1)
    add("index_select", {"x": r(4, 3), "i": torch.tensor([4])},
        lambda x, i, dim: x.index_select(dim, i), dim=0, error=True)

    def gather(x, index, dim):
        return x.gather(dim, index)

    add("gather", {"x": r(4, 3), "i": ints(4, 2, 3)}, gather, dim=0)
    add("gather", {"x": r(2, 5, 3), "i": ints(5, 1, 4, 2)}, gather, dim=-2)
    add("gather", {"x": r(4, 3), "i": ints(4, 5, 4, low=3)}, gather, dim=0, error=True)

    def scatter(x, index, *src, dim, value=None, **attrs):
        return x.scatter(dim, index, src[0] if src else value, **attrs)

    distinct = torch.tensor([[0, 3, 1], [2, 1, 0]])
    add("scatter", {"x": r(4, 3), "i": distinct, "src": r(2, 3)}, scatter, dim=0)
    add("scatter", {"x": r(3, 4), "i": distinct}, scatter, dim=1, value=1.5)
    add("scatter", {"x": r(4, 3), "i": distinct, "src": r(2, 3)}, scatter, dim=0, reduce="add",
        grads=False)
    add("scatter", {"x": r(4, 3), "i": ints(4, 3, 3), "src": r(3, 3)}, scatter, dim=0,
        reduce="multiply", grads=False)
    add("scatter_add", {"x": r(4, 3), "i": ints(4, 5, 3), "src": r(5, 3)},
        lambda x, i, src, dim: x.scatter_add(dim, i, src), dim=0)
    add("scatter_add", {"x": r(2, 4), "i": ints(4, 2, 3), "src": r(2, 5)},
        lambda x, i, src, dim: x.scatter_add(dim, i, src), constant=("src",), dim=-1)
    for reduce in ["sum", "prod", "mean", "amax", "amin"]:
        for include_self in [True, False]:
            add("scatter_reduce", {"x": r(4, 3), "i": ints(4, 5, 3), "src": r(5, 3)},
                lambda x, i, src, dim, **attrs: x.scatter_reduce(dim, i, src, **attrs), dim=0,
                reduce=reduce, include_self=include_self)
    add("masked_select", {"x": r(2, 4), "m": m})
    add("masked_select", {"x": r(2, 4), "m": torch.tensor([[True], [False]])})
    add("nonzero", f32([[0.0, 2.0], [NAN, 0.0]]), grads=False)
    add("nonzero", mask(2, 3, 2))
    add("one_hot", {"i": ints(4, 2, 3)}, num_classes=5)
    add("one_hot", {"i": torch.tensor([0, 3, 1])})
    add("one_hot", {"i": torch.tensor([0, 3])}, num_classes=3, error=True)
    add("embedding", {"i": ints(5, 2, 3), "weight": r(5, 4)})
    add("embedding", {"i": torch.tensor([1, 0, 1, 4]), "weight": r(5, 4)}, padding_idx=1)
    add("embedding", {"i": torch.tensor([1, 0, 1, 4]), "weight": r(5, 4)}, padding_idx=-1)
    add("embedding", {"i": torch.tensor([1, 0, 1, 4]), "weight": r(5, 4)},
        scale_grad_by_freq=True)
    add("embedding", {"i": torch.tensor([1, 5]), "weight": r(5, 4)}, error=True)


def windows():
    for op, extra in [("conv1d", 1), ("conv2d", 2), ("conv3d", 3)]:
        size = [7, 6, 5][:extra]
        kernel = [3, 2, 2][:extra]
        add(op, {"x": r(2, 2, *size), "weight": r(3, 2, *kernel), "bias": r(3)})
        add(op, {"x": r(2, 4, *size), "weight": r(6, 2, *kernel)}, stride=2, padding=1, groups=2)
        add(op, {"x": r(1, 2, *size), "weight": r(2, 1, *kernel), "bias": r(2)}, dilation=2,
            padding=2, groups=2)
        add(op, {"x": r(1, 2, *size), "weight": r(2, 2, *kernel)}, padding="same")
        add(op, {"x": r(2, *size), "weight": r(2, 2, *kernel)}, padding="valid")
        add(op, {"x": r(0, 2, *size), "weight": r(2, 2, *kernel)})
        add(op, {"x": r(1, 3, *size), "weight": r(2, 2, *kernel)}, error=True)
    add("conv2d", {"x": r(1, 2, 6, 5), "weight": r(2, 2, 3, 1)}, stride=[2, 1], padding=[1, 0],
        dilation=[1, 2])
    add("conv2d", [("x", r(1, 6, 2, 5), (1, 2)), ("weight", r(3, 2, 2, 2))])
    add("conv2d", {"x": r(1, 2, 2, 2), "weight": r(2, 2, 3, 3)}, error=True)
    add("conv2d", {"x": r(1, 4, 5, 5), "weight": r(4, 2, 3, 3)}, groups=3, error=True)
    add("conv_transpose2d", {"x": r(2, 3, 4, 3), "weight": r(3, 2, 3, 2), "bias": r(2)})
    add("conv_transpose2d", {"x": r(2, 4, 4, 3), "weight": r(4, 2, 3, 3)}, stride=2, padding=1,
        output_padding=1, groups=2)
    add("conv_transpose2d", {"x": r(1, 2, 3, 3), "weight": r(2, 2, 2, 3)}, stride=[3, 2],
        dilation=[2, 1], output_padding=[2, 0])
    add("conv_transpose2d", {"x": r(1, 2, 3, 3), "weight": r(2, 2, 2, 2)}, output_padding=1,
        error=True)
    add("max_pool2d", r(2, 2, 6, 5), kernel_size=2)
    add("max_pool2d", r(1, 2, 7, 6), kernel_size=[3, 2], stride=2, padding=1)
    add("max_pool2d", r(1, 2, 7, 6), kernel_size=3, stride=2, ceil_mode=True)
    add("max_pool2d", r(1, 2, 7, 6), kernel_size=2, dilation=2, stride=1)
    add("max_pool2d", r(2, 5, 5), kernel_size=2, return_indices=True)
    add("max_pool2d", f32([[[[1.0, 1.0, NAN], [1.0, 1.0, 0.0]]]]), kernel_size=2, stride=1,
        grads=False)
    add("max_pool2d", r(1, 2, 4, 4), kernel_size=2, padding=2, error=True)
    add("max_pool1d", r(2, 2, 7), kernel_size=3, stride=2, padding=1, ceil_mode=True)
    add("max_pool1d", r(2, 7), kernel_size=2)
    add("avg_pool1d", r(2, 2, 7), kernel_size=3, padding=1, count_include_pad=False)
    add("avg_pool1d", r(2, 2, 7), kernel_size=3, stride=2, ceil_mode=True)
    add("avg_pool2d", r(2, 2, 6, 5), kernel_size=2)
    add("avg_pool2d", r(1, 2, 7, 6), kernel_size=[3, 2], stride=2, padding=1)
    add("avg_pool2d", r(1, 2, 7, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True,
        count_include_pad=False)
    add("avg_pool2d", r(1, 2, 7, 6), kernel_size=3, divisor_override=4)
    add("adaptive_avg_pool2d", r(2, 2, 6, 5), output_size=1)
    add("adaptive_avg_pool2d", r(2, 2, 7, 5), output_size=[3, 2])
    add("adaptive_avg_pool2d", r(2, 4, 3), output_size=[5, 3])
    add("interpolate", r(1, 2, 4), size=7)
    add("interpolate", r(1, 2, 3, 4), size=[5, 3])
    add("interpolate", r(1, 2, 3, 4), scale_factor=2.0, mode="bilinear")
    add("interpolate", r(1, 2, 3, 4), size=[5, 6], mode="bilinear", align_corners=True)
    add("interpolate", r(1, 2, 3, 4), scale_factor=[1.5, 0.5], mode="bilinear",
        recompute_scale_factor=True)
    add("interpolate", r(1, 2, 3, 4), size=[5, 6], mode="bicubic")
    add("interpolate", r(1, 2, 3, 4), size=[5, 3], mode="nearest-exact")
    add("interpolate", r(1, 2, 3), size=5, mode="linear")
    add("interpolate", r(1, 2, 3), size=5, mode="bilinear", error=True)


def creation():
    for op in ["zeros", "ones"]:
        add(op, [], size=[2, 3])
        add(op, [], size=[2], dtype="int64")
        add(op, [], size=[2, -1], error=True)
        add(op + "_like", r(2, 3), grads=False)
        add("new_" + op, r(2, 3), grads=False, size=[4])
    add("full", [], size=[2, 3], fill_value=1.5)
    add("full", [], size=[2], fill_value=3)
    add("full_like", ints(4, 3), fill_value=7)
    add("new_full", r(2, 3), grads=False, size=[2, 2], fill_value=-0.5)
    add("arange", [], end=5)
    add("arange", [], start=1.0, end=2.0, step=0.3)
    add("arange", [], start=5, end=-4, step=-2)
    add("arange", [], start=1, end=5, step=-1, error=True)
    add("linspace", [], start=-1.0, end=2.0, steps=7)
    add("linspace", [], start=3.0, end=4.0, steps=1)
    add("eye", [], n=3)
    add("eye", [], lambda n, m: torch.eye(n, m), n=2, m=4)


def small_functions():
    for op in ["trunc", "frac", "exp2", "erfc", "sinc"]:
        add(op, r(2, 3, scale=2.0))
        add(op, special(), grads=False)
        add(op, [("x", r(3, 4), (0, 1))])
        add(op, r(0, 3))
    for op in ["log2", "log10"]:
        add(op, pos(2, 3))
        add(op, special(), grads=False)
    for op in ["exp2", "log2", "sinc"]:
        add(op, ints(5, 2, 3, low=1))
    add("trunc", ints(9, 4, low=-4))
    add("nan_to_num", special(), nan=0.5, posinf=7.0, neginf=-8.0)
    add("nan_to_num", ints(5, 3))
    for op in ["logaddexp", "hypot"]:
        add(op, [r(2, 3), r(2, 3)])
        add(op, [r(2, 1, 4), r(3, 1)])
        add(op, [f32([NAN, INF, -INF, 1.0]), f32([1.0, INF, -INF, INF])], grads=False)
    add("xlogy", [r(2, 3), pos(3)])
    add("xlogy", [f32([0.0, 0.0, 2.0, 0.0]), f32([0.0, 3.0, 1.5, NAN])], grads=False)
    add("xlogy", [ints(5, 4), ints(5, 4, low=1)])
    add("xlogy", r(3), other=2.5)


# Names that are PyTorch's under another home.
RENAMED = {
    "sdpa": F.scaled_dot_product_attention,
    "bce": F.binary_cross_entropy,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
    "hardtanh": F.hardtanh,
    "softmax": F.softmax,
    "log_softmax": F.log_softmax,
    "logsigmoid": F.logsigmoid,
    "dropout": F.dropout,
    "max_pool2d": F.max_pool2d,
    "max_pool1d": F.max_pool1d,
    "max_pool3d": F.max_pool3d,
    "adaptive_max_pool1d": F.adaptive_max_pool1d,
    "max": torch.max,
    "layer_norm": F.layer_norm,
    "group_norm": F.group_norm,
    "rms_norm": F.rms_norm,
    "instance_norm": F.instance_norm,
    "embedding": F.embedding,
    "prelu": F.prelu,
    "celu": F.celu,
    "selu": F.selu,
    "pad": F.pad,
    "cosine_similarity": F.cosine_similarity,
    "pairwise_distance": F.pairwise_distance,
    "margin_ranking_loss": F.margin_ranking_loss,
    "kl_div": F.kl_div,
    "hinge_embedding_loss": F.hinge_embedding_loss,
    "cosine_embedding_loss": F.cosine_embedding_loss,
    "poisson_nll_loss": F.poisson_nll_loss,
    "split": torch.split,
    "masked_fill": torch.masked_fill,
    "std": torch.std,
    "norm": torch.norm,
    "where": torch.where,
}


def all_cases():
    for family in [pointwise, activations, reductions, products, shapes, indexing, windows, norms,
                   losses, creation]:
        family()
    # Later families draw apart, so that the gradients of the earlier cases stay the same numbers.
    state = generator.get_state()
    generator.manual_seed(21)
    for family in [small_functions, in_place]:
        family()
    generator.manual_seed(22)
    indexed_pools()
    generator.manual_seed(23)
    edges()
    generator.manual_seed(24)
    for family in [scalars, integers, antialias, corners]:
        family()
    generator.manual_seed(25)
    arrange()
    generator.manual_seed(26)
    all_ranks()
    generator.manual_seed(27)
    all_vectors()
    generator.manual_seed(28)
    selection()
    generator.manual_seed(29)
    for family in [arguments, shape_arguments, window_arguments, other_names]:
        family()
    generator.manual_seed(30)
    for family in [refusals, differences]:
        family()
    generator.manual_seed(31)
    all_results()
    generator.manual_seed(32)
    linear_algebra()
    generator.manual_seed(36)
    fractional_pools()
    generator.manual_seed(40)
    fourier()
    generator.manual_seed(41)
    more_linear_algebra()
    generator.manual_seed(42)
    polynomials()
    generator.manual_seed(43)
    special_functions()
    generator.manual_seed(60)
    fuzzed()
    generator.manual_seed(61)
    for family in [ldl, dtypes]:
        family()
    generator.manual_seed(62)
    degenerate()
    generator.manual_seed(63)
    for family in [integer_signals, untrained]:
        family()
    generator.set_state(state)
    counts = {}
    for case in cases:
        counts[case.op] = counts.get(case.op, 0) + 1
        case.id = f"{case.op}_{counts[case.op]}"
    return cases

"""Scalars where vectors are expected, integers, antialias, and calls that PyTorch refuses."""

import torch
import torch.nn.functional as F

from op_case import INF, NAN, add, f32, ints, mask, r, unit


def scalars():
    """To PyTorch's gather, scatter and index_select a scalar is a vector of one element."""
    def gather(x, index, dim):
        return x.gather(dim, index)

    def scatter(x, index, *src, dim, value=None):
        return x.scatter(dim, index, src[0] if src else value)

    def scatter_add(x, index, src, dim):
        return x.scatter_add(dim, index, src)

    def scatter_reduce(x, index, src, dim, **attrs):
        return x.scatter_reduce(dim, index, src, **attrs)

    def index_select(x, index, dim):
        return x.index_select(dim, index)

    for x, index, dim in [((), (), 0), ((), (1,), -1), ((3,), (), 0), ((), (3,), 0)]:
        high = max([1, *x])
        add("gather", {"x": r(*x), "i": ints(high, *index)}, gather, dim=dim)
        add("scatter", {"x": r(*x), "i": ints(high, *index)}, scatter, dim=dim, value=1.5)
        add("scatter", {"x": r(*x), "i": ints(high, *index[:0]), "src": r()}, scatter, dim=dim)
        add("scatter_add", {"x": r(*x), "i": ints(high, *index), "src": r(*index)}, scatter_add,
            dim=dim)
        for reduce in ["sum", "mean", "amax", "prod"]:
            add("scatter_reduce", {"x": r(*x), "i": ints(high, *index), "src": r(*index)},
                scatter_reduce, dim=dim, reduce=reduce)
    add("gather", {"x": r(), "i": ints(1)}, gather, dim=1, error=True)
    add("gather", {"x": r(4, 3), "i": ints(3)}, gather, dim=0, error=True)
    add("index_select", {"x": r(), "i": ints(1, 1)}, index_select, dim=0)
    add("index_select", {"x": r(), "i": ints(1)}, index_select, dim=-1)
    add("index_select", {"x": r(4), "i": torch.tensor(2)}, index_select, dim=0)
    add("index_select", {"x": r(), "i": ints(1, 2)}, index_select, dim=0, error=True)
    add("index_select", {"x": r(4, 3), "i": torch.tensor([0, -1])}, index_select, dim=0, error=True)
    add("index_select", {"x": r(4, 3), "i": torch.tensor([[0, 1]])}, index_select, dim=0,
        error=True)


def integers():
    for dims in (1, 2, 3):
        size = [6, 5, 4][:dims]
        add(f"max_pool{dims}d", ints(9, 1, 2, *size, low=-9), kernel_size=3, stride=2, padding=1,
            return_indices=True)
        if dims > 1:  # PyTorch has no other of one dim
            add(f"max_pool{dims}d", ints(9, 2, *size, low=-9), kernel_size=2, dilation=2)
        if dims < 3:
            add(f"avg_pool{dims}d", ints(9, 1, 2, *size, low=-9), kernel_size=2, stride=1)
    add("max_pool2d", ints(9, 1, 2, 6, 5, dtype=torch.int32), kernel_size=2, ceil_mode=True)
    add("max_pool2d", mask(1, 2, 4, 4), kernel_size=2, error=True)
    add("relu6", ints(9, 5, low=-3))
    add("softsign", ints(9, 5, low=-3))
    add("square", mask(4))
    add("logsumexp", ints(9, 2, 3), dim=1)
    add("masked_fill", {"x": ints(9, 4), "m": mask(4)}, value=1.5)
    add("isclose", [mask(4), mask(4)])
    add("isclose", [ints(9, 4), r(4)], error=True, grads=False)
    add("sub", [mask(2, 3), ints(9, 2, 3)], error=True)
    add("sub", mask(3), other=1, error=True)


def antialias():
    for mode in ["bilinear", "bicubic"]:
        for size in [[2, 2], [7, 5], [2, 9], [1, 1]]:
            add("interpolate", r(1, 2, 6, 8), mode=mode, size=size, antialias=True)
        add("interpolate", r(1, 2, 6, 8), mode=mode, size=[3, 4], align_corners=True,
            antialias=True)
        add("interpolate", r(1, 2, 6, 8), mode=mode, scale_factor=[0.5, 1.7], antialias=True)
        add("interpolate", r(1, 2, 6, 8), mode=mode, scale_factor=0.37, antialias=True)
    add("interpolate", r(1, 2, 6, 8), mode="nearest", size=3, antialias=True, error=True)
    add("interpolate", r(1, 2, 6), mode="linear", size=3, antialias=True, error=True)


def corners():
    """What PyTorch computes, or refuses, where formulas leave a choice."""
    for mode in ["reflect", "replicate", "circular"]:
        add("pad", r(4), pad=[1, 1], mode=mode, error=True)
        add("pad", r(1, 2, 3, 4), pad=[1, 1], mode=mode, error=True)
        add("pad", r(2, 3, 4), pad=[1, 1, 0, 2], mode=mode)
    bce = F.binary_cross_entropy
    add("bce", [f32([0.0, 1.0]), f32([1.0, 0.0])], bce, reduction="none")
    add("bce", [f32([NAN]), f32([1.0])], bce, error=True)
    add("bce", [unit(3), f32([2.0, -1.0, 0.5])], bce, error=True)
    add("kl_div", [r(2, 3), f32([[0.0, -1.0, 1.0]] * 2)], grads=False)
    add("margin_ranking_loss", {"x": r(3), "y": r(2, 1), "t": f32([1.0])}, error=True)
    add("addmm", {"c": r(2, 2, 2), "x": r(2, 3), "y": r(3, 2)}, error=True)
    add("batch_norm", r(4, 3), lambda x, **attrs: F.batch_norm(x, None, None, **attrs),
        training=False, error=True)
    add("sdpa", {"q": r(2, 3, 4), "k": r(2, 3, 4), "v": r(2, 3, 4), "m": ints(2, 3, 3)},
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), error=True)
    add("celu", r(2, 3, scale=2.0), alpha=1.3)
    add("hardsigmoid", f32([-3.0, -2.9, 0.0, 2.9, 3.0, INF]))

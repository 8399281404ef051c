"""Tensors without elements, mixed dtypes, and calls of which flow and PyTorch refuse different ones."""

import torch
import torch.nn.functional as F

from op_arguments import each
from op_case import add, f32, ints, kwargs_named, mask, pos, r
from op_refusals import refuse


def empties():
    gather = lambda x, i, dim: x.gather(dim, i)
    add("gather", {"x": r(0, 3), "i": ints(1, 2, 0)}, gather, dim=1)
    add("scatter", {"x": r(0, 4), "i": ints(1, 2, 0)},
        lambda x, i, dim, value: x.scatter(dim, i, value), dim=1, value=1.5)
    for p in [1.0, 2.0, "inf"]:
        add("cdist", [r(3, 0), r(2, 0)], p=p)
        add("pdist", r(3, 0), F.pdist, p=p)
    add("grid_sample", {"x": r(2, 0, 3, 4), "grid": r(2, 3, 2, 2)}, F.grid_sample,
        align_corners=False)
    for op in ["cov", "corrcoef"]:
        add(op, r(1, 5))
        add(op, ints(9, 3, 4))
    add("masked_scatter", {"x": r(2, 2), "m": mask(2, 2) & False, "source": r(0)},
        torch.masked_scatter)
    for op in ["max_pool2d", "avg_pool2d"]:
        add(op, r(0, 2, 4, 4), kernel_size=2)
    for op in ["layer_norm", "rms_norm"]:
        add(op, r(2, 0, 3), normalized_shape=[3])
    add("embedding", {"i": ints(3, 0), "weight": r(3, 2)})
    add("index_select", {"x": r(3, 0), "i": torch.tensor([2, 0])},
        lambda x, i, dim: x.index_select(dim, i), dim=0)
    add("topk", r(0, 3), k=2)
    add("narrow", r(0, 3), dim=0, start=0, length=0)
    refuse("max_pool2d", r(1, 2, 0, 4), kernel_size=2)
    refuse("masked_scatter", {"x": r(2), "m": mask(2) | True, "source": r(0)}, torch.masked_scatter)


def mixed():
    edges = f32([1.5, 3.5])
    add("bucketize", [ints(6, 2, 3), edges], grads=False)
    add("bucketize", [r(4, scale=3.0), torch.tensor([-1, 0, 2])], grads=False)
    add("searchsorted", [torch.tensor([1, 3, 5]), f32([0.5, 3.0, 3.5])], grads=False)
    for dims in [1, 2, 3]:
        size = [6, 5, 4][:dims]
        each(f"lp_pool{dims}d", lambda: r(1, 2, *size), {"norm_type": "inf", "kernel_size": 2},
             {"norm_type": "-inf", "kernel_size": 3, "stride": 2, "ceil_mode": True},
             call=getattr(F, f"lp_pool{dims}d"))
    refuse("lp_pool2d", r(1, 2, 5, 5), F.lp_pool2d, norm_type=2.0, kernel_size=[])
    refuse("squeeze", r(1, 2, 1), dim=[0, -3])
    refuse("nanmean", r(2, 3), dim=0, dtype="int64")
    refuse("cosine_similarity", [r(2, 3), r(2, 3)], eps=-0.5)
    refuse("histc", r(5), bins=3, min=0.0, max="inf")
    refuse("cartesian_prod", [r()], torch.cartesian_prod)


def refused_by_pytorch():
    """flow promotes dtypes, and accepts shapes that have a meaning."""
    promotes = "dtypes are promoted"
    refuse("lerp", [r(2, 3), ints(9, 3)], weight=0.5, differs=promotes)
    refuse("baddbmm", {"c": ints(9, 2), "x": r(1, 2, 3), "y": r(1, 3, 2)}, differs=promotes)
    refuse("kl_div", [ints(9, 2, 3), pos(2, 3)], differs=promotes)
    refuse("tensordot", [ints(9, 2), r(3)], dims=0, differs=promotes)
    refuse("meshgrid", [ints(9, 2), r(3)], torch.meshgrid, indexing="ij",
           differs="each grid has the dtype of its vector")
    wide = "int32 holds classes and positions"
    refuse("nll_loss", {"x": r(4, 5), "target": ints(5, 4, dtype=torch.int32)}, differs=wide)
    refuse("one_hot", {"i": ints(3, 4, dtype=torch.int32)}, num_classes=3, differs=wide)
    refuse("index_fill", {"x": r(3, 4), "i": ints(3, 2, dtype=torch.int32)},
           lambda x, i, dim, value: x.index_fill(dim, i, value), dim=0, value=1.0, differs=wide)
    bools = "the result for bools has a meaning"
    refuse("topk", mask(5), k=2, differs=bools)
    refuse("trace", mask(3, 3), differs=bools)
    refuse("interpolate", ints(9, 1, 2, 4), size=7, differs="nearest copies every dtype")
    refuse("unfold", ints(9, 1, 2, 5, 4), F.unfold, kernel_size=2,
           differs="windows are copied for every dtype")
    for op, attrs in [("group_norm", {"num_groups": 3}), ("unfold", {"kernel_size": 1})]:
        refuse(op, r(2, 0, 4) if op == "group_norm" else r(2, 0, 4, 4), getattr(F, op),
               differs="the result has no elements", **attrs)
    refuse("adaptive_max_pool2d", r(2, 0, 5, 5), F.adaptive_max_pool2d, output_size=2,
           differs="the result has no elements")
    cell = {"x": r(2, 2, 3), "h": r(2, 2, 2), "wi": r(2, 3), "wh": r(2, 2)}
    refuse("rnn_tanh_cell", cell, differs="a batch may have several dims")
    refuse("embedding_bag", {"i": ints(3, 2), "weight": r(3, 2), "offsets": torch.tensor([0, 5])},
           lambda i, weight, offsets, **attrs: F.embedding_bag(i, weight, offsets, **attrs),
           mode="sum")
    refuse("multilabel_margin_loss", {"x": r(2, 3), "target": ints(1, 2, 3) - 5},
           F.multilabel_margin_loss, differs="every negative target ends a row")


def refused_by_flow():
    cast = "integers are not averaged or rounded silently; cast them"
    add("l1_loss", [ints(9, 3), ints(9, 3)], reduction="sum", differs=cast)
    add("hardtanh", ints(9, 4, low=-9), differs=cast)
    add("avg_pool3d", ints(9, 1, 1, 2, 2, 2), kernel_size=2, differs=cast)
    add("conv_transpose1d", {"x": ints(9, 1, 1, 3), "weight": ints(9, 1, 1, 2)}, differs=cast)
    add("addcmul", [ints(9, 3), ints(9, 3), ints(9, 3)], value=-0.5,
        differs="PyTorch rounds the number to 0")
    add("addmm", {"c": ints(9, 2, 2), "x": ints(9, 2, 2), "y": ints(9, 2, 2)}, beta=0.5,
        differs="PyTorch rounds the number to 0")
    add("softplus", r(3), beta=-0.5, differs="the documented range begins above 0")
    add("embedding", {"i": ints(3, 2), "weight": r(3, 2)}, max_norm=0.0, grads=False,
        differs="a norm of 0 would erase the rows")
    add("adaptive_avg_pool2d", r(2, 2, 0, 5), output_size=1, grads=False,
        differs="the mean of no elements is NaN")
    batch = kwargs_named("running_mean", "running_var")(F.batch_norm, 1)
    add("batch_norm", {"x": r(0, 3), "running_mean": r(3), "running_var": pos(3)},
        lambda *tensors, **attrs: batch(*[x.detach().clone() for x in tensors], **attrs),
        training=True, grads=False, differs="the statistics of no elements are NaN")
    add("index_add", {"x": r(0, 3), "i": torch.tensor([0]), "source": r(1, 3)},
        lambda x, i, source, dim: x.index_add(dim, i, source), dim=0, grads=False,
        differs="the position does not exist")
    add("take_along_dim", {"x": r(3, 2), "i": torch.tensor([[3, -1]])}, torch.take_along_dim, dim=0,
        grads=False, differs="PyTorch takes a position that does not exist modulo the size")
    add("linear", {"x": r(2, 3), "weight": r(4, 3), "bias": r(1, 4)},
        differs="the bias is a vector")
    add("interpolate", r(1, 2, 5), size=0, mode="area", grads=False,
        differs="the other modes refuse it in PyTorch too")


def differences():
    for family in [empties, mixed, refused_by_pytorch, refused_by_flow]:
        family()

"""Products and distances of vectors, sampling grids, bags of embeddings, shrinking activations,
functions of neighbours."""

import torch
import torch.nn.functional as F

from op_case import add, ints, kwargs_named, pos, r


def vectors():
    add("cross", [r(2, 3), r(2, 3)], torch.linalg.cross, dim=-1)
    add("cross", [r(3, 4), r(3, 1)], torch.linalg.cross, dim=0)
    add("cross", [r(2, 4), r(2, 4)], torch.linalg.cross, dim=-1, error=True)
    add("kron", [r(2, 3), r(3, 1)])
    add("kron", [r(2), r(2, 2)])
    add("kron", [r(), r(3)])
    for p in [1.0, 2.0, 3.0, "inf"]:
        add("cdist", [r(3, 4), r(2, 4)], p=p)
    add("cdist", [r(2, 3, 4), r(1, 5, 4)])
    add("cdist", [r(3, 4), r(2, 5)], error=True)
    add("pdist", r(4, 3), F.pdist)
    add("pdist", r(4, 3), F.pdist, p=1.0)
    add("cov", r(3, 5))
    add("cov", r(5), correction=0)
    add("cov", {"x": r(2, 4), "fweights": ints(4, 4, low=1), "aweights": pos(4)},
        kwargs_named("fweights", "aweights")(torch.cov, 1), constant=("aweights",))
    add("corrcoef", r(3, 5))
    add("renorm", r(3, 4), p=2.0, dim=0, maxnorm=1.0)
    add("renorm", r(3, 4, 2), p=1.0, dim=-1, maxnorm=3.0)
    add("trapezoid", r(3, 5), lambda x, dx, dim: torch.trapezoid(x, dx=dx, dim=dim), dx=0.5, dim=0)
    add("trapezoid", [r(3, 5), r(5)], torch.trapezoid)
    add("trapezoid", [r(3, 5), r(3, 5)], torch.trapezoid, dim=0)
    add("cartesian_prod", [r(2), r(3)], torch.cartesian_prod)
    add("cartesian_prod", [r(3)], torch.cartesian_prod)
    add("combinations", r(4))
    add("combinations", r(4), lambda x, r: torch.combinations(x, r), r=3)
    add("combinations", r(3), lambda x, with_replacement: torch.combinations(
        x, with_replacement=with_replacement), with_replacement=True)
    add("vander", r(3), grads=False)  # PyTorch has no gradient of it
    add("vander", r(3), N=4, increasing=True, grads=False)
    add("vander", ints(4, 3))
    add("bilinear", {"x": r(2, 3), "y": r(2, 4), "weight": r(5, 3, 4), "bias": r(5)},
        F.bilinear)
    add("bilinear", {"x": r(2, 3, 3), "y": r(2, 3, 4), "weight": r(2, 3, 4)}, F.bilinear)


def grids():
    for align_corners in [False, True]:
        for padding_mode in ["zeros", "border", "reflection"]:
            for mode in ["bilinear", "nearest", "bicubic"]:
                add("grid_sample", {"x": r(2, 2, 3, 4), "grid": r(2, 3, 2, 2, scale=0.9)},
                    F.grid_sample, mode=mode, padding_mode=padding_mode,
                    align_corners=align_corners)
        add("grid_sample", {"x": r(1, 2, 3, 4, 2), "grid": r(1, 2, 3, 2, 3, scale=0.9)},
            F.grid_sample, align_corners=align_corners)
        add("affine_grid", r(2, 2, 3), F.affine_grid, size=[2, 1, 3, 4],
            align_corners=align_corners)
        add("affine_grid", r(1, 3, 4), F.affine_grid, size=[1, 1, 2, 3, 2],
            align_corners=align_corners)
    add("grid_sample", {"x": r(2, 2, 3, 4), "grid": r(1, 3, 2, 2)}, F.grid_sample,
        align_corners=False, error=True)


def bags():
    def bag(indices, weight, offsets=None, per_sample_weights=None, **attrs):
        return F.embedding_bag(indices, weight, offsets, per_sample_weights=per_sample_weights,
                               **attrs)

    offsets = torch.tensor([0, 2, 2])
    for mode in ["sum", "mean", "max"]:
        add("embedding_bag", {"i": ints(5, 2, 3), "weight": r(5, 4)}, bag, mode=mode)
        add("embedding_bag", {"i": ints(5, 6), "weight": r(5, 4), "offsets": offsets}, bag,
            mode=mode)
        add("embedding_bag", {"i": torch.tensor([[1, 0, 2], [1, 1, 1]]), "weight": r(5, 4)}, bag,
            mode=mode, padding_idx=1)
    weighted = kwargs_named("offsets", "per_sample_weights")(bag, 2)
    add("embedding_bag", {"i": ints(5, 6), "weight": r(5, 4), "offsets": offsets,
                          "per_sample_weights": r(6)}, weighted, mode="sum")
    add("embedding_bag", {"i": ints(5, 6), "weight": r(5, 4),
                          "offsets": torch.tensor([0, 2, 6])}, bag, mode="sum",
        include_last_offset=True)
    add("embedding_bag", {"i": ints(5, 6), "weight": r(5, 4)}, bag, error=True)


def shrinks():
    for op in ["hardshrink", "softshrink", "tanhshrink"]:
        add(op, r(2, 5), getattr(F, op))
    add("hardshrink", r(5), F.hardshrink, lambd=1.0)
    add("softshrink", r(5), F.softshrink, lambd=0.1)
    add("softshrink", r(5), F.softshrink, lambd=-0.1, error=True)
    add("threshold", r(2, 5), F.threshold, threshold=0.2, value=-3.0)
    add("softmin", r(2, 5), F.softmin, dim=1)
    add("rrelu", r(2, 5), F.rrelu)
    add("rrelu", r(2, 5), F.rrelu, lower=0.1, upper=0.5)


def neighbours():
    add("local_response_norm", r(2, 5, 3), F.local_response_norm, size=3)
    add("local_response_norm", r(1, 4, 2, 3), F.local_response_norm, size=2, alpha=0.3, beta=0.5,
        k=2.0)
    add("local_response_norm", r(2, 5), F.local_response_norm, size=3, error=True)
    add("lp_pool1d", pos(2, 2, 7), F.lp_pool1d, norm_type=2.0, kernel_size=3)
    add("lp_pool2d", r(2, 2, 5, 6), F.lp_pool2d, norm_type=2.0, kernel_size=[2, 3], stride=1)
    add("lp_pool2d", pos(2, 5, 6), F.lp_pool2d, norm_type=3.0, kernel_size=2, ceil_mode=True)
    add("lp_pool3d", pos(1, 2, 4, 4, 4), F.lp_pool3d, norm_type=1.5, kernel_size=2)
    add("channel_shuffle", r(2, 6, 2, 2), torch.channel_shuffle, groups=3)
    add("channel_shuffle", r(2, 6, 2, 2), torch.channel_shuffle, groups=4, error=True)


def all_vectors():
    for family in [vectors, grids, bags, shrinks, neighbours]:
        family()

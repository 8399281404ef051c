"""Tensors without dims or elements, sizes that only just fit, and values that equal their bounds."""

import torch
import torch.nn.functional as F

from op_case import add, f32, ints, kwargs_named, pos, r
from op_fourier import complex_of
from op_refusals import refuse


def bounds():
    """The gradient of a value that equals its bound."""
    x = f32([[-1.0, 0.0, 1.0], [2.0, 0.0, -1.0]])
    low, high = f32([0.0, 0.0, -1.0]), f32([1.5, 1.0, 1.0])
    for named in [{"min": low}, {"max": high}, {"min": low, "max": high}, {"min": f32(0.0)}]:
        add("clamp", {"x": x, **named}, kwargs_named(*named)(torch.clamp, 1))
    add("clamp_min", [x, low])
    add("clamp_max", [x, high])


def single_slices():
    """A tensor without dims has one slice."""
    at_zero = torch.tensor(0)
    for i in [at_zero, at_zero.reshape(1)]:
        add("index_add", {"x": r(), "i": i, "source": r()},
            lambda x, i, source, dim, **attrs: x.index_add(dim, i, source, **attrs), dim=0,
            alpha=2.0)
        add("index_copy", {"x": r(), "i": i, "source": r()},
            lambda x, i, source, dim: x.index_copy(dim, i, source), dim=-1)
    add("index_add", {"x": r(3, 2), "i": at_zero + 1, "source": r(3, 1)},
        lambda x, i, source, dim: x.index_add(dim, i, source), dim=1)


def windows_of_numbers():
    for size in [0, 1]:
        add("unfold_dim", r(), lambda x, dimension, size, step: x.unfold(dimension, size, step),
            dimension=0, size=size, step=2)


def single_classes():
    """A score without dims is the score of the only class."""
    at_zero = torch.tensor(0)
    for reduction in ["none", "mean"]:
        for x, target in [(r(), at_zero), (r(3), at_zero), (r(3), at_zero.reshape(1))]:
            add("multi_margin_loss", {"x": x, "target": target}, F.multi_margin_loss,
                reduction=reduction)
        add("multilabel_margin_loss", {"x": r(), "target": at_zero}, F.multilabel_margin_loss,
            reduction=reduction)


def empty_batch():
    add("fractional_max_pool3d", {"x": r(0, 2, 4, 5, 4), "random_samples": r(0, 2, 3)},
        lambda x, samples, **attrs: F.fractional_max_pool3d(x, _random_samples=samples, **attrs),
        constant=("random_samples",), kernel_size=2, output_size=[2, 3, 2])


def cut_borders():
    """One number repeats elements that the other one cuts off."""
    for padding in [[-4, 5, 0, 0], [5, -4, -4, 3], [-3, 2, 1, -3]]:
        add("pad", r(2, 3, 4, 4), F.pad, pad=padding, mode="replicate")
    for padding in [[-2, 2, 0, 0], [3, -3, -1, 2]]:
        add("pad", r(2, 3, 4, 4), F.pad, pad=padding, mode="reflect")
    add("pad", r(2, 3, 4, 4), F.pad, pad=[-2, 1, 2, -1], mode="circular")


def paired_with_one():
    for x, y in [(r(1, 3, 1), r(2, 3, 4)), (r(2, 3, 2), r(1, 3, 4)), (r(1, 3, 2), r(2, 3, 1))]:
        add("tensordot", [x, y], dims=[[0, 1], [0, 1]])
    add("tensordot", [r(2, 1), r(3, 2)], dims=1)
    refuse("tensordot", [r(2, 2), r(3, 2)], dims=1)


def wide_reflections():
    for x, tau, y in [(r(2, 5), pos(2), r(2, 3)), (r(3, 0, 2), r(3, 0), r(3, 0, 2)),
                      (r(3, 5), pos(3), r(3, 3))]:
        add("ormqr", [x, tau, y], torch.ormqr, grads=False)


def all_frequencies():
    """Only the number of frequencies tells that the second half is there."""
    istft = lambda x, **attrs: torch.istft(complex_of(x), window=torch.ones(attrs["n_fft"]), **attrs)
    add("istft", r(8, 5, 2), istft, n_fft=8)
    add("istft", r(2, 6, 4, 2), istft, n_fft=6, hop_length=2)


def negative_tolerances():
    for tolerance in [{"rtol": -0.5}, {"atol": -1e-8}]:
        refuse("isclose", [r(3), r(3)], **tolerance)


def unfit_vectors():
    refuse("cov", {"x": r(2, 3), "fweights": f32([1.0, 2.0, 1.5])},
           kwargs_named("fweights")(torch.cov, 1))
    refuse("cross", [r(5, 3), r(5, 1)], torch.linalg.cross, dim=-1)
    refuse("cross", [r(1, 5), r(3, 5)], torch.linalg.cross, dim=0)


def integers():
    refuse("logaddexp2", [ints(9, 3), ints(9, 3)], torch.logaddexp2)


def wide_exponents():
    for dtype in [torch.int8, torch.uint8]:
        refuse("pow", ints(4, 3, dtype=dtype), torch.pow, exponent=257)


def matrices():
    for n in [2, 3]:
        add("linalg_vander", r(), torch.linalg.vander, N=n)
    for shape in [(0, 4), (3, 0), (2, 0, 0)]:
        for order in [1, 2, "inf"]:
            add("matrix_norm", r(*shape), torch.linalg.matrix_norm, grads=False, ord=order,
                keepdim=order == 2)
    refuse("matrix_norm", r(3, 0), torch.linalg.matrix_norm, ord=-1)
    refuse("matrix_norm", r(0, 3), torch.linalg.matrix_norm, ord=-2)


def degenerate():
    for family in [bounds, single_slices, windows_of_numbers, single_classes, empty_batch,
                   cut_borders, paired_with_one, wide_reflections, all_frequencies,
                   negative_tolerances, unfit_vectors, integers, wide_exponents, matrices]:
        family()

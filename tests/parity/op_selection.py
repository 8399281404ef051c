"""Elements chosen by value or place, and tensors cut and joined by blocks."""

import torch

from op_case import NAN, add, f32, ints, mask, r
from op_arrange import listed


def selection():
    add("isin", [ints(6, 3, 4), ints(6, 3)])
    add("isin", [ints(6, 5), ints(6, 2)], invert=True)
    add("isin", [f32([1.0, NAN, 2.0]), f32([NAN, 2.0])], grads=False)
    add("isin", [ints(6, 3), ints(6, 0)])
    at = torch.tensor([0, 2])
    add("index_fill", {"x": r(3, 4), "i": at}, lambda x, i, dim, value: x.index_fill(dim, i, value),
        dim=0, value=-1.5)
    add("index_fill", {"x": r(3, 4), "i": torch.tensor([-1])},
        lambda x, i, dim, value: x.index_fill(dim, i, value), dim=1, value=2.0)
    add("index_copy", {"x": r(3, 4), "i": at, "source": r(2, 4)},
        lambda x, i, source, dim: x.index_copy(dim, i, source), dim=0)
    add("index_copy", {"x": r(3, 4), "i": at, "source": r(3, 4)},
        lambda x, i, source, dim: x.index_copy(dim, i, source), dim=0, error=True)
    add("masked_scatter", {"x": r(3, 4), "m": mask(3, 4), "source": r(15)}, torch.masked_scatter)
    add("masked_scatter", {"x": r(3, 4), "m": mask(3, 1), "source": r(3, 4)}, torch.masked_scatter)
    for op in ["fmax", "fmin"]:
        add(op, [r(2, 3), r(3)])
        add(op, [f32([NAN, 1.0, NAN]), f32([2.0, NAN, NAN])], grads=False)
        add(op, [ints(9, 4), ints(9, 4)])

    def cut(function):
        return lambda x, sections=None, indices=None: function(
            x, indices if sections is None else sections)

    for op, shape in [("hsplit", (2, 4)), ("vsplit", (4, 2)), ("dsplit", (1, 2, 4))]:
        add(op, r(*shape), cut(getattr(torch, op)), sections=2)
        add(op, r(*shape), cut(getattr(torch, op)), indices=[1, 3])
        add(op, r(*shape), cut(getattr(torch, op)), sections=3, error=True)
    add("hsplit", r(4), cut(torch.hsplit), sections=2)
    add("vsplit", r(4), cut(torch.vsplit), sections=2, error=True)
    blocks = listed(lambda tensors: torch.block_diag(*tensors))
    add("block_diag", [r(2, 3), r(1, 1), r(2)], blocks)
    add("block_diag", [r(), r(2, 2)], blocks)

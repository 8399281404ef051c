"""Stacking, cutting, turning and spreading."""

import torch

from op_case import add, ints, mask, r


def listed(function):
    def call(*tensors, **attrs):
        return function(tensors, **attrs)
    return call


def arrange():
    for op in ["atleast_1d", "atleast_2d", "atleast_3d"]:
        for shape in [(), (3,), (2, 3), (2, 1, 3)]:
            add(op, r(*shape))
    for op in ["hstack", "vstack", "dstack", "column_stack"]:
        call = listed(getattr(torch, op))
        add(op, [r(3), r(3)], call)
        add(op, [r(), r()], call)
        add(op, [r(2, 3), r(2, 3)], call)
        add(op, [r(2, 3, 2), ints(4, 2, 3, 2)], call)
    add("vstack", [r(3), r(2, 3)], listed(torch.vstack))
    add("hstack", [r(3), r(2)], listed(torch.hstack))
    add("column_stack", [r(2), r(2, 3)], listed(torch.column_stack))
    add("vstack", [r(3), r(2)], listed(torch.vstack), error=True)
    for attrs in [{"sections": 2}, {"sections": 7}, {"indices": [1, 4]}, {"indices": [3, 1, -1]},
                  {"sections": 3, "dim": 1}, {"indices": [9], "dim": -1}]:
        add("tensor_split", r(5, 4), lambda x, sections=None, indices=None, dim=0:
            torch.tensor_split(x, indices if sections is None else sections, dim), **attrs)
    add("tensor_split", r(5), lambda x, sections: torch.tensor_split(x, sections), sections=0,
        error=True)
    add("unflatten", r(6, 2), dim=0, sizes=[2, -1])
    add("unflatten", r(2, 6), dim=-1, sizes=[1, 2, 3])
    add("unflatten", r(6), dim=0, sizes=[4, -1], error=True)
    for op in ["fliplr", "flipud"]:
        add(op, r(2, 3))
        add(op, r(0, 2))
    add("fliplr", r(3), error=True)
    for k in [0, 1, 2, 3, -1, 6]:
        add("rot90", r(2, 3), k=k)
    add("rot90", r(2, 3, 2), k=1, dims=[1, 2])
    add("rot90", r(2, 3, 2), k=1, dims=[-1, 0])
    add("rot90", r(3), error=True)
    for indexing in ["ij", "xy"]:
        add("meshgrid", [r(2), r(3)], torch.meshgrid, indexing=indexing)
        add("meshgrid", [r(2), r(), r(3)], torch.meshgrid, indexing=indexing)
    add("repeat_interleave", r(2, 3), repeats=2)
    add("repeat_interleave", r(2, 3), repeats=3, dim=-1)
    add("repeat_interleave", r(2, 3), repeats=0, dim=0)
    add("repeat_interleave", r(), repeats=2)
    add("repeat_interleave", mask(3), repeats=2)
    add("outer", [r(3), r(4)])
    add("outer", [r(0), r(4)])
    add("outer", [ints(3, 2), r(2)])
    add("outer", [r(2, 2), r(4)], error=True)
    add("take", {"x": r(3, 2), "i": torch.tensor([[0, 5], [-1, 5]])}, torch.take)
    add("take", {"x": r(3, 2), "i": torch.tensor(2)}, torch.take)
    add("take", {"x": r(3, 2), "i": torch.tensor([6])}, torch.take, error=True)
    along = torch.take_along_dim
    add("take_along_dim", {"x": r(3, 2), "i": ints(3, 1, 2)}, along, dim=0)
    add("take_along_dim", {"x": r(1, 3), "i": ints(3, 4, 2)}, along, dim=1)
    add("take_along_dim", {"x": r(3, 2), "i": ints(6, 4)}, along)
    for shape, dim, count in [((4, 3), 0, 5), ((2, 3), -1, 2), ((4,), 0, 3)]:
        source = list(shape)
        source[dim] = count
        add("index_add", {"x": r(*shape), "i": ints(shape[dim], count), "source": r(*source)},
            lambda x, i, source, dim, **attrs: x.index_add(dim, i, source, **attrs), dim=dim,
            alpha=-1.5)
    add("index_add", {"x": r(4, 3), "i": ints(4, 2), "source": r(1, 3)},
        lambda x, i, source, dim: x.index_add(dim, i, source), dim=0, error=True)
    add("argwhere", mask(2, 3))

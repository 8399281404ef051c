"""Arguments of views, joins, indexing and creation with values that are not their defaults."""

import torch

from op_arguments import each
from op_arrange import listed
from op_case import add, f32, ints, kwargs_named, r


def views():
    each("broadcast_to", lambda: r(3, 1), {"size": [3, 4]}, {"size": [0, 3, 1]})
    each("view", lambda: r(2, 6), {"size": [3, -1]}, {"size": [2, 2, 3]},
         call=lambda x, size: x.view(size))
    each("flatten", lambda: r(2, 3, 4), {"start_dim": -2}, {"start_dim": 1, "end_dim": 1},
         {"start_dim": 0, "end_dim": 1})
    each("permute", lambda: r(2, 3, 4), {"dims": [1, 0, 2]}, {"dims": [-1, -3, -2]})
    each("transpose", lambda: r(2, 3, 4), {"dim0": -2, "dim1": 0}, {"dim0": 1, "dim1": 2})
    each("swapaxes", lambda: r(2, 3, 4), {"axis0": -2, "axis1": -1})
    each("swapdims", lambda: r(2, 3, 4), {"dim0": 0, "dim1": -1})
    each("movedim", lambda: r(2, 3, 4), {"source": -1, "destination": 0})
    each("moveaxis", lambda: r(2, 3, 4), {"source": [0, -1], "destination": [-1, 1]})
    each("unbind", lambda: r(2, 3), {"dim": 1})
    each("chunk", lambda: r(2, 5), {"chunks": 2, "dim": -1}, {"chunks": 5, "dim": -2})
    each("split", lambda: r(2, 5), {"split_size_or_sections": 3, "dim": 1})
    each("narrow", lambda: r(2, 5), {"dim": -1, "start": -3, "length": 2},
         {"dim": 1, "start": 2, "length": 0})
    each("select", lambda: r(2, 5), {"dim": -1, "index": 4})
    each("squeeze", lambda: r(1, 2, 1), {"dim": [0, 2]}, {"dim": [-1, 1]})
    each("diagonal", lambda: r(3, 4, 2), {"offset": 2, "dim1": -1, "dim2": 1},
         {"offset": 1, "dim1": 2, "dim2": 0}, {"offset": 9})
    each("diag_embed", lambda: r(2, 3), {"offset": -2, "dim1": 0, "dim2": 2},
         {"offset": 1, "dim1": 1, "dim2": 0}, {"dim1": -1, "dim2": -3})
    each("diag", lambda: r(3, 4), {"diagonal": -1}, {"diagonal": 5})
    add("unfold_dim", r(2, 5), lambda x, dimension, size, step: x.unfold(dimension, size, step),
        dimension=-1, size=2, step=3)
    add("detach", r(2, 3), torch.detach)
    add("contiguous", r(2, 0))


def joins():
    stack = listed(torch.stack)
    add("stack", [r(2, 3), r(2, 3)], stack, dim=1)
    add("stack", [r(2)], stack, dim=-2)
    for op in ["concat", "concatenate"]:
        add(op, [r(2, 1), r(2, 3)], listed(getattr(torch, op)), dim=-1)
    for op in ["hstack", "vstack", "dstack", "column_stack"]:
        add(op, [r(2, 3), r(2, 3), r(2, 3)], listed(getattr(torch, op)))
        add(op, [r(2, 3)], listed(getattr(torch, op)))
    add("row_stack", [r(3), r(2, 3)], listed(torch.vstack))
    each("flip", lambda: r(2, 3, 4), {"dims": [1]}, {"dims": [2, 1, 0]})
    each("roll", lambda: r(4, 3), {"shifts": 2, "dims": -1}, {"shifts": -7, "dims": 0},
         {"shifts": [1, 1], "dims": [0, 0]})
    each("tile", lambda: r(2, 3), {"dims": [2, 1, 3]}, {"dims": []})
    each("pad", lambda: r(2, 3), {"pad": [2, 0], "value": -0.5}, {"pad": [0, -3, 1, 0]})
    for op in ["tril", "triu"]:
        each(op, lambda: r(3, 4), {"diagonal": 2}, {"diagonal": -2}, {"diagonal": 9})

    def cut(op):
        return lambda x, sections=None, indices=None: getattr(torch, op)(
            x, indices if sections is None else sections)

    for op, shape in [("hsplit", (2, 4)), ("vsplit", (4, 2)), ("dsplit", (1, 2, 4))]:
        each(op, lambda shape=shape: r(*shape), {"sections": 4}, {"indices": [2, 2, 9]},
             call=cut(op))
    each("unflatten", lambda: r(2, 6), {"dim": 1, "sizes": [6, 1]})


def places():
    add("index", {"x": r(4, 3), "i": torch.tensor([0, -1, 2])}, lambda x, i: x[i])
    add("index", {"x": r(4, 3), "i": ints(4, 2, 1)}, lambda x, i: x[i])
    add("index", {"x": r(4, 3), "i": ints(4, 2, 1), "j": ints(3, 3)}, lambda x, i, j: x[i, j])
    add("index", {"x": r(4, 0), "i": ints(4, 3)}, lambda x, i: x[i])
    put = lambda x, *rest, **attrs: x.index_put(rest[:-1], rest[-1], **attrs)
    add("index_put", {"x": r(4, 3), "i": torch.tensor([1, 1, 0]), "values": r(3)}, put,
        accumulate=True)
    add("index_put", {"x": r(4, 3), "i": torch.tensor([3, 1]), "j": torch.tensor([0, 2]),
                      "values": r()}, put, accumulate=False)
    add("index_put_", {"x": r(4, 3), "i": torch.tensor([2]), "values": r(1, 3)}, put)
    each("take_along_dim", lambda: {"x": r(3, 2), "i": ints(2, 3, 4)}, {"dim": -1},
         call=torch.take_along_dim)
    each("one_hot", lambda: {"i": ints(3, 4)}, {"num_classes": 3}, {"num_classes": 9})
    each("embedding", lambda: {"i": torch.tensor([[1, 0], [1, 1]]), "weight": r(3, 2)},
         {"scale_grad_by_freq": True, "padding_idx": 0}, {"padding_idx": 2})
    each("embedding", lambda: {"i": torch.tensor([[1, 0], [1, 1]]), "weight": r(3, 2)},
         {"max_norm": 0.5}, {"max_norm": 1.0, "norm_type": 1.0}, {"max_norm": 0.25, "norm_type": 3.0},
         grads=False)
    distinct = torch.tensor([[0, 3, 1], [2, 1, 0]])
    scatter = lambda x, index, *src, dim, value=None, **attrs: x.scatter(
        dim, index, src[0] if src else value, **attrs)
    for op in ["scatter", "scatter_"]:
        add(op, {"x": r(4, 3), "i": distinct}, scatter, dim=-2, value=-2.5)
        for reduce in ["add", "multiply"]:
            add(op, {"x": r(4, 3), "i": ints(4, 3, 3)}, scatter, dim=0, reduce=reduce, value=0.5,
                grads=False)
    each("index_fill", lambda: {"x": r(3, 4), "i": torch.tensor([0, 2])},
         {"dim": -2, "value": 0.5}, {"dim": -1, "value": 3},
         call=lambda x, i, dim, value: x.index_fill(dim, i, value))
    each("index_copy", lambda: {"x": r(3, 4), "i": torch.tensor([0, 2]), "source": r(3, 2)},
         {"dim": -1}, {"dim": 1}, call=lambda x, i, source, dim: x.index_copy(dim, i, source))
    add("index_add", {"x": r(3, 4), "i": torch.tensor([0, 2, 0]), "source": r(3, 3)},
        lambda x, i, source, dim, alpha: x.index_add(dim, i, source, alpha=alpha), dim=1, alpha=2)
    add("index_add_", {"x": r(3), "i": torch.tensor([1]), "source": r(1)},
        lambda x, i, source, dim, alpha: x.index_add(dim, i, source, alpha=alpha), dim=0, alpha=0.5)
    add("scatter_add_", {"x": r(4, 3), "i": ints(4, 2, 3), "src": r(2, 3)},
        lambda x, i, src, dim: x.scatter_add(dim, i, src), dim=0)
    add("scatter_reduce_", {"x": r(4, 3), "i": ints(4, 2, 3), "src": r(2, 3)},
        lambda x, i, src, dim, **attrs: x.scatter_reduce(dim, i, src, **attrs), dim=0,
        reduce="amax", include_self=False)


def searches():
    each("isin", lambda: [torch.tensor([3, 0, 5]), torch.tensor([5, 1])],
         {"assume_unique": True}, {"assume_unique": True, "invert": True})
    rows = torch.tensor([[3.0, 1.0, 2.0], [0.5, 0.7, 0.1]])
    at = kwargs_named("sorter")(torch.searchsorted, 2)
    for more in [{}, {"right": True, "out_int32": True}]:
        add("searchsorted", {"x": rows, "y": f32([[1.0, 2.5], [0.1, 0.6]]),
                             "sorter": torch.argsort(rows)}, at, grads=False, **more)
    edges = torch.tensor([1, 3, 5])
    for more in [{"out_int32": True}, {"out_int32": True, "right": True}]:
        add("bucketize", [ints(7, 2, 3), edges], **more)
    each("unique", lambda: torch.tensor([2, 2, 2]), {"sorted": False},
         {"sorted": False, "return_counts": True},
         call=lambda x, sorted, return_counts=False: torch.unique(
             x, sorted=sorted, return_counts=return_counts))
    each("unique", lambda: torch.tensor([[1, 0, 1], [2, 5, 2]]), {"dim": -1, "return_inverse": True},
         {"dim": 0, "return_inverse": True})
    each("unique_consecutive", lambda: torch.tensor([[1, 1, 0], [2, 2, 5]]),
         {"dim": -1, "return_inverse": True}, {"dim": 1, "return_inverse": True})
    add("bincount", ints(3, 4), minlength=5)
    add("bincount", {"x": ints(3, 4), "weights": r(4)}, torch.bincount, minlength=2, grads=False)
    each("histc", lambda: r(20), {"bins": 3, "min": 0.0, "max": 2.0}, {"min": -2.0, "max": 0.5,
                                                                         "bins": 6}, grads=False)


def creation():
    for op, value in [("zeros", {}), ("ones", {}), ("full", {"fill_value": 2.5})]:
        each(op, list, {"size": [2, 0], "dtype": "float32"}, {"size": [], "dtype": "int32"}, **value)
        each(op + "_like", lambda: r(2, 3), {"dtype": "int64"}, {"dtype": "bool"}, **value,
             grads=False)
        each("new_" + op, lambda: r(2, 3), {"size": [3], "dtype": "int64"},
             {"size": [0, 2], "dtype": "bool"}, **value, grads=False)
    each("arange", list, {"end": 2.5, "dtype": "float32"}, {"start": -3, "end": 4, "step": 2,
                                                             "dtype": "int32"})
    each("linspace", list, {"start": 0, "end": 9, "steps": 4, "dtype": "int64"},
         {"start": 1.0, "end": 0.0, "steps": 0, "dtype": "float32"})
    each("eye", list, {"n": 3, "m": 1, "dtype": "int64"}, {"n": 0, "m": 2, "dtype": "bool"},
         {"n": 1, "m": 0}, call=lambda n, m, dtype=None: torch.eye(n, m, dtype=dtype))


def shape_arguments():
    for family in [views, joins, places, searches, creation]:
        family()

"""How op cases are written down, and the numbers they are made of."""

import torch

generator = torch.Generator().manual_seed(20)
NAN, INF = float("nan"), float("inf")


class Case:
    """`inputs`: (name, tensor as stored, transposed dims or None), in PyTorch's argument order."""

    def __init__(self, op, inputs, attrs, call, has_grads, constant, is_error, expr, limit, differs):
        self.op, self.inputs, self.attrs, self.call = op, inputs, attrs, call
        self.has_grads, self.constant, self.is_error = has_grads, constant, is_error
        self.expr, self.limit, self.differs = expr, limit, differs
        self.id = op


cases = []


def add(op, inputs, call=None, *, grads=True, constant=(), error=False, expr=None, limit=None,
        differs=None, **attrs):
    """`inputs`: tensors named x, y, z …, or a dict by name, or (name, tensor[, transpose]).
    `differs`: why flow deliberately computes what PyTorch refuses, or refuses what it computes."""
    if isinstance(inputs, torch.Tensor):
        inputs = [inputs]
    if isinstance(inputs, dict):
        inputs = list(inputs.items())
    names = ["x", "y", "z", "u", "v"]
    listed = []
    for number, item in enumerate(inputs):
        if isinstance(item, torch.Tensor):
            item = (names[number], item)
        name, value, *transposed = item
        listed.append((name, value, transposed[0] if transposed else None))
    cases.append(Case(op, listed, attrs, call, grads, constant, error, expr, limit, differs))


def r(*shape, scale=1.0):
    return torch.randn(shape, generator=generator, dtype=torch.float32) * scale


def pos(*shape):
    return torch.rand(shape, generator=generator, dtype=torch.float32) + 0.1


def unit(*shape):
    return torch.rand(shape, generator=generator, dtype=torch.float32) * 0.9 + 0.05


def ints(high, *shape, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def mask(*shape):
    return torch.rand(shape, generator=generator, dtype=torch.float32) < 0.5


def f32(values):
    return torch.tensor(values, dtype=torch.float32)


def special():
    return f32([[NAN, INF, -INF, 0.0, -0.0], [0.5, 1.5, -2.5, 30.0, -30.0]])


def kwargs_named(*names):
    """A call that passes the tensors after the first ones by these names."""
    def through(function, count):
        def call(*tensors, **attrs):
            named = dict(zip(names, tensors[count:]))
            return function(*tensors[:count], **named, **attrs)
        return call
    return through

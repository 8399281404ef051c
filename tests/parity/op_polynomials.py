"""Orthogonal polynomials."""

import torch

from op_case import add, f32, ints, r, unit
from op_refusals import refuse

POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda x, p, q, k: 2 * x * p - q,
    "chebyshev_polynomial_u": lambda x, p, q, k: 2 * x * p - q,
    "chebyshev_polynomial_v": lambda x, p, q, k: 2 * x * p - q,
    "chebyshev_polynomial_w": lambda x, p, q, k: 2 * x * p - q,
    "hermite_polynomial_h": lambda x, p, q, k: 2 * x * p - 2 * k * q,
    "hermite_polynomial_he": lambda x, p, q, k: x * p - k * q,
    "laguerre_polynomial_l": lambda x, p, q, k: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    "legendre_polynomial_p": lambda x, p, q, k: ((2 * k + 1) * x * p - k * q) / (k + 1),
}
FIRST = {"chebyshev_polynomial_u": lambda x: 2 * x, "chebyshev_polynomial_v": lambda x: 2 * x - 1,
         "chebyshev_polynomial_w": lambda x: 2 * x + 1, "hermite_polynomial_h": lambda x: 2 * x,
         "laguerre_polynomial_l": lambda x: 1 - x}


def polynomial(op):
    """Values by PyTorch, gradients, which PyTorch lacks, by the recurrence."""
    name = op.removeprefix("shifted_")

    def call(x, n):
        if isinstance(n, torch.Tensor):
            return getattr(torch.special, op)(x.detach(), n)
        own = 2 * x - 1 if op != name else x
        q, p = torch.ones_like(own), FIRST.get(name, lambda x: x)(own)
        if n < 1:
            p = q if n == 0 else 0 * q
        for k in range(1, n):
            q, p = p, POLYNOMIALS[name](own, p, q, k)
        expected = getattr(torch.special, op)(x.detach(), n)
        assert torch.allclose(p.detach(), expected, rtol=1e-9, atol=1e-9), op
        return p
    return call


def polynomials():
    for op in [*POLYNOMIALS, *("shifted_" + op for op in POLYNOMIALS if op.startswith("cheb"))]:
        for n in [-1, 0, 1, 2, 5, 12]:
            add(op, r(2, 3), polynomial(op), n=n)
        add(op, unit(4), polynomial(op), n=20)
        add(op, {"x": r(3, 1), "n": ints(6, 4, low=-1)}, polynomial(op), grads=False)
        add(op, {"x": r(4), "n": f32([0.0, 1.5, 3.9, -0.5])}, polynomial(op), grads=False)
        refuse(op, {"x": r(3), "n": ints(6, 4)}, polynomial(op))

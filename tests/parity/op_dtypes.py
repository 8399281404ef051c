"""Result dtypes that do not follow from the promotion of the operands."""

import torch
import torch.nn.functional as F

from op_case import add, f32, ints, mask, r
from op_refusals import refuse


def dtypes():
    for op in ["any", "all"]:
        ones = torch.ones(2, 3, dtype=torch.uint8)
        for x in [ints(3, 2, 3, dtype=torch.uint8), ones, mask(2, 3)]:
            add(op, x)
            add(op, x, dim=1)
            add(op, x, dim=0, keepdim=True)
    for reduction in ["mean", "none"]:
        add("huber_loss", [r(2, 3), ints(5, 2, 3)], F.huber_loss, grads=False,
            reduction=reduction)
        refuse("huber_loss", [ints(5, 2, 3), r(2, 3)], F.huber_loss, reduction=reduction)
        refuse("binary_cross_entropy_with_logits", [r(2, 3), ints(2, 2, 3)],
               F.binary_cross_entropy_with_logits, reduction=reduction)
        add("soft_margin_loss", [r(2, 3), 2 * ints(2, 2, 3) - 1], F.soft_margin_loss,
            reduction=reduction)
    for dtype in [torch.uint8, torch.int32]:
        small = [ints(3, *shape, dtype=dtype) for shape in [(2, 3), (2, 2), (4, 3, 2), (4,)]]
        add("bilinear", dict(zip(["x", "y", "weight", "bias"], small)), F.bilinear)
        add("threshold", ints(5, 4, dtype=dtype), F.threshold, threshold=1.0, value=200.0)
    add("threshold", ints(5, 4), F.threshold, threshold=0.5, value=-3.5)
    for polynomial in ["chebyshev_polynomial_t", "laguerre_polynomial_l"]:
        add(polynomial, {"x": ints(4, 3), "n": f32([0.0, 2.0, 3.0])},
            getattr(torch.special, polynomial), grads=False)

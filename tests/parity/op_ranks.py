"""Bits, special functions, ranks of elements, running extrema, counts, and the losses of margins,
likelihoods and sequences."""

import torch
import torch.nn.functional as F

from op_case import INF, NAN, add, f32, generator, ints, kwargs_named, mask, pos, r, special, unit


def signs(*shape):
    return torch.randint(0, 2, shape, generator=generator).to(torch.float32) * 2 - 1


def bits():
    for op in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
        add(op, [ints(99, 2, 3, low=-99), ints(99, 3, low=-99)])
        add(op, [mask(4), mask(4)])
        add(op, ints(99, 4), other=6)
        add(op, [ints(9, 3, dtype=torch.int32), ints(9, 3)])
        add(op, [r(3), r(3)], error=True)
    add("bitwise_not", ints(99, 4, low=-99))
    add("bitwise_not", mask(4))
    for op in ["bitwise_left_shift", "bitwise_right_shift"]:
        add(op, [ints(99, 2, 4, low=-99), torch.tensor([0, 3, 64, -1])])
        add(op, ints(99, 4, low=-99), other=2)
        add(op, [mask(4), mask(4)], error=True)


def special_functions():
    for op in ["lgamma", "digamma"]:
        add(op, r(2, 5, scale=4.0))
        # PyTorch's trigamma is good to ten digits.
        add(op, f32([0.1, 9.0, 10.0, 40.0, 1e3, 1.0, 2.0]), limit=1e-9)
        add(op, f32([NAN, INF, 0.0, -0.0, -1.0]), grads=False)
        add(op, ints(5, 3, low=1))
    for n in [1, 2, 4]:
        add("polygamma", pos(2, 5), lambda x, n: torch.polygamma(n, x), n=n)
        add("polygamma", f32([-0.5, -2.25, 0.3, 12.0, 50.0]),
            lambda x, n: torch.polygamma(n, x), n=n)
    add("erfinv", f32([-0.99999, -0.7, -1e-9, 0.0, 0.2, 0.5, 0.6, 0.999999]), limit=1e-9)
    add("erfinv", f32([-1.0, 1.0, 1.5, NAN]), grads=False)
    add("logit", unit(2, 3))
    add("logit", unit(2, 3), eps=0.3)
    add("copysign", [r(2, 4), f32([1.0, -2.0, 0.0, -0.0])])
    add("copysign", r(3), other=-1.0)
    add("heaviside", [f32([-1.0, 0.0, 2.0, -0.0]), r(4)], grads=False)
    add("logaddexp2", [r(2, 3), r(3)])
    add("deg2rad", r(3))
    add("rad2deg", r(3))


def apart(*shape):
    """No two elements alike."""
    count = 1
    for size in shape:
        count *= size
    return torch.randperm(count, generator=generator).to(torch.float32).reshape(shape) * 0.25


def ranks():
    for op in ["median", "nanmedian"]:
        add(op, apart(3, 4))
        add(op, f32([2.0, 1.0, 2.0, 2.0, 3.0]))
        add(op, apart(3, 4), dim=1)
        add(op, apart(3, 4, 2), dim=-2, keepdim=True)
        add(op, f32([[1.0, NAN, 0.5, 2.0], [3.0, 1.0, 2.0, 5.0]]), dim=1, grads=False)
        add(op, f32([1.0, NAN, 3.0]), grads=False)
        add(op, ints(9, 5))
        add(op, r(), dim=0)
        add(op, mask(3), error=True)
    add("kthvalue", apart(3, 4), k=2)
    add("kthvalue", apart(3, 4), k=3, dim=0, keepdim=True)
    add("kthvalue", apart(3, 4), k=5, error=True)
    add("mode", torch.tensor([[1, 2, 2, 3, 3], [5, 4, 5, 4, 1]]))
    add("mode", f32([[1.0, 2.0, 2.0], [3.0, 1.0, 3.0]]), dim=0, keepdim=True, grads=False)
    for op in ["quantile", "nanquantile"]:
        add(op, apart(3, 5), q=0.3)
        add(op, apart(3, 5), q=0.5, dim=1)
        add(op, apart(3, 5), lambda x, q, **attrs: getattr(torch, "quantile")(
            x, torch.tensor(q), **attrs), q=[0.0, 0.25, 1.0], dim=0, keepdim=True)
        for interpolation in ["lower", "higher", "nearest", "midpoint"]:
            add(op, apart(3, 6), q=0.3, dim=-1, interpolation=interpolation)
        add(op, f32([[1.0, NAN, 0.5, 2.0], [3.0, 1.0, 2.0, 5.0]]), q=0.4, dim=1, grads=False)
        add(op, r(3), q=1.5, error=True)
    for op in ["cummax", "cummin"]:
        add(op, apart(3, 4), dim=1)
        add(op, f32([1.0, 3.0, 3.0, 2.0, 4.0, 0.0, 0.0]), dim=0)
        add(op, f32([1.0, NAN, 3.0]), dim=0, grads=False)
        add(op, ints(9, 2, 5), dim=-1)
    add("logcumsumexp", r(3, 4), dim=1)
    add("logcumsumexp", f32([1000.0, 0.0, -1000.0, 999.0]), dim=0)
    add("logcumsumexp", f32([-INF, -INF, 1.0, INF, 2.0]), dim=0, grads=False)
    add("logcumsumexp", r(), dim=0)
    add("diff", r(3, 4))
    add("diff", r(3, 4), n=2, dim=0)
    add("diff", r(3), n=5)
    add("diff", {"x": r(2, 3), "prepend": r(2, 1), "append": r(2, 2)},
        kwargs_named("prepend", "append")(torch.diff, 1))
    add("diff", mask(5))
    add("diff", r(), error=True)
    add("trace", r(3, 4))
    add("trace", ints(9, 3, 3))
    add("trace", r(3), error=True)
    for op in ["nansum", "nanmean"]:
        add(op, f32([[1.0, NAN, 2.0], [NAN, NAN, NAN]]))
        add(op, f32([[1.0, NAN, 2.0], [NAN, 0.5, NAN]]), dim=1, keepdim=True)
    add("nanmean", ints(3, 4), error=True)
    add("count_nonzero", f32([[0.0, 1.0, NAN], [0.0, 0.0, 2.0]]), grads=False)
    add("count_nonzero", mask(3, 4), dim=1)
    add("unfold_dim", r(5), lambda x, dimension, size, step: x.unfold(dimension, size, step),
        dimension=0, size=3, step=2)
    add("unfold_dim", r(2, 5, 3), lambda x, dimension, size, step: x.unfold(dimension, size, step),
        dimension=1, size=2, step=1)


def counts():
    add("unique", f32([3.0, 1.0, 3.0, -2.0, 1.0]), torch.unique, grads=False)
    add("unique", ints(3, 2, 4), return_inverse=True, return_counts=True)
    add("unique", ints(2, 5, 2), return_inverse=True, return_counts=True, dim=0)
    add("unique", ints(2, 3, 4), return_counts=True, dim=1)
    add("unique_consecutive", torch.tensor([1, 1, 2, 2, 3, 1, 1, 2]), return_inverse=True,
        return_counts=True)
    add("unique_consecutive", torch.tensor([[1, 1], [1, 1], [0, 1]]), dim=0, return_counts=True)
    add("bincount", ints(6, 9))
    add("bincount", ints(3, 9), minlength=7)
    add("bincount", {"x": ints(5, 6), "weights": r(6)}, torch.bincount, grads=False)
    add("bincount", r(3), error=True)
    add("histc", r(40), bins=5, grads=False)
    add("histc", r(40), bins=4, min=-1.0, max=1.0, grads=False)
    add("histc", f32([2.0, 2.0]), bins=4, grads=False)
    sequence = torch.tensor([1.0, 3.0, 5.0, 5.0, 7.0])
    values = f32([[0.0, 1.0, 5.0], [6.0, 9.0, NAN]])
    rows = torch.sort(r(2, 6))[0]
    for right in [False, True]:
        add("searchsorted", [sequence, values], right=right, grads=False)
        add("searchsorted", [rows, r(2, 4)], right=right, grads=False)
        add("bucketize", [values, sequence], right=right, grads=False)
    add("searchsorted", [torch.tensor([1, 4, 6]), ints(8, 5)], out_int32=True)
    add("searchsorted", [rows, r(3, 4)], grads=False, error=True)


def sequence_losses():
    def ctc(x, targets, input_lengths, target_lengths, **attrs):
        return F.ctc_loss(x, targets, input_lengths, target_lengths, **attrs)

    def of(x, targets, inputs, lengths, call=ctc, **attrs):
        add("ctc_loss", {"x": torch.log_softmax(x, -1), "targets": targets,
                         "input_lengths": torch.tensor(inputs),
                         "target_lengths": torch.tensor(lengths)}, call, **attrs)

    labels = torch.tensor([[1, 2, 2], [3, 1, 0], [2, 0, 0]])
    for reduction in ["mean", "sum", "none"]:
        of(r(7, 3, 4), labels, [7, 5, 6], [3, 2, 0], reduction=reduction)
    of(r(7, 3, 4), labels, [2, 5, 6], [3, 2, 1], zero_infinity=True)
    of(r(7, 3, 4), torch.tensor([0, 2, 2, 0, 1, 2]), [7, 5, 6], [3, 2, 1], blank=3)
    add("ctc_loss", {"x": torch.log_softmax(r(6, 4), -1), "targets": torch.tensor([1, 3]),
                     "input_lengths": torch.tensor(6), "target_lengths": torch.tensor(2)}, ctc)
    of(r(7, 3, 4), labels, [8, 5, 6], [3, 2, 1], error=True)


def margin_losses():
    for reduction in ["mean", "sum", "none"]:
        more = {"reduction": reduction}
        add("hinge_embedding_loss", [r(3, 4), ("target", signs(3, 4))], constant=("target",),
            margin=0.8, **more)
        add("cosine_embedding_loss", [r(3, 4), r(3, 4), ("target", signs(3))],
            constant=("target",), margin=0.2, **more)
        add("soft_margin_loss", [r(3, 4, scale=20.0), ("target", signs(3, 4))],
            constant=("target",), **more)
        add("multi_margin_loss", {"x": r(3, 5), "target": ints(5, 3)}, F.multi_margin_loss, **more)
        add("multilabel_margin_loss", {"x": r(3, 4), "target": torch.tensor(
            [[3, 0, -1, 1], [1, 2, 3, 0], [-1, 0, 1, 2]])}, F.multilabel_margin_loss, **more)
        add("multilabel_soft_margin_loss", {"x": r(3, 4), "target": mask(3, 4).float()},
            F.multilabel_soft_margin_loss, constant=("target",), **more)
        add("poisson_nll_loss", [r(3, 4), ("target", pos(3, 4) * 5)], **more)
        add("gaussian_nll_loss", {"x": r(3, 4), "target": r(3, 4), "var": pos(3, 4)},
            F.gaussian_nll_loss, **more)
    add("cosine_embedding_loss", {"x": r(4), "y": r(4), "target": torch.tensor(1.0)},
        F.cosine_embedding_loss, constant=("target",))
    weighted = kwargs_named("weight")
    add("multi_margin_loss", {"x": r(3, 5), "target": ints(5, 3), "weight": pos(5)},
        weighted(F.multi_margin_loss, 2), constant=("weight",), p=2, margin=0.5)
    add("multi_margin_loss", {"x": r(5), "target": torch.tensor(2)}, F.multi_margin_loss)
    add("multi_margin_loss", {"x": r(3, 5), "target": ints(5, 3)}, F.multi_margin_loss, p=3,
        error=True)
    add("multilabel_margin_loss", {"x": r(4), "target": torch.tensor([3, 0, -1, 1])},
        F.multilabel_margin_loss)
    add("multilabel_soft_margin_loss", {"x": r(3, 4), "target": mask(3, 4).float(),
                                        "weight": pos(4)},
        weighted(F.multilabel_soft_margin_loss, 2), constant=("target", "weight"))
    add("poisson_nll_loss", [pos(3, 4), ("target", pos(3, 4) * 5)], log_input=False, full=True)
    add("poisson_nll_loss", [r(3, 4), ("target", ints(4, 3, 4).float())], full=True,
        constant=("target",))
    add("gaussian_nll_loss", {"x": r(3, 4), "target": r(3, 4), "var": pos(3)}, F.gaussian_nll_loss,
        full=True)
    add("gaussian_nll_loss", {"x": r(3, 4), "target": r(3, 4), "var": pos(3, 1) * 1e-6},
        F.gaussian_nll_loss, eps=1e-3)
    add("gaussian_nll_loss", {"x": r(3, 4), "target": r(3, 4), "var": pos(2)}, F.gaussian_nll_loss,
        error=True)


def all_ranks():
    for family in [bits, special_functions, ranks, counts, sequence_losses, margin_losses]:
        family()

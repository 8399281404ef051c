"""Norms and losses."""

import torch
import torch.nn.functional as F

from op_case import NAN, add, f32, ints, kwargs_named, pos, r, unit


def norms():
    affine = kwargs_named("weight", "bias")
    add("layer_norm", r(2, 3, 4), normalized_shape=[4])
    add("layer_norm", {"x": r(2, 3, 4), "weight": r(3, 4), "bias": r(3, 4)}, affine(F.layer_norm, 1),
        normalized_shape=[3, 4], eps=1e-3)
    add("layer_norm", {"x": r(2, 4), "weight": r(4)}, affine(F.layer_norm, 1),
        normalized_shape=[4])
    add("layer_norm", r(0, 4), normalized_shape=[4])
    add("layer_norm", r(2, 3), normalized_shape=[4], error=True)
    add("rms_norm", r(2, 3, 4), normalized_shape=[4])
    add("rms_norm", {"x": r(2, 3, 4), "weight": r(3, 4)}, affine(F.rms_norm, 1),
        normalized_shape=[3, 4], eps=1e-3)
    add("group_norm", r(2, 6, 4), num_groups=3)
    add("group_norm", {"x": r(2, 4, 3, 2), "weight": r(4), "bias": r(4)}, affine(F.group_norm, 1),
        num_groups=2, eps=1e-3)
    add("group_norm", r(2, 6, 4), num_groups=4, error=True)

    def batch_norm(x, *rest, names, **attrs):
        given = dict(zip(names, rest))
        mean, var = (given.pop(name, None) for name in ("running_mean", "running_var"))
        mean, var = (None if s is None else s.detach().clone() for s in (mean, var))
        return F.batch_norm(x, mean, var, **given, **attrs), mean, var

    for training in [True, False]:
        for shape in [(4, 3), (2, 3, 4, 2)]:
            names = ("running_mean", "running_var", "weight", "bias")
            inputs = [("x", r(*shape)), ("running_mean", r(3)), ("running_var", pos(3)),
                      ("weight", r(3)), ("bias", r(3))]
            add("batch_norm", inputs,
                lambda *tensors, names=names, **attrs: batch_norm(*tensors, names=names, **attrs),
                constant=names[:2], training=training, momentum=0.3, eps=1e-3)
    add("batch_norm", r(4, 3, 2), lambda x, **attrs: batch_norm(x, names=(), **attrs),
        training=True)
    add("batch_norm", {"x": r(4, 3, 2), "weight": r(3)},
        lambda x, weight, **attrs: batch_norm(x, weight, names=("weight",), **attrs),
        training=True)
    add("batch_norm", r(1, 3), lambda x, **attrs: batch_norm(x, names=(), **attrs), training=True,
        error=True)
    add("instance_norm", r(2, 3, 4))
    add("instance_norm", {"x": r(2, 3, 4, 2), "weight": r(3), "bias": r(3)},
        affine(F.instance_norm, 1), eps=1e-3)
    add("instance_norm", r(2, 3, 1), error=True)


def losses():
    def with_weight(function, *names):
        return kwargs_named(*names)(function, 2)

    for op in ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]:
        for reduction in ["mean", "sum", "none"]:
            add(op, [r(2, 3), r(2, 3)], reduction=reduction)
        # PyTorch's gradient of l1_loss at NaN is 0, of the others NaN.
        add(op, [f32([1.0, 2.0, NAN, 0.0]), f32([1.0, 0.0, 1.0, 0.5])], reduction="none",
            grads=op != "l1_loss")
        add(op, [r(0, 3), r(0, 3)])
        add(op, [r(3), r(3)], reduction="average", error=True)
    add("smooth_l1_loss", [r(2, 3), r(2, 3)], beta=0.3)
    add("smooth_l1_loss", [r(2, 3), r(2, 3)], beta=0.0)
    add("huber_loss", [r(2, 3), r(2, 3)], delta=0.3)
    bce, logits = F.binary_cross_entropy, F.binary_cross_entropy_with_logits
    for reduction in ["mean", "sum", "none"]:
        add("bce", [unit(2, 3), unit(2, 3)], bce, reduction=reduction)
        add("bce_with_logits", [r(2, 3), unit(2, 3)], logits, reduction=reduction)
        add("kl_div", [r(2, 3), unit(2, 3)], reduction=reduction)
    add("bce", [f32([0.0, 1.0, 1.0]), f32([0.0, 1.0, 0.0])], bce, grads=False)
    add("bce", {"x": unit(2, 3), "y": unit(2, 3), "weight": pos(3)}, with_weight(bce, "weight"),
        constant=("weight", "y"))
    add("bce", [f32([1.5, 0.5]), f32([1.0, 0.0])], bce, error=True)
    add("bce_with_logits", {"x": r(2, 3, scale=50.0), "y": unit(2, 3), "weight": pos(2, 1),
                            "pos_weight": pos(3)}, with_weight(logits, "weight", "pos_weight"),
        constant=("weight", "pos_weight", "y"))
    add("kl_div", [r(2, 3), unit(2, 3)], reduction="batchmean")
    add("kl_div", [r(2, 3), r(2, 3)], log_target=True)
    add("kl_div", [r(2, 3), f32([[0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])], reduction="sum",
        constant=("y",))
    add("margin_ranking_loss", {"x": r(4), "y": r(4), "t": f32([1.0, -1.0, 1.0, -1.0])}, margin=0.5)
    add("margin_ranking_loss", {"x": r(2, 2), "y": r(2, 2), "t": f32([[1.0, -1.0], [1.0, -1.0]])},
        reduction="none", constant=("t",))
    for op, function in [("cross_entropy", F.cross_entropy), ("nll_loss", F.nll_loss)]:
        weighted = with_weight(function, "weight")
        for reduction in ["mean", "sum", "none"]:
            add(op, {"x": r(4, 5), "target": ints(5, 4)}, reduction=reduction)
            add(op, {"x": r(2, 5, 3), "target": ints(5, 2, 3), "weight": pos(5)}, weighted,
                constant=("weight",), reduction=reduction, ignore_index=2)
        add(op, {"x": r(5), "target": ints(5)})
        add(op, {"x": r(3, 5), "target": torch.tensor([1, -100, 4])})
        add(op, {"x": r(2, 5), "target": torch.tensor([-100, -100])})
        add(op, {"x": r(2, 5), "target": torch.tensor([1, 5])}, error=True)
        add(op, {"x": r(2, 5), "target": ints(5, 3)}, error=True)
    for reduction in ["mean", "sum", "none"]:
        add("cross_entropy", {"x": r(4, 5), "target": torch.tensor([1, -100, 4, 0])},
            label_smoothing=0.2, reduction=reduction)
        add("cross_entropy", {"x": r(4, 5), "target": ints(5, 4), "weight": pos(5)},
            with_weight(F.cross_entropy, "weight"), constant=("weight",), label_smoothing=0.3,
            reduction=reduction)
        add("cross_entropy", {"x": r(4, 5), "target": unit(4, 5)}, reduction=reduction)
    add("cross_entropy", {"x": r(4, 5), "target": unit(4, 5), "weight": pos(5)},
        with_weight(F.cross_entropy, "weight"), constant=("weight",), label_smoothing=0.1)
    add("cross_entropy", {"x": r(4, 5), "target": ints(5, 4)}, label_smoothing=1.5, error=True)

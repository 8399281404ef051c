"""Arguments of convolutions, pools, norms, losses and grids with values that are not their
defaults."""

import torch
import torch.nn.functional as F

from op_arguments import each
from op_case import add, ints, kwargs_named, mask, pos, r, unit


def convolutions():
    for dims in [1, 2, 3]:
        size, kernel = [5, 4, 4][:dims], [2, 3, 1][:dims]
        conv = f"conv{dims}d"
        weight = lambda groups=1: r(2 * groups, 2, *kernel)
        each(conv, lambda: {"x": r(1, 2, *size), "weight": weight(), "bias": r(2)},
             {"stride": 3, "padding": "valid"}, {"padding": "same", "dilation": 2},
             {"stride": [1, 2, 3][:dims], "dilation": [3, 1, 2][:dims],
              "padding": [2, 0, 1][:dims]})
        each(conv, lambda: {"x": r(2, 6, *size), "weight": weight(3)}, {"groups": 3})
        each("conv_transpose" + conv[4:], lambda: {"x": r(2, 2, *size), "weight": r(2, 1, *kernel),
                                                   "bias": r(1)},
             {}, {"stride": 3, "padding": 1, "output_padding": 1}, {"dilation": 2},
             {"stride": [3, 2, 2][:dims], "padding": [0, 1, 0][:dims],
              "output_padding": [2, 0, 1][:dims], "dilation": [3, 2, 1][:dims]})
        each("conv_transpose" + conv[4:], lambda: {"x": r(1, 6, *size), "weight": r(6, 2, *kernel)},
             {"groups": 3, "padding": [1, 0, 0][:dims]})
        each("conv_transpose" + conv[4:], lambda: {"x": r(4, *size), "weight": r(4, 1, *kernel),
                                                   "bias": r(2)}, {"groups": 2})


def pools():
    for dims in [1, 2, 3]:
        size = [6, 5, 4][:dims]
        many = {"kernel_size": [3, 2, 2][:dims], "stride": [1, 2, 1][:dims],
                "padding": [1, 0, 1][:dims]}
        each(f"max_pool{dims}d", lambda: r(1, 2, *size), many | {"dilation": [2, 1, 1][:dims]},
             {"kernel_size": 2, "stride": 3, "ceil_mode": True},
             {"kernel_size": 2, "padding": 1, "dilation": 3, "ceil_mode": True,
              "return_indices": True})
        override = {"divisor_override": 3} if dims > 1 else {}
        each(f"avg_pool{dims}d", lambda: r(1, 2, *size), many, {"kernel_size": 2},
             {"kernel_size": 2, "stride": 3, "ceil_mode": True},
             {"kernel_size": 3, "padding": 1, "ceil_mode": True, "count_include_pad": False},
             many | {"count_include_pad": False} | override)
        each(f"avg_pool{dims}d", lambda: r(2, *size),
             {"kernel_size": 2, "padding": 1} | ({"divisor_override": -2} if dims > 1 else {}))
        each(f"adaptive_avg_pool{dims}d", lambda: r(1, 2, *size), {"output_size": 3},
             {"output_size": [2, 1, 4][:dims]})
        each(f"adaptive_max_pool{dims}d", lambda: r(1, 2, *size), {"output_size": 2},
             {"output_size": [1, 5, 3][:dims], "return_indices": True},
             call=getattr(F, f"adaptive_max_pool{dims}d"))
        window = {"kernel_size": 3, "stride": 2, "padding": 1}
        for more in [{}, {"output_size": [size + 1 for size in [5, 5, 3][:dims]]}]:
            pooled, places = getattr(F, f"max_pool{dims}d")(
                r(1, 2, *[5, 5, 3][:dims]), **window, return_indices=True)
            add(f"max_unpool{dims}d", {"x": pooled, "indices": places}, **window, **more)
        pooled, places = getattr(F, f"max_pool{dims}d")(r(1, *[7, 7, 4][:dims]), 3, 3, 1,
                                                        return_indices=True)
        add(f"max_unpool{dims}d", {"x": pooled, "indices": places}, kernel_size=3, stride=3,
            padding=1, output_size=[7, 7, 5][:dims])
        pooled, places = getattr(F, f"max_pool{dims}d")(r(1, *[6, 4, 4][:dims]), [2, 1, 2][:dims],
                                                        [2, 1, 2][:dims], return_indices=True)
        add(f"max_unpool{dims}d", {"x": pooled, "indices": places}, kernel_size=[2, 1, 2][:dims],
            stride=[2, 1, 2][:dims])
        places = r(1, *[6, 6, 6][:dims])
        pooled, places = getattr(F, f"max_pool{dims}d")(places, 2, 2, [1, 0, 1][:dims],
                                                        return_indices=True)
        add(f"max_unpool{dims}d", {"x": pooled, "indices": places}, kernel_size=2, stride=2,
            padding=[1, 0, 1][:dims], output_size=[6, 6, 6][:dims])
        each(f"lp_pool{dims}d", lambda: pos(1, 2, *size), {"norm_type": 3.0, "kernel_size": 2},
             {"norm_type": 1.0, "kernel_size": [3, 2, 2][:dims] if dims > 1 else 3, "stride": 2,
              "ceil_mode": True},
             {"norm_type": 2.0, "kernel_size": 3, "stride": [1, 3, 2][:dims] if dims > 1 else 1,
              "ceil_mode": True},
             call=getattr(F, f"lp_pool{dims}d"))
    for op, shape in [("unfold", (1, 2, 5, 4)), ("unfold", (2, 4, 5))]:
        each(op, lambda shape=shape: r(*shape), {"kernel_size": 2}, {"kernel_size": [2, 3]},
             {"kernel_size": 2, "dilation": 2, "padding": 1, "stride": 2},
             {"kernel_size": [3, 1], "dilation": [1, 2], "padding": [0, 2], "stride": [2, 1]},
             call=F.unfold)
    each("fold", lambda: r(1, 8, 12), {"output_size": [5, 4], "kernel_size": 2})
    each("fold", lambda: r(8, 9), {"output_size": 5, "kernel_size": 2, "dilation": 2, "padding": 1,
                                   "stride": 2})
    each("fold", lambda: r(8, 6),
         {"output_size": [7, 3], "kernel_size": [2, 4], "padding": [0, 2], "dilation": [2, 1],
          "stride": [2, 2]})
    each("pixel_shuffle", lambda: r(2, 18, 1, 2), {"upscale_factor": 3}, {"upscale_factor": 1})
    each("pixel_shuffle", lambda: r(8, 1, 2), {"upscale_factor": 2})
    each("pixel_unshuffle", lambda: r(2, 1, 6, 12), {"downscale_factor": 2},
         {"downscale_factor": 3})
    each("channel_shuffle", lambda: r(1, 6, 2), {"groups": 2}, {"groups": 6})


def resizing():
    each("interpolate", lambda: r(1, 2, 4), {"mode": "linear", "scale_factor": 1.7},
         {"mode": "linear", "size": 3, "align_corners": True},
         {"mode": "nearest-exact", "size": 7},
         {"mode": "nearest", "scale_factor": 1.6, "recompute_scale_factor": True})
    each("interpolate", lambda: r(1, 1, 2, 3, 4), {"mode": "trilinear", "size": [3, 2, 5]},
         {"mode": "trilinear", "scale_factor": 1.5, "align_corners": True},
         {"mode": "trilinear", "scale_factor": [2.0, 0.7, 1.0], "align_corners": False,
          "recompute_scale_factor": True},
         {"mode": "trilinear", "scale_factor": [1.3, 1.3, 1.2]})
    each("interpolate", lambda: r(1, 1, 3, 4), {"mode": "bicubic", "size": 5,
                                                "align_corners": True},
         {"mode": "bilinear", "size": [1, 1], "align_corners": False},
         {"mode": "bilinear", "scale_factor": 1.3, "recompute_scale_factor": False},
         {"mode": "bicubic", "scale_factor": 1.3})
    # PyTorch's gradient does not belong to its results if a dim keeps its size.
    each("interpolate", lambda: r(1, 1, 3, 4),
         {"mode": "bilinear", "scale_factor": 1.3, "antialias": True},
         {"mode": "bicubic", "scale_factor": [1.3, 0.8], "antialias": True}, grads=False)


def norms():
    affine = kwargs_named("weight", "bias")
    each("layer_norm", lambda: {"x": r(2, 3, 2), "weight": r(2), "bias": r(2)},
         {"normalized_shape": [2], "eps": 0.5}, call=affine(F.layer_norm, 1))
    each("layer_norm", lambda: {"x": r(2, 3), "bias": r(3)}, {"normalized_shape": [3]},
         call=kwargs_named("bias")(F.layer_norm, 1))
    each("rms_norm", lambda: {"x": r(2, 3), "weight": r(3)}, {"normalized_shape": [3], "eps": 0.5},
         call=affine(F.rms_norm, 1))
    each("group_norm", lambda: {"x": r(2, 4), "weight": r(4), "bias": r(4)},
         {"num_groups": 1, "eps": 0.5}, call=affine(F.group_norm, 1))
    each("local_response_norm", lambda: r(2, 4, 2), {"size": 4, "alpha": 0.5, "beta": 1.5, "k": 0.5},
         call=F.local_response_norm)

    def batch_norm(x, mean, var, weight=None, bias=None, **attrs):
        mean, var = mean.detach().clone(), var.detach().clone()
        return F.batch_norm(x, mean, var, weight, bias, **attrs), mean, var

    each("batch_norm", lambda: {"x": r(4, 3), "running_mean": r(3), "running_var": pos(3)},
         {"training": True, "momentum": 1.0, "eps": 0.5},
         {"training": False, "momentum": 0.0, "eps": 0.25}, call=batch_norm,
         constant=("running_mean", "running_var"))

    def instance_norm(x, mean, var, weight=None, bias=None, **attrs):
        return F.instance_norm(x, mean.detach().clone(), var.detach().clone(), weight, bias,
                               **attrs)

    statistics = ("running_mean", "running_var")
    each("instance_norm", lambda: {"x": r(2, 3, 4), "running_mean": r(3), "running_var": pos(3)},
         {"momentum": 0.5}, {"use_input_stats": False, "eps": 0.5}, call=instance_norm,
         constant=statistics)
    each("instance_norm", lambda: {"x": r(2, 3, 2, 2), "running_mean": r(3), "running_var": pos(3),
                                   "weight": r(3), "bias": r(3)},
         {"momentum": 0.0, "use_input_stats": True}, {"use_input_stats": False, "momentum": 0.9},
         call=instance_norm, constant=statistics)


def losses():
    all_reductions = [{"reduction": reduction} for reduction in ["mean", "sum", "none"]]
    two = lambda: [r(3, 2), r(3, 2)]
    for op in ["smooth_l1_loss", "huber_loss"]:
        name = "beta" if op == "smooth_l1_loss" else "delta"
        each(op, two, {"reduction": "sum", name: 2.0}, {"reduction": "none", name: 0.5})
    bce, logits = F.binary_cross_entropy, F.binary_cross_entropy_with_logits
    each("bce", lambda: {"x": unit(2, 3), "y": unit(2, 3), "weight": pos(2, 3)}, *all_reductions,
         call=kwargs_named("weight")(bce, 2), constant=("weight", "y"))
    each("binary_cross_entropy", lambda: [unit(0, 3), unit(0, 3)], *all_reductions)
    each("bce_with_logits", lambda: {"x": r(2, 3), "y": unit(2, 3), "weight": pos(3),
                                     "pos_weight": pos(2, 3)}, *all_reductions,
         call=kwargs_named("weight", "pos_weight")(logits, 2),
         constant=("weight", "pos_weight", "y"))
    each("binary_cross_entropy_with_logits", lambda: [r(2), unit(2)], *all_reductions, call=logits)
    each("kl_div", lambda: [r(2, 3), r(2, 3)], *all_reductions, {"reduction": "batchmean"},
         log_target=True)
    signs = lambda *shape: ints(2, *shape).float() * 2 - 1
    each("margin_ranking_loss", lambda: {"x": r(3), "y": r(3), "t": signs(3)},
         *[more | {"margin": margin} for more, margin in zip(all_reductions, [0.25, 1.5, 0.5])],
         {"reduction": "sum"}, constant=("t",))
    each("hinge_embedding_loss", lambda: [r(2, 3), ("target", signs(2, 3))],
         *[more | {"margin": 0.5} for more in all_reductions], {}, constant=("target",))
    each("cosine_embedding_loss", lambda: [r(2, 3), r(2, 3), ("target", signs(2))],
         *[more | {"margin": -0.5} for more in all_reductions], constant=("target",))
    each("soft_margin_loss", lambda: [r(2, 3), ("target", signs(2, 3))], *all_reductions, {},
         constant=("target",))
    weighted = kwargs_named("weight")
    each("multi_margin_loss", lambda: {"x": r(3, 5), "target": ints(5, 3), "weight": pos(5)},
         *[more | {"margin": 0.25, "p": p} for more, p in zip(all_reductions, [2, 1, 2])],
         call=weighted(F.multi_margin_loss, 2), constant=("weight",))
    each("multilabel_margin_loss", lambda: {"x": r(2, 3), "target": torch.tensor([[2, 0, -1],
                                                                                 [-1, 1, 2]])},
         *all_reductions, {}, call=F.multilabel_margin_loss)
    each("multilabel_soft_margin_loss", lambda: {"x": r(2, 3), "target": mask(2, 3).float(),
                                                 "weight": pos(3)}, *all_reductions,
         call=weighted(F.multilabel_soft_margin_loss, 2), constant=("target", "weight"))
    each("poisson_nll_loss", lambda: [pos(2, 3), ("target", pos(2, 3) * 4)],
         *[more | {"log_input": False, "eps": eps, "full": True}
           for more, eps in zip(all_reductions, [0.5, 0.1, 0.25])])
    each("gaussian_nll_loss", lambda: {"x": r(2, 3), "target": r(2, 3), "var": pos(2, 1)},
         *[more | {"full": True, "eps": eps} for more, eps in zip(all_reductions, [0.5, 1, 0.25])],
         {"reduction": "none"}, call=F.gaussian_nll_loss)
    triplets = [more | {"margin": margin, "p": p, "eps": eps, "swap": swap}
                for more, margin, p, eps, swap in zip(
                    all_reductions * 2, [1.0, 0.5, 2.0, 3.0, 1.0, 1.0],
                    [2.0, 1.0, 3.0, 2.0, 1.5, 2.0], [1e-6, 0.1, 0.5, 1e-6, 1e-6, 0.2],
                    [False, True, True, False, False, True])]
    each("triplet_margin_loss", lambda: [r(3, 4), r(3, 4), r(3, 4)], {}, *triplets,
         call=F.triplet_margin_loss)
    for op, function in [("cross_entropy", F.cross_entropy), ("nll_loss", F.nll_loss)]:
        each(op, lambda: {"x": r(3, 4), "target": ints(4, 3), "weight": pos(4)},
             {"ignore_index": 0}, {"ignore_index": -1, "reduction": "sum"},
             call=weighted(function, 2), constant=("weight",))
        each(op, lambda: {"x": r(0, 4), "target": ints(4, 0)}, {"reduction": "sum"},
             {"reduction": "none"}, {"reduction": "mean"})
    labels = torch.tensor([[1, 2], [3, 1]])
    more = [{"blank": 1, "zero_infinity": True}, {"blank": 2}]
    for reduction, attrs in zip(["mean", "sum", "none", "sum", "none"], more * 2 + [{}]):
        blank = attrs.get("blank", 0)
        add("ctc_loss", {"x": torch.log_softmax(r(5, 2, 4), -1), "targets": (labels + blank) % 4
                         if blank else labels, "input_lengths": torch.tensor([5, 3]),
                         "target_lengths": torch.tensor([2, 1])}, F.ctc_loss,
            reduction=reduction, **attrs)


def grids():
    def bag(indices, weight, *named, names=(), **attrs):
        return F.embedding_bag(indices, weight, **dict(zip(names, named)), **attrs)

    def with_offsets(*names):
        return lambda *tensors, **attrs: bag(*tensors, names=names, **attrs)

    each("embedding_bag", lambda: {"i": torch.tensor([[1, 0], [1, 1]]), "weight": r(3, 2)},
         {"max_norm": 0.5}, {"max_norm": 1.0, "norm_type": 1.0, "mode": "sum"},
         {"max_norm": 0.25, "norm_type": 3.0}, call=bag, grads=False)
    each("embedding_bag", lambda: {"i": ints(5, 6), "weight": r(5, 2),
                                   "offsets": torch.tensor([0, 0, 4, 6])},
         {"include_last_offset": True}, {"include_last_offset": True, "mode": "max",
                                         "padding_idx": -2}, call=with_offsets("offsets"))
    each("embedding_bag", lambda: {"i": ints(3, 2, 3), "weight": r(3, 2),
                                   "per_sample_weights": r(2, 3)},
         {"mode": "sum"}, {"mode": "sum", "padding_idx": 0},
         call=with_offsets("per_sample_weights"))
    each("grid_sample", lambda: {"x": r(1, 1, 2, 3), "grid": r(1, 2, 2, 2)}, {},
         {"align_corners": True}, call=F.grid_sample)


def window_arguments():
    for family in [convolutions, pools, resizing, norms, losses, grids]:
        family()

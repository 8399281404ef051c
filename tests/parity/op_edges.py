"""Corners of ops that have their main cases in op_cases.py."""

import torch.nn.functional as F

from op_case import INF, add, ints, kwargs_named, mask, pos, r, unit


def edges():
    def attend(query, key, value, attn_mask=None, **attrs):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, **attrs)

    q, k = (2, 2, 3, 4), (2, 2, 5, 4)
    seen = mask(3, 5)
    seen[:, 0] = True
    seen[1] = False
    added = r(3, 5)
    added[0, 2] = -INF
    added[1] = -INF
    for blind in [seen, added]:  # the second query sees no key
        add("sdpa", {"q": r(*q), "k": r(*k), "v": r(*k), "m": blind}, attend, constant=("m",))
    add("sdpa", {"q": r(1, 3, 4), "k": r(1, 0, 4), "v": r(1, 0, 2)}, grads=False)
    add("sdpa", {"q": r(2, 4, 3, 4), "k": r(2, 2, 5, 4), "v": r(2, 2, 5, 3)}, enable_gqa=True)
    add("sdpa", {"q": r(4, 3, 4), "k": r(2, 3, 4), "v": r(2, 3, 4)}, enable_gqa=True,
        is_causal=True)
    add("sdpa", {"q": r(3, 3, 4), "k": r(2, 5, 4), "v": r(2, 5, 4)}, enable_gqa=True, error=True)
    add("adaptive_avg_pool1d", r(2, 2, 7), output_size=0, grads=False)
    add("adaptive_avg_pool2d", r(2, 2, 7, 5), output_size=[0, 2], grads=False)
    add("adaptive_avg_pool3d", r(2, 4, 5, 6), output_size=[2, 0, 2], grads=False)
    add("interpolate", r(1, 2, 5), size=3, mode="area")
    add("interpolate", r(1, 2, 4, 5), scale_factor=[0.6, 1.7], mode="area")
    add("interpolate", r(1, 2, 3, 4, 5), size=2, mode="area")
    add("interpolate", r(1, 2, 5), size=3, mode="area", align_corners=True, error=True)
    add("addmm", {"c": ints(3, 2, 2), "x": ints(3, 2, 3), "y": ints(3, 3, 2)}, beta=2, alpha=3)
    add("baddbmm", {"c": ints(3, 2), "x": ints(3, 1, 2, 3), "y": ints(3, 1, 3, 2)}, beta=0,
        alpha=-2)
    add("one_hot", {"i": r(3)}, num_classes=3, error=True)
    add("cross_entropy", {"x": r(2, 5), "target": unit(2, 5)}, ignore_index=1, error=True)
    for op, function in [("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss),
                         ("huber_loss", F.huber_loss)]:
        weighted = kwargs_named("weight")(function, 2)
        for reduction in ["mean", "sum", "none"]:
            add(op, {"x": r(2, 3), "y": r(2, 3), "weight": pos(2, 3)}, weighted,
                reduction=reduction)
        add(op, {"x": r(2, 3), "y": r(2, 3), "weight": pos(3)}, weighted, error=True)

"""Cases of the forms that write over their first operand."""

from op_case import add, f32, ints, pos, r, unit


def in_place():
    def form(op, inputs, **attrs):
        def call(x, *rest, **given):
            return getattr(x.clone(), op)(*rest, **given)
        add(op, inputs, call, **attrs)

    for op in ["neg_", "abs_", "sign_", "square_", "floor_", "ceil_", "round_", "trunc_", "frac_",
               "exp_", "exp2_", "expm1_", "sin_", "cos_", "tan_", "tanh_", "erf_", "erfc_",
               "sigmoid_", "relu_"]:
        form(op, r(2, 3))
    for op in ["log_", "log2_", "log10_", "log1p_", "sqrt_", "rsqrt_", "reciprocal_"]:
        form(op, pos(2, 3))
    form("add_", [r(2, 3), r(3)], alpha=-1.5)
    form("sub_", [r(2, 3), r(3)], alpha=0.5)
    form("sub_", [ints(9, 3), ints(9, 3)], alpha=2)
    form("div_", [r(2, 3, scale=5.0), pos(3)], rounding_mode="floor", grads=False)
    form("div_", [ints(9, 4, low=-8), ints(4, 4, low=1)], rounding_mode="trunc")
    form("pow_", pos(2, 3), exponent=2.5)
    form("pow_", [pos(2, 3), r(3)])
    form("fmod_", r(2, 3, scale=5.0), other=1.5)
    form("remainder_", [r(2, 3, scale=5.0), f32([1.5, -1.5, 2.0])])
    form("floor_divide_", ints(9, 5, low=-8), other=3)
    form("addcmul_", [r(2, 3), r(3), r(2, 1)], value=-0.5)
    form("addcdiv_", [r(2, 3), r(3), pos(2, 1)], value=2.0)
    form("lerp_", [("x", r(2, 3)), ("y", r(3)), ("weight", unit(2, 1))])
    form("lerp_", [r(2, 3), r(3)], weight=0.8)
    form("clamp_min_", r(2, 3), min=0.25)
    form("clamp_max_", r(2, 3), max=0.25)
    form("tril_", r(3, 4), diagonal=1)
    form("triu_", r(2, 3, 3), diagonal=-1)
    form("squeeze_", r(2, 1, 3, 1))
    form("squeeze_", r(2, 1, 3), dim=-2)
    form("unsqueeze_", r(2, 3), dim=1)
    form("transpose_", r(2, 3, 4), dim0=0, dim1=-1)
    form("t_", r(2, 3))

// Elementwise functions of one, two or three tensors, and their in-place forms.
#include <string>

#include "autograd/shape_in_place.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/in_place.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary_rows.h"
#include "ops/elementwise/where.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using OfOne = Tensor (*)(const TensorArg&);
using OfTwo = Tensor (*)(const TensorArg&, const TensorArg&);
using OfScalar = Tensor (*)(const TensorArg&, const Scalar&);
using OfOneWith = Tensor (*)(const Scalar&, const TensorArg&);

constexpr const char* kOther = "other";
constexpr const char* kLeft = "c";

void add_unary(Bindings& table, const Names& names, OfOne fn) {
  table.add(names, [fn](Case& c) { return fn(c.in(0)); });
}

// Binds the rows of the table by name, and their in-place forms on a copy of x, because a leaf
// cannot be written. "inplace" is an argument of activations; their in-place form is another op.
template <class... Row>
void bind_rows(Bindings& table, ops::Rows<Row...> /*rows*/) {
  for (const ops::UnaryFacts& facts : {Row::kFacts...}) {
    table.add(facts.name, [fn = facts.call](Case& c) {
      c.attrs.only("inplace", false);
      return fn(c.in(0));
    });
    if (facts.in_place == nullptr) continue;
    const std::string in_place = std::string(facts.name) + "_";
    table.add(in_place.c_str(), [form = facts.in_place](Case& c) {
      const Tensor y = clone(c.in(0));
      return form(y);
    });
  }
}

// Binds fn(x, y), fn(x, other) and, if `left` is given, left(c, x).
void add_binary(Bindings& table, const Names& names, OfTwo tensors, OfScalar scalar,
                OfOneWith left = nullptr) {
  table.add(names, [=](Case& c) {
    if (left != nullptr && c.num_inputs() == 1 && c.attrs.has(kLeft)) {
      return left(c.attrs.get<Scalar>(kLeft), c.in(0));
    }
    if (c.num_inputs() == 1) return scalar(c.in(0), c.attrs.get<Scalar>({kOther, "value"}));
    return tensors(c.in(0), c.in(1));
  });
}

template <class Options>
Tensor add_or_sub(Case& c, Options options, bool subtracts) {
  const bool is_plain = !c.attrs.read("alpha", options.alpha);
  if (c.num_inputs() > 1) {
    if (is_plain) return subtracts ? sub(c.in(0), c.in(1)) : add(c.in(0), c.in(1));
    return subtracts ? sub(c.in(0), c.in(1), options) : add(c.in(0), c.in(1), options);
  }
  if (c.attrs.has(kLeft) && is_plain) {
    const auto left = c.attrs.get<Scalar>(kLeft);
    return subtracts ? left - c.in(0) : left + c.in(0);
  }
  const auto other = c.attrs.get<Scalar>({kOther, "value"});
  return subtracts ? sub(c.in(0), other, options) : add(c.in(0), other, options);
}

Tensor divide(Case& c) {
  DivOptions options;
  const bool is_plain = !c.attrs.read("rounding_mode", options.rounding_mode);
  if (c.num_inputs() > 1) {
    return is_plain ? div(c.in(0), c.in(1)) : div(c.in(0), c.in(1), options);
  }
  if (c.attrs.has(kLeft) && is_plain) return c.attrs.get<Scalar>(kLeft) / c.in(0);
  const auto other = c.attrs.get<Scalar>({kOther, "value"});
  return is_plain ? div(c.in(0), other) : div(c.in(0), other, options);
}

Tensor power(Case& c) {
  if (c.num_inputs() > 1) return pow(c.in(0), c.in(1));
  if (c.attrs.has({"base", kLeft})) return pow(c.attrs.get<Scalar>({"base", kLeft}), c.in(0));
  return pow(c.in(0), c.attrs.get<Scalar>({"exponent", kOther}));
}

Tensor choose(Case& c) {
  if (c.num_inputs() > 2) return where(c.in(0), c.in(1), c.in(2));
  if (c.attrs.has(kOther)) return where(c.in(0), c.in(1), c.attrs.get<Scalar>(kOther));
  return where(c.in(0), c.attrs.get<Scalar>({"input", "self", "value"}), c.in(1));
}

ClampOptions clamp_options(Case& c) {
  ClampOptions options;
  c.attrs.read("min", options.min);
  c.attrs.read("max", options.max);
  return options;
}

void bind_binary(Bindings& table) {
  table.add("add", [](Case& c) { return add_or_sub(c, AddOptions(), false); });
  table.add({"sub", "rsub"}, [](Case& c) {
    if (c.op() == "sub") return add_or_sub(c, AddOptions(), true);
    return c.num_inputs() > 1 ? sub(c.in(1), c.in(0)) : c.attrs.get<Scalar>(kOther) - c.in(0);
  });
  add_binary(table, "mul", mul, mul, [](const Scalar& a, const TensorArg& b) { return a * b; });
  table.add("div", divide);
  table.add("pow", power);
  add_binary(table, "floor_divide", floor_divide, floor_divide);
  add_binary(table, "fmod", fmod, fmod);
  add_binary(table, "remainder", remainder, remainder);
  add_binary(table, "maximum", maximum, maximum);
  add_binary(table, "minimum", minimum, minimum);
  add_binary(table, "eq", eq, eq);
  add_binary(table, "ne", ne, ne);
  add_binary(table, "lt", lt, lt);
  add_binary(table, "le", le, le);
  add_binary(table, "gt", gt, gt);
  add_binary(table, "ge", ge, ge);
  table.add("logaddexp", [](Case& c) { return logaddexp(c.in(0), c.in(1)); });
  table.add("hypot", [](Case& c) { return hypot(c.in(0), c.in(1)); });
  add_binary(table, "xlogy", xlogy, xlogy);
  table.add({"atan2", "arctan2"}, [](Case& c) { return atan2(c.in(0), c.in(1)); });
  table.add("isclose", [](Case& c) {
    CloseOptions options;
    c.attrs.read("rtol", options.rtol);
    c.attrs.read("atol", options.atol);
    c.attrs.read("equal_nan", options.equal_nan);
    return isclose(c.in(0), c.in(1), options);
  });
  table.add("logical_and", [](Case& c) { return logical_and(c.in(0), c.in(1)); });
  table.add("logical_or", [](Case& c) { return logical_or(c.in(0), c.in(1)); });
  table.add("logical_xor", [](Case& c) { return logical_xor(c.in(0), c.in(1)); });
}

void bind_ternary(Bindings& table) {
  const auto addc = [](Case& c) {
    AddcOptions options;
    c.attrs.read("value", options.value);
    return c.op() == "addcmul" ? addcmul(c.in(0), c.in(1), c.in(2), options)
                               : addcdiv(c.in(0), c.in(1), c.in(2), options);
  };
  table.add({"addcmul", "addcdiv"}, addc);
  table.add("lerp", [](Case& c) {
    if (c.num_inputs() > 2) return lerp(c.in(0), c.in(1), c.in(2));
    return lerp(c.in(0), c.in(1), c.attrs.get<Scalar>("weight"));
  });
  table.add("where", choose);
  table.add({"clamp", "clip"}, [](Case& c) {
    if (c.num_inputs() == 1) return clamp(c.in(0), clamp_options(c));
    return clamp(c.in(0), c.named("min"), c.named("max"));
  });
  table.add("masked_fill", [](Case& c) {
    if (c.num_inputs() > 2) return masked_fill(c.in(0), c.in(1), c.in(2));
    return masked_fill(c.in(0), c.in(1), c.attrs.get<Scalar>("value"));
  });
}

// Runs in place on a copy of x, because a leaf cannot be written.
void bind_shape_in_place(Bindings& table) {
  table.add("squeeze_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return c.attrs.has("dim") ? squeeze_(y, c.attrs.get<int64_t>("dim")) : squeeze_(y);
  });
  table.add("unsqueeze_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return unsqueeze_(y, c.attrs.get<int64_t>("dim"));
  });
  table.add("transpose_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return transpose_(y, c.attrs.get<int64_t>("dim0"), c.attrs.get<int64_t>("dim1"));
  });
  table.add("t_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return t_(y);
  });
}

void bind_in_place(Bindings& table) {
  using Method = const Tensor& (Tensor::*)(const TensorArg&) const;
  using ScalarMethod = const Tensor& (Tensor::*)(const Scalar&, Site) const;
  const auto add_method = [&](const char* name, Method tensor, ScalarMethod scalar) {
    table.add(name, [=](Case& c) {
      const Tensor y = clone(c.in(0));
      if (c.num_inputs() > 1) return (y.*tensor)(c.in(1));
      return (y.*scalar)(c.attrs.get<Scalar>({kOther, "value"}), Site::here());
    });
  };
  add_method("mul_", &Tensor::mul_, &Tensor::mul_);
  using Pair = const Tensor& (*)(const TensorArg&, const TensorArg&);
  using ScalarPair = const Tensor& (*)(const TensorArg&, const Scalar&);
  const auto add_form = [&](const char* name, Pair tensor, ScalarPair scalar) {
    table.add(name, [=](Case& c) {
      const Tensor y = clone(c.in(0));
      if (c.num_inputs() > 1) return tensor(y, c.in(1));
      return scalar(y, c.attrs.get<Scalar>({kOther, "exponent"}));
    });
  };
  add_form("pow_", pow_, pow_);
  add_form("fmod_", fmod_, fmod_);
  add_form("remainder_", remainder_, remainder_);
  add_form("floor_divide_", floor_divide_, floor_divide_);
  table.add({"add_", "sub_"}, [](Case& c) {
    const Tensor y = clone(c.in(0));
    if (c.num_inputs() == 1) {
      const auto other = c.attrs.get<Scalar>({kOther, "value"});
      return c.op() == "add_" ? y.add_(other) : y.sub_(other);
    }
    AddOptions options;
    c.attrs.read("alpha", options.alpha);
    return c.op() == "add_" ? y.add_(c.in(1), options) : sub_(y, c.in(1), options);
  });
  table.add("div_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    DivOptions options;
    c.attrs.read("rounding_mode", options.rounding_mode);
    if (c.num_inputs() > 1) return div_(y, c.in(1), options);
    return div_(y, c.attrs.get<Scalar>({kOther, "value"}), options);
  });
  table.add({"addcmul_", "addcdiv_"}, [](Case& c) {
    const Tensor y = clone(c.in(0));
    AddcOptions options;
    c.attrs.read("value", options.value);
    return c.op() == "addcmul_" ? addcmul_(y, c.in(1), c.in(2), options)
                                : addcdiv_(y, c.in(1), c.in(2), options);
  });
  table.add("lerp_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    if (c.num_inputs() > 2) return lerp_(y, c.in(1), c.in(2));
    return lerp_(y, c.in(1), c.attrs.get<Scalar>("weight"));
  });
  table.add("clamp_min_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return clamp_min_(y, c.attrs.get<Scalar>("min"));
  });
  table.add("clamp_max_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return clamp_max_(y, c.attrs.get<Scalar>("max"));
  });
  table.add({"tril_", "triu_"}, [](Case& c) {
    const Tensor y = clone(c.in(0));
    int64_t diagonal = 0;
    c.attrs.read("diagonal", diagonal);
    return c.op() == "tril_" ? tril_(y, diagonal) : triu_(y, diagonal);
  });
  table.add("copy_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return y.copy_(c.in(1));
  });
  table.add("fill_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return y.fill_(c.attrs.get<Scalar>("value"));
  });
  table.add("zero_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return y.zero_();
  });
  table.add({"clamp_", "clip_"}, [](Case& c) {
    const Tensor y = clone(c.in(0));
    return clamp_(y, clamp_options(c));
  });
  table.add("masked_fill_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    return masked_fill_(y, c.in(1), c.attrs.get<Scalar>("value"));
  });
}

}  // namespace

void bind_pointwise(Bindings& table) {
  bind_rows(table, ops::UnaryRows());
  add_unary(table, "negative", neg);
  add_unary(table, "absolute", abs);
  add_unary(table, "fix", trunc);
  add_unary(table, "arcsin", asin);
  add_unary(table, "arccos", acos);
  add_unary(table, "arctan", atan);
  add_unary(table, "arcsinh", asinh);
  add_unary(table, "arccosh", acosh);
  add_unary(table, "arctanh", atanh);
  add_unary(table, "expit", sigmoid);
  table.add("nan_to_num", [](Case& c) {
    NanToNumOptions options;
    c.attrs.read("nan", options.nan);
    c.attrs.read("posinf", options.posinf);
    c.attrs.read("neginf", options.neginf);
    return nan_to_num(c.in(0), options);
  });
  table.add("round", [](Case& c) {
    RoundOptions options;
    return c.attrs.read("decimals", options.decimals) ? round(c.in(0), options) : round(c.in(0));
  });
  table.add({"cast", "to"},
            [](Case& c) { return cast(c.in(0), c.attrs.dtype().value_or(c.output_dtype())); });
  bind_binary(table);
  bind_ternary(table);
  bind_in_place(table);
  bind_shape_in_place(table);
}

}  // namespace flow::conform

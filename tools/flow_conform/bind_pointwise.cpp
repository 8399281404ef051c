// Elementwise functions of one, two or three tensors, and their in-place forms.
#include <string>

#include "autograd/shape_in_place.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/in_place.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/where.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using OfOne = Tensor (*)(const TensorArg&);

constexpr const char* kOther = "other";
constexpr const char* kLeft = "c";

void add_unary(Bindings& table, const Names& names, OfOne fn) {
  table.add(names, [fn](Case& c) { return fn(c.in(0)); });
}

// Binds a row by name, and its in-place form on a copy of x, because a leaf cannot be written.
// "inplace" is an argument of activations; their in-place form is another op.
void bind_row(Bindings& table, const ops::UnaryFacts& facts) {
  table.add(facts.name, [call = facts.call](Case& c) {
    c.attrs.only("inplace", false);
    return call(c.in(0));
  });
  if (facts.in_place == nullptr) return;
  table.add((facts.name + std::string("_")).c_str(), [form = facts.in_place](Case& c) {
    const Tensor y = clone(c.in(0));
    return form(y);
  });
}

// Binds fn(x, y) and, where they exist, fn(x, other) and fn(c, y).
void bind_row(Bindings& table, const ops::BinaryFacts& facts) {
  if (!facts.call.is_given()) return;  // bound by the row of two tensors
  table.add(facts.name, [facts](Case& c) {
    if (facts.of_number != nullptr && c.num_inputs() == 1 && c.attrs.has(kLeft)) {
      return facts.of_number(c.attrs.get<Scalar>(kLeft), c.in(0));
    }
    if (facts.with_number != nullptr && c.num_inputs() == 1) {
      return facts.with_number(c.in(0), c.attrs.get<Scalar>({kOther, "value"}));
    }
    return facts.call(c.in(0), c.in(1));
  });
  if (facts.in_place == nullptr) return;
  table.add((facts.name + std::string("_")).c_str(), [facts](Case& c) {
    const Tensor y = clone(c.in(0));
    if (c.num_inputs() > 1) return facts.in_place(y, c.in(1));
    return facts.in_place_with_number(y, c.attrs.get<Scalar>({kOther, "exponent"}));
  });
}

// These have arguments of their own.
void bind_row(Bindings& /*table*/, const ops::TernaryFacts& /*facts*/) {}

template <class... Row>
void bind_rows(Bindings& table, ops::Rows<Row...> /*rows*/) {
  (bind_row(table, Row::kFacts), ...);
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
  table.add("div", divide);
  table.add("pow", power);
  table.add("fmax", [](Case& c) { return fmax(c.in(0), c.in(1)); });
  table.add("fmin", [](Case& c) { return fmin(c.in(0), c.in(1)); });
  table.add("nextafter", [](Case& c) { return nextafter(c.in(0), c.in(1)); });
  table.add("igamma", [](Case& c) { return igamma(c.in(0), c.in(1)); });
  table.add("igammac", [](Case& c) { return igammac(c.in(0), c.in(1)); });
  table.add("arctan2", [](Case& c) { return atan2(c.in(0), c.in(1)); });
  table.add("isclose", [](Case& c) {
    CloseOptions options;
    c.attrs.read("rtol", options.rtol);
    c.attrs.read("atol", options.atol);
    c.attrs.read("equal_nan", options.equal_nan);
    return isclose(c.in(0), c.in(1), options);
  });
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
  table.add("clamp_min", [](Case& c) {
    if (c.num_inputs() > 1) return clamp_min(c.in(0), c.in(1));
    return clamp_min(c.in(0), c.attrs.get<Scalar>("min"));
  });
  table.add("clamp_max", [](Case& c) {
    if (c.num_inputs() > 1) return clamp_max(c.in(0), c.in(1));
    return clamp_max(c.in(0), c.attrs.get<Scalar>("max"));
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
  table.add("mul_", [](Case& c) {
    const Tensor y = clone(c.in(0));
    if (c.num_inputs() > 1) return y.mul_(c.in(1));
    return y.mul_(c.attrs.get<Scalar>({kOther, "value"}));
  });
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
  bind_rows(table, ops::TableRows());
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
  add_unary(table, "modified_bessel_i0", modified_bessel_i0);
  add_unary(table, "modified_bessel_i1", modified_bessel_i1);
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

#include "ops/reduce/reduce.h"

#include "ops/reduce/reduce_rows.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// All dims, one dim, and for kernels many columns, many rows and special values.
void add_row(Samples& samples, const ops::ReduceFacts& facts) {
  SampleInput input{
      .low = facts.sample.low, .high = facts.sample.high, .zeros = facts.sample.zeros};
  const auto over = [facts](int64_t dim, bool keepdim) {
    return [=](const Inputs& x) {
      if (facts.over_dims != nullptr) facts.over_dims(x[0], dim, {.keepdim = keepdim});
      if (facts.over_kept != nullptr) facts.over_kept(x[0], dim, {.keepdim = keepdim});
      if (facts.over_dim != nullptr) facts.over_dim(x[0], dim, {.keepdim = keepdim});
    };
  };
  const auto add = [&](const Shape& shape, const std::function<void(const Inputs&)>& call,
                       const char* label) {
    input.shape = shape;
    samples.push_back({facts.name, {input}, kAllDTypes, call, label});
    samples.back().only_kernels = shape.numel() > 100;
    samples.back().is_general = !facts.sample.has_specials;
  };
  const auto whole = [facts](const Inputs& x) { facts.whole(x[0]); };
  add({2, 2}, whole, "");
  add({5, 2, 3}, over(0, false), "dim 0");
  add({5, 2, 3}, over(-1, true), "keepdim");
  add({1000, 70}, over(0, false), "many columns");
  add({1000, 70}, over(1, false), "many rows");
  add({70, 1000}, whole, "many");
  input.has_specials = true;
  add({50, 20}, over(0, false), "specials");
  if (facts.sample.has_specials) {  // layout rules that only hold without them are false
    samples.push_back({facts.name, {specials({5, 2})}, kFloats, over(0, false), "with specials"});
    samples.back().constant_inputs = 1;
  }
  if (facts.gives_bools) {
    samples.push_back(
        {facts.name, {mask({5, 2}, facts.sample.zeros)}, kNoDType, over(0, false), "masks"});
  }
}

template <class... Row>
void add_rows(Samples& samples, ops::Rows<Row...> /*rows*/) {
  (add_row(samples, Row::kFacts), ...);
}

}  // namespace

Samples reduce_samples() {
  Samples samples = {
      {"sum",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         sum(x[0], {0, 2});
       },
       "dims 0, 2"},
      {"mean", {in({5, 2})}, kFloats, [](const Inputs& x) { mean(x[0]); }},
      {"mean",
       {in({5, 2, 3})},
       kFloats,
       [](const Inputs& x) {
         mean(x[0], {-1, 0}, {.keepdim = true});
       },
       "keepdim"},
      {"mean",
       {in({5, 2, 3})},
       kFloats,
       [](const Inputs& x) {
         mean(x[0], {0, 2});
       },
       "dims 0, 2"},
      {.op = "mean",
       .inputs = {in({300, 70})},
       .dtypes = kFloats,
       .call = [](const Inputs& x) { mean(x[0], 0); },
       .label = "many columns",
       .only_kernels = true},
      {"prod", {nonzero({3, 2})}, kAllDTypes, [](const Inputs& x) { prod(x[0]); }, "full"},
      {"prod",
       {sparse({5, 3}, 0.3)},
       kAllDTypes,
       [](const Inputs& x) { prod(x[0], -1, {.keepdim = true}); },
       "zeros"},
      {.op = "mean",
       .inputs = {specials({50, 20})},
       .dtypes = kFloats,
       .call = [](const Inputs& x) { mean(x[0], 1); },
       .label = "specials",
       .only_kernels = true},
      {"sum_to", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { sum_to(x[0], {2}); }},
      {"sum_to",
       {in({3, 5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         sum_to(x[0], {5, 1});
       },
       "1"},
  };
  add_rows(samples, ops::ReduceRows());
  return samples;
}

}  // namespace flow::contract

// The samples of the table of elementwise functions, made from the facts of its rows.
#include <set>
#include <string_view>

#include "ops/elementwise/row_table.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

using Call = std::function<void(const Inputs& x)>;

DTypeSet dtypes_for(ops::Takes takes) {
  switch (takes) {
    case ops::Takes::kNumbers:
    case ops::Takes::kPromotedNumbers:
      return kNumbers;
    case ops::Takes::kFloats:
      return kFloats;
    case ops::Takes::kBits:
      return kIntegers | only(DType::kBool);
    case ops::Takes::kIntegers:
      return kIntegers;
    case ops::Takes::kAll:
    case ops::Takes::kBoolsPromoted:
    case ops::Takes::kPromoted:
      break;
  }
  return kAllDTypes;
}

SampleInput input_for(const ops::RowSample& sample) {
  return {.shape = {5, 2},
          .low = sample.low,
          .high = sample.high,
          .avoid = {sample.avoid, sample.avoid + sample.num_avoided},
          .gap = sample.gap,
          .has_specials = sample.has_specials,
          .zeros = sample.zeros};
}

// Ops that give few different truth values for a number and a few others.
const std::set<std::string_view> kFewPairs = {"eq", "ne", "logical_and", "logical_or"};

// Adds samples of an op of two tensors: the shapes that broadcast, and many elements.
void add_pairs(Samples& samples, const ops::BinaryFacts& facts, DTypeSet dtypes, const Call& call) {
  const char* op = facts.name;
  const SampleInput a = input_for(facts.a);
  const SampleInput b = input_for(facts.b);

  struct Shapes {
    Shape a, b;
    const char* label;
  };

  for (const auto& [a_shape, b_shape, label] : std::vector<Shapes>{
           {{5, 2}, {5, 2}, ""},
           {{5, 2}, {2}, "row"},
           {{5, 1}, {3, 1, 2}, "both repeat"},
           {{5, 2}, {}, "scalar"},
           {{}, {5}, "scalar first"},
           {{3, 7000}, {3, 7000}, "many"},
           {{30, 70}, {70}, "many rows"},
           {{30, 70}, {30, 1}, "many columns"},
           {{1}, {30, 70}, "one and many"},
       }) {
    SampleInput left = a;
    SampleInput right = b;
    left.shape = a_shape;
    right.shape = b_shape;
    samples.push_back({op, {left, right}, dtypes, call, label});
    samples.back().only_kernels = b_shape.numel() > 100 || a_shape.numel() > 100;
    // A rule may hold by chance for the truth values of a few pairs.
    samples.back().constant_inputs = facts.without_slope;
    samples.back().is_general =
        facts.is_general && (!kFewPairs.contains(op) || (!a_shape.empty() && !b_shape.empty()));
  }
  SampleInput left = specials({4, 25});
  SampleInput right = specials({4, 25});
  left.avoid = a.avoid;
  right.avoid = b.avoid;
  samples.push_back({op, {left, right}, dtypes, call, "specials"});
  samples.back().only_kernels = true;
  samples.back().constant_inputs = facts.without_slope;
}

// Adds samples of an op of a tensor and a number.
void add_number(Samples& samples, const char* op, const SampleInput& x, DTypeSet dtypes,
                const Call& call) {
  samples.push_back({op, {x}, dtypes, call});
  SampleInput many = x;
  many.shape = {3, 7000};
  samples.push_back({op, {many}, dtypes, call, "many"});
  samples.back().only_kernels = true;
}

void add_row(Samples& samples, const ops::UnaryFacts& facts) {
  const auto call = [function = facts.call](const Inputs& x) { function(x[0]); };
  add_function(samples, facts.name, input_for(facts.sample), dtypes_for(facts.takes), call);
  if (facts.gives_bools && facts.sample.zeros > 0) {
    samples.push_back({facts.name, {mask({5, 2})}, kNoDType, call, "masks"});
  }
}

void add_row(Samples& samples, const ops::BinaryFacts& facts) {
  const DTypeSet dtypes = dtypes_for(facts.takes);
  if (!facts.call.is_given()) {
    const SampleInput x = input_for(facts.a);
    const int64_t number = facts.number;
    if (facts.with_number != nullptr) {
      add_number(samples, facts.name, x, dtypes,
                 [=, call = facts.with_number](const Inputs& in) { call(in[0], number); });
    } else {
      add_number(samples, facts.name, x, dtypes,
                 [=, call = facts.of_number](const Inputs& in) { call(number, in[0]); });
    }
    return;
  }
  const auto call = [function = facts.call](const Inputs& x) { function(x[0], x[1]); };
  add_pairs(samples, facts, dtypes, call);
  if (facts.gives_bools) {
    samples.push_back({facts.name, {mask({5, 2}), mask({5, 2})}, kNoDType, call, "masks"});
  }
}

// These have options, so their samples are in the file of their family.
void add_row(Samples& /*samples*/, const ops::TernaryFacts& /*facts*/) {}

template <class... Row>
void add_rows(Samples& samples, ops::Rows<Row...> /*rows*/) {
  (add_row(samples, Row::kFacts), ...);
}

}  // namespace

Samples row_samples() {
  Samples samples;
  add_rows(samples, ops::TableRows());
  return samples;
}

}  // namespace flow::contract

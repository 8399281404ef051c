#include "ops/index/index.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

Tensor rows(const Inputs& x) {
  return index(x[0], {x[1]});
}

Tensor blocks(const Inputs& x) {
  return index(x[0], {Slice(), x[1]});
}

// Indexes dims 0 and 2; the indexed dim moves to the front.
Tensor apart(const Inputs& x) {
  return index(x[0], {x[1], Slice(), x[2]});
}

// Adds samples that write values of shape `values` at x[2] of x[0], with and without accumulation.
void add_put(Samples& samples, const Shape& x, const Shape& values,
             const std::vector<SampleInput>& at, const char* label,
             const std::function<void(const Inputs&, const IndexPutOptions&)>& call) {
  for (const bool accumulate : {false, true}) {
    std::vector<SampleInput> inputs = {in(x), in(values)};
    inputs.insert(inputs.end(), at.begin(), at.end());
    samples.push_back({"index_put", inputs, accumulate ? kNumbers : kAllDTypes,
                       [=](const Inputs& in) { call(in, {.accumulate = accumulate}); },
                       std::string(label) + (accumulate ? ", adding" : "")});
  }
}

}  // namespace

Samples index_samples() {
  const std::vector<SampleInput> row = {in({5, 3}), positions({4}, 5)};
  const std::vector<SampleInput> block = {in({2, 5, 3}), positions({2, 4}, 5)};
  const std::vector<SampleInput> pair = {in({5, 2, 4}), positions({3}, 5), positions({3}, 4)};
  Samples samples = {
      {"index", row, kAllDTypes, rows},
      {"index", block, kAllDTypes, blocks, "matrix of positions"},
      {"index", pair, kAllDTypes, apart, "dims apart"},
      {"index",
       {in({2, 5}), positions({4}, 5)},
       kAllDTypes,
       [](const Inputs& x) { index_select(x[0], 1, x[1]); },
       "index_select"},
      {"index",
       {in({5, 3}), {.shape = {4}, .low = -5, .high = -1, .dtype = DType::kInt32}},
       kAllDTypes,
       rows,
       "from the end"},
      {"index", {in({5, 3}), positions({}, 5)}, kAllDTypes, rows, "one position"},
      {"index",
       {in({5, 4, 2}), positions({3, 1}, 5), positions({2}, 4)},
       kAllDTypes,
       [](const Inputs& x) {
         index(x[0], {x[1], x[2]});
       },
       "positions that broadcast"},
      {"unindex", row, kFloats, backward_of(rows)},
      {"unindex", block, kFloats, backward_of(blocks), "matrix of positions"},
      {"unindex", pair, kFloats, backward_of(apart), "dims apart"},
      {"nonzero", {sparse({5, 2}, 0.5)}, kAllDTypes, [](const Inputs& x) { nonzero(x[0]); }},
      {"one_hot", {positions({5, 2}, 4)}, kNoDType, [](const Inputs& x) { one_hot(x[0], 5); }},
  };
  add_put(samples, {5, 3}, {2, 3}, {distinct_positions({2}, 5)}, "rows",
          [](const Inputs& x, const IndexPutOptions& o) { index_put(x[0], {x[2]}, x[1], o); });
  add_put(samples, {2, 5}, {2, 3}, {distinct_positions({3}, 5)}, "columns",
          [](const Inputs& x, const IndexPutOptions& o) {
            index_put(x[0], {Slice(), x[2]}, x[1], o);
          });
  return samples;
}

}  // namespace flow::contract

#include "ops/shape/concat.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// Padding of the last two dims in the three modes, and of the first dim only.
void add_borders(Samples& samples) {
  const auto add = [&](const Shape& shape, const Ints& padding, const char* mode) {
    const auto call = [=](const Inputs& x) { return pad(x[0], padding, {.mode = mode}); };
    const auto run = [=](const Inputs& x) { call(x); };
    const auto backward = backward_of(call);
    samples.push_back({"border", {in(shape)}, kAllDTypes, run, mode});
    samples.push_back({"border_backward", {in(shape)}, kFloats, backward, mode});
    Shape many = shape;
    many[0] = 9;
    many[1] = 41;
    many[2] = 67;
    samples.push_back({"border", {in(many)}, kAllDTypes, run, str("many, ", mode), true});
    samples.push_back(
        {"border_backward", {in(many)}, kFloats, backward, str("many, ", mode), true});
  };
  add({2, 5, 4}, {1, 2, 3, 1}, "reflect");
  add({2, 5, 4}, {1, 2, 3, 1}, "replicate");
  add({2, 5, 4}, {4, 2, 0, 5}, "circular");
  add({2, 5, 4, 3}, {0, 0, 0, 0, 2, 2}, "reflect");
}

}  // namespace

Samples concat_samples() {
  Samples samples = {
      {"cat",
       {in({5, 2}), in({3, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         cat({x[0], x[1]});
       }},
      {"cat",
       {in({5, 2}), in({5, 1}), in({5, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         cat({x[0], x[1], x[2]}, -1);
       },
       "three"},
      {"cat",
       {in({5, 2}), in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         stack({x[0], x[1]}, 1);
       },
       "stack"},
      {"cat", {in({3})}, kAllDTypes, [](const Inputs& x) { roll(x[0], -1); }, "roll back"},
      {"flip", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { flip(x[0], 0); }},
      {"flip",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         flip(x[0], {0, 1});
       },
       "both"},
      {"cat", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { roll(x[0], 2, 0); }, "roll"},
      {"pad",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {1, 2});
       }},
      {"pad",
       {in({5, 2, 3})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {0, 0, 1, 0}, {.value = 1});
       },
       "with 1"},
      {"pad",
       {in({5, 4})},
       kAllDTypes,
       [](const Inputs& x) {
         pad(x[0], {-1, 2, 1, -2}, {.value = -1});
       },
       "crops"},
      {"tril", {in({5, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0]); }},
      {"tril", {in({3, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0], 9); }, "everything"},
      {"tril", {in({2, 5, 4})}, kAllDTypes, [](const Inputs& x) { tril(x[0], -1); }, "below"},
      {"triu", {in({5, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0]); }},
      {"triu", {in({2, 5, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0], 1); }, "above"},
  };
  // Every signature holds for tensors without elements, or with zeros only.
  for (OpSample& sample : Samples{
           {"cat",
            {in({0, 2}), in({5, 2})},
            kAllDTypes,
            [](const Inputs& x) {
              cat({x[0], x[1]}, -2);
            },
            "an empty one"},
           {"triu", {in({3, 4})}, kAllDTypes, [](const Inputs& x) { triu(x[0], 9); }, "nothing"},
       }) {
    sample.is_general = false;
    samples.push_back(std::move(sample));
  }
  add_borders(samples);
  return samples;
}

}  // namespace flow::contract

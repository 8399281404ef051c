#include "ops/elementwise/bitwise.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples bitwise_samples() {
  constexpr DTypeSet kBits = kIntegers | only(DType::kBool);
  using Pair = Tensor (*)(const TensorArg& a, const TensorArg& b);
  Samples samples;
  for (const auto& [op, function] :
       std::vector<std::pair<std::string, Pair>>{{"bitwise_and", bitwise_and},
                                                 {"bitwise_or", bitwise_or},
                                                 {"bitwise_xor", bitwise_xor}}) {
    const auto call = [function = function](const Inputs& x) { function(x[0], x[1]); };
    samples.push_back({op, {in({5, 2}), in({2})}, kBits, call});
    samples.push_back({op, {in({3, 7000}), in({3, 1})}, kBits, call, "many", true});
  }
  samples.push_back(
      {"bitwise_not", {in({5, 2})}, kBits, [](const Inputs& x) { bitwise_not(x[0]); }});
  samples.push_back({"bitwise_left_shift", {in({5, 2}), in({2})}, kIntegers, [](const Inputs& x) {
                       bitwise_left_shift(x[0], x[1]);
                     }});
  samples.push_back({"bitwise_right_shift", {in({5, 2}), in({2})}, kIntegers, [](const Inputs& x) {
                       bitwise_right_shift(x[0], x[1]);
                     }});
  return samples;
}

}  // namespace flow::contract

#include "ops/loss/partial_fc.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples partial_fc_samples() {
  Samples samples;
  const auto add = [&](int64_t classes, int64_t num_sample, int64_t parts, const char* label) {
    const std::vector<SampleInput> inputs{in({classes, 2}), positions({2}, classes)};
    const auto call = [=](const Inputs& x) {
      return distributed_partial_fc_sample(x[0], x[1], num_sample, {.num_parts = parts})
          .sampled_weight;
    };
    const std::string name = std::string("sampled, ") + label;
    samples.push_back({"distributed_partial_fc_sample", inputs, kFloats, call, label});
    samples.push_back({"embedding", inputs, kFloats, call, name});
    samples.push_back({"embedding_backward", inputs, kFloats, backward_of(call), name});
  };
  add(13, 5, 1, "whole");
  add(13, 5, 2, "two uneven parts");
  add(13, 7, 3, "three uneven parts");
  add(24, 12, 6, "more parts than ranks");
  return samples;
}

}  // namespace flow::contract

#include "ops/index/embedding.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples embedding_samples() {
  const std::vector<SampleInput> tokens = {positions({2, 4}, 5), in({5, 3})};
  const auto plain = [](const Inputs& x) { return embedding(x[0], x[1]); };
  const auto padded = [](const Inputs& x) { return embedding(x[0], x[1], {.padding_idx = -4}); };
  Samples samples = {
      {"embedding", tokens, kAllDTypes, plain},
      {"embedding", {positions({5}, 5, DType::kInt32), in({5, 2})}, kAllDTypes, padded, "padding"},
      {"embedding", {positions({}, 5), in({5, 2})}, kAllDTypes, plain, "one index"},
      {"embedding_backward", tokens, kFloats, backward_of(plain)},
      {"embedding_backward",
       {positions({}, 5), in({5, 2})},
       kFloats,
       backward_of(plain),
       "one index"},
      {"embedding_backward", tokens, kFloats, backward_of(padded), "padding"},
  };
  samples[1].constant_inputs = 0b10;  // the padding row never gets a gradient
  const std::vector<SampleInput> many = {positions({40, 10}, 70), in({70, 60})};
  samples.push_back({"embedding", many, kAllDTypes, plain, "many"});
  samples.back().only_kernels = true;
  samples.push_back({"embedding_backward", many, kFloats, backward_of(plain), "many"});
  samples.back().only_kernels = true;
  return samples;
}

}  // namespace flow::contract

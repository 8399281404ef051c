#include "tests/support/contract_fixture.h"

#include <algorithm>

#include "core/context.h"
#include "core/dispatch.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/creation/creation.h"
#include "ops/vendor/onednn.h"

namespace flow::contract {

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDef* op : op_table().all())
    names.emplace_back(op->name);
  return names;
}

const OpDef& ContractTest::op() const {
  return *op_table().find(GetParam());
}

std::vector<const OpSample*> ContractTest::small_samples() const {
  std::vector<const OpSample*> samples = samples_of(GetParam());
  std::erase_if(samples, [](const OpSample* sample) { return sample->only_kernels; });
  return samples;
}

std::string op_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

Inputs copies_of(const Inputs& inputs) {
  Inputs copies;
  for (const Tensor& input : inputs) {
    copies.push_back(input.defined() ? make_guarded(input.meta_ptr(), read_values(input))
                                     : Tensor());
  }
  return copies;
}

Inputs blocked_copies_of(const Inputs& inputs) {
  Inputs copies = copies_of(inputs);
  bool is_any_blocked = false;
  if (!ops::has_onednn()) return {};
  for (Tensor& copy : copies) {
    if (!copy.defined() || copy.dim() != 4 || copy.dtype() != float32 || copy.numel() == 0)
      continue;
    // A depthwise convolution by one keeps the values and lets oneDNN choose the layout.
    copy = conv2d(copy, ones({copy.size(1), 1, 1, 1}), {.groups = copy.size(1)});
    is_any_blocked |= copy.meta().blocked != nullptr;
  }
  return is_any_blocked ? copies : Inputs();
}

bool decides_layout(const RawCall& call) {
  const auto specs = infer_outputs(call, metas_of(call.inputs));
  return std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const Tensor& input) { return input.defined() && input.is_global(); }) ||
         std::any_of(specs.begin(), specs.end(),
                     [](const OutputSpec& spec) { return spec.has_layout; });
}

}  // namespace flow::contract

#include "tools/flow_ops/op_facts.h"

#include <string>
#include <vector>

#include "core/dtype.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"
#include "tests/support/sbp_search.h"
#include "tools/flow_ops/without_cuda.h"

namespace flow::tools {

namespace {

using Json = nlohmann::json;

// The signatures hold for two ranks or more.
constexpr int64_t kNumRanks = 2;

struct Layouts {
  std::string call;  // what the signatures are for
  std::vector<SbpSignature> signatures;
};

// For example "(5, 2), (2, 3)".
std::string shapes_of(const contract::RawCall& call) {
  std::string text;
  for (const Tensor& input : call.inputs) {
    if (!text.empty()) text += ", ";
    text += input.defined() ? str(input.shape()) : "none";
  }
  return text;
}

// The sample whose call has the most signatures, so that the page shows what the op can do. Samples
// of special values and of large sizes say nothing more.
Layouts layouts_of(const OpDef& op) {
  Layouts best;
  for (const contract::OpSample* sample : contract::samples_of(op.name)) {
    if (sample->only_kernels || !sample->is_general || !sample->has_values) continue;
    const contract::RawCall call = capture_first(*sample, widest_dtype(*sample), 1);
    if (call.inputs.empty()) continue;  // creation ops make any layout
    std::vector<SbpSignature> signatures = contract::signatures_of(call, kNumRanks);
    if (signatures.size() <= best.signatures.size()) continue;
    best = {shapes_of(call), std::move(signatures)};
    if (!sample->label.empty()) best.call += "; " + sample->label;
  }
  return best;
}

std::vector<std::string> dtypes_of(const OpDef& op) {
  contract::DTypeSet dtypes = contract::kNoDType;
  for (const contract::OpSample* sample : contract::samples_of(op.name))
    dtypes |= sample->dtypes;
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if ((dtypes >> bit & 1U) != 0) names.emplace_back(dtype_name(static_cast<DType>(bit)));
  }
  return names;
}

std::string on_cuda(const OpDef& op) {
  const auto found = kOpsWithoutCuda.find(op.name);
  if (found == kOpsWithoutCuda.end()) return "kernel";
  return found->second == OnCuda::kOtherOps ? "other ops" : "unsupported";
}

std::string gradient_of(const OpDef& op) {
  if (op.grad == not_differentiable) return "no";
  if (op.grad == not_twice_differentiable) return "once";
  return "yes";
}

}  // namespace

Json facts_of(const OpDef& op) {
  const Layouts layouts = layouts_of(op);
  Json signatures = Json::array();
  for (const SbpSignature& signature : layouts.signatures)
    signatures.push_back(
        {{"text", contract::to_string(signature)}, {"is_positional", signature.is_positional}});
  return {{"dtypes", dtypes_of(op)},
          {"call", layouts.call},
          {"signatures", signatures},
          {"on_cuda", on_cuda(op)},
          {"gradient", gradient_of(op)},
          {"is_view", op.view != nullptr},
          {"is_random", op.is_random},
          {"has_data_dependent_shape", op.has_data_dependent_shape},
          {"takes_batch_statistics", op.micro_batch.takes_sums || op.micro_batch.makes_sums},
          {"writes_its_inputs", op.mutates != 0}};
}

}  // namespace flow::tools

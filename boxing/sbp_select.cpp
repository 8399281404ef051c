#include "boxing/sbp_select.h"

namespace flow::boxing {

namespace {

std::string describe_input(std::span<const MetaPtr> inputs, size_t i) {
  return str("input ", i, " is ", *inputs[i], inputs[i]->is_global() ? "" : " (local)");
}

// The first given input; all others must agree with it on device, locality and placement.
const TensorMeta* common_input(const OpDef& op, std::span<const MetaPtr> inputs) {
  size_t first = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    if (first == inputs.size()) first = i;
    const TensorMeta& a = *inputs[first];
    const TensorMeta& b = *inputs[i];
    const char* what = a.is_global() != b.is_global() ? "local and global tensors are mixed"
                       : a.placement != b.placement   ? "inputs lie on different placements"
                       : a.device != b.device         ? "inputs lie on different devices"
                                                      : nullptr;
    if (what == nullptr) continue;
    throw InvalidArgument(str("[", op.name, "] ", what, "; ", describe_input(inputs, first), ", ",
                              describe_input(inputs, i),
                              a.device != b.device && !a.is_global()
                                  ? "; move one with to(device)"
                                  : "; move one with to_global({.placement, .sbp}) or to_local()"));
  }
  return first == inputs.size() ? nullptr : inputs[first];
}

MetaPtr own_layout(const OutputSpec& spec, int64_t rank) {
  if (!spec.placement.defined()) return local_meta(spec.shape, spec.dtype, spec.device);
  return global_meta(spec.shape, spec.dtype, spec.placement, spec.nd_sbp, rank);
}

}  // namespace

void choose_layouts(const OpDef& op, std::span<const MetaPtr> inputs, const void* /*attrs*/,
                    std::span<const OutputSpec> outputs, uint32_t /*mutates*/, int64_t rank,
                    Decision& out) {
  out.op = &op;
  out.inputs.assign(inputs.size(), Decision::InputLayout{});
  out.outputs.clear();
  out.redistributes = false;
  const TensorMeta* common = common_input(op, inputs);
  for (const OutputSpec& spec : outputs) {
    if (spec.has_layout || common == nullptr) {
      out.outputs.push_back(own_layout(spec, rank));
    } else if (common->is_global()) {
      throw Unsupported(
          str("[", op.name, "] global tensors are not taken yet; received ", *common));
    } else {
      out.outputs.push_back(local_meta(spec.shape, spec.dtype, common->device));
    }
  }
}

}  // namespace flow::boxing

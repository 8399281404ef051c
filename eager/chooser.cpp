#include "eager/chooser.h"

#include <bit>

#include "boxing/sbp_select.h"
#include "core/env.h"
#include "core/op.h"

namespace flow::eager {

namespace {

// A written tensor keeps its shape and dtype, and each of its elements needs separate memory.
void check_mutation(const Call& call, size_t input, const OutputSpec& result) {
  const TensorMeta& target = call.input(input).meta();
  if (!(result.shape == target.shape) || result.dtype != target.dtype) {
    throw InvalidArgument(str("[", in_place_name(call.op),
                              "] the result does not fit in place; received a result of ",
                              result.shape, " ", result.dtype, " for the tensor ", target,
                              "; use the form without underscore"));
  }
  for (int64_t i = 0; i < target.strides.size(); ++i) {
    if (target.strides[i] == 0 && target.local_shape[i] > 1) {
      throw InvalidArgument(str("[", in_place_name(call.op),
                                "] several elements of the written tensor share memory "
                                "because it was expanded; received ",
                                target, "; clone() it first"));
    }
  }
}

// Returns the device of the inputs. Tensors without dims in host memory are numbers, which may be
// combined with any device.
DeviceType device_of(const Call& call, const OpContext& ctx, DeviceType fallback) {
  const TensorMeta* first = nullptr;
  bool is_first_number = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.input(i).defined()) continue;
    const TensorMeta& meta = call.input(i).meta();
    const bool is_written = i < 32 && (call.mutates >> i & 1) != 0;
    const bool is_number = meta.device == DeviceType::kCpu && meta.dim() == 0 && !is_written;
    if (first != nullptr && first->device != meta.device && !is_first_number && !is_number) {
      ctx.fail(str("tensors are on different devices, ", first->device, " and ", meta.device,
                   "; move them to one with to(device)"));
    }
    if (first != nullptr && (is_number || !is_first_number)) continue;
    first = &meta;
    is_first_number = is_number;
  }
  return first == nullptr ? fallback : first->device;
}

}  // namespace

void decide(const Call& call, int64_t rank, Decision& decision) {
  std::vector<MetaPtr> inputs;
  bool is_global = false;
  for (const Tensor* input : call.inputs) {
    inputs.push_back(input->defined() ? input->meta_ptr() : nullptr);
    is_global |= input->defined() && input->meta_ptr()->is_global();
  }
  InferContext infer(call.op, inputs, call.attrs);
  infer.check(
      call.op.num_inputs == kVariadic || inputs.size() == static_cast<size_t>(call.op.num_inputs),
      "the op has ", call.op.num_inputs, " inputs, and the caller gives ", inputs.size(),
      "; give an undefined Tensor() for one that is left out");
  call.op.infer(infer);
  const auto outputs = infer.outputs();
  infer.check(
      call.op.num_outputs == kVariadic || static_cast<int>(outputs.size()) == call.op.num_outputs,
      "the op's infer rule adds ", outputs.size(), " outputs, and its num_outputs is ",
      call.op.num_outputs);
  size_t next = 0;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1, ++next) {
    const auto input = static_cast<size_t>(std::countr_zero(left));
    infer.check(infer.has_input(static_cast<int>(input)),
                "the tensor to write is undefined; pass a defined one");
    check_mutation(call, input, outputs[next]);
  }
  decision.op = &call.op;
  for (const OutputSpec& output : outputs)
    is_global |= output.placement.defined();
  if (is_global) {
    boxing::choose_layouts(call.op, inputs, call.attrs, outputs, call.mutates, rank, decision);
    // Asked without outputs, the rule returns whether it moves less than the best signature does.
    if (decision.redistributes && call.op.decompose != nullptr && call.mutates == 0) {
      const SbpContext sbp(call.op, inputs, call.attrs, outputs);
      decision.decomposes = call.op.decompose({call.inputs, call.attrs, call.site}, sbp, nullptr);
    }
    if (call.op.view != nullptr) {
      decision.links_view = boxing::copies_view(decision, *inputs[0], call.attrs);
    }
    return;
  }
  decision.inputs.resize(inputs.size());
  for (const OutputSpec& output : outputs) {
    const DeviceType device =
        output.has_layout ? output.device : device_of(call, infer, output.device);
    decision.outputs.push_back(local_meta(output.shape, output.dtype, device));
  }
}

CachingChooser::CachingChooser() : checks_hits_(env_flag("FLOW_CHECK")) {}

const Decision& CachingChooser::choose(const Call& call) {
  const CachedDecision* known = cache_.find(call);
  if (known != nullptr && !checks_hits_) [[likely]]
    return *known;
  auto decision = std::make_unique<CachedDecision>();
  decide(call, thread_state().context->rank(), *decision);
  if (known == nullptr) return cache_.insert(call, std::move(decision));
  FLOW_ASSERT(static_cast<const Decision&>(*known) == static_cast<const Decision&>(*decision),
              "cached decision ", to_string(*known), " differs from ", to_string(*decision));
  return *known;
}

DecisionCache& decision_cache() {
  return static_cast<CachingChooser*>(thread_state().chooser)->cache();
}

}  // namespace flow::eager

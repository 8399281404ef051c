#include "boxing/signature_score.h"

#include <algorithm>

#include "boxing/plan.h"

namespace flow::boxing {

namespace {

int64_t part_bytes(const Shape& shape, DType dtype, const Placement& placement,
                   const NdSbp& nd_sbp) {
  return box_of(shape, placement, nd_sbp, 0).size.numel() * static_cast<int64_t>(dtype_size(dtype));
}

// How the gradient of an input arrives that an op uses in layout `used`, when it lay in `given`:
// where ranks were given the whole of what is cut, as the terms of a sum.
NdSbp arriving_gradient(const NdSbp& given, const NdSbp& used) {
  NdSbp result = used;
  for (int64_t axis = 0; axis < used.size(); ++axis) {
    if (used[axis].is_split()) continue;
    const bool is_sum = used[axis].is_broadcast() && given[axis].is_split();
    result = result.with(axis, is_sum ? sbp::partial_sum : sbp::broadcast);
  }
  return result;
}

// Whether every rank takes what it needs out of what it has, and the work stays as it is cut.
bool is_local(const NdSbp& from, const NdSbp& to) {
  for (int64_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (!from[axis].is_broadcast()) return false;
    // A cut outside of another of the same dim moves the parts of that one.
    for (int64_t inner = axis + 1; inner < from.size(); ++inner) {
      if (to[axis].is_split() && from[inner] == to[axis]) return false;
    }
  }
  return true;
}

bool any_split(const std::vector<NdSbp>& layouts, int64_t axis) {
  return std::any_of(layouts.begin(), layouts.end(),
                     [&](const NdSbp& nd_sbp) { return nd_sbp[axis].is_split(); });
}

// Whether a result is cut along an axis on which every rank has all inputs whole.
bool cuts_what_is_whole(const NdSignature& signature, const Placement& placement) {
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (any_split(signature.outputs, axis) && !any_split(signature.inputs, axis)) return true;
  }
  return false;
}

template <class Known, class Compute>
double remembered(Known& known, const NdSbp& nd_sbp, const Compute& compute) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const auto& entry) { return entry.first == nd_sbp; });
  if (found != known.end()) return found->second;
  return known.emplace_back(nd_sbp, compute()).second;
}

}  // namespace

SignatureScorer::SignatureScorer(const OpDef& op, std::span<const MetaPtr> inputs,
                                 const void* attrs, std::span<const OutputSpec> outputs,
                                 const Placement& placement)
    : op_(op),
      inputs_(inputs),
      outputs_(outputs),
      placement_(placement),
      flops_(op.cost == nullptr ? 0 : op.cost(SbpContext(op, inputs, attrs, outputs)).flops),
      known_moves_(inputs.size()),
      known_uses_(outputs.size()) {
  const auto given =
      std::count_if(inputs.begin(), inputs.end(), [](MetaPtr input) { return input != nullptr; });
  may_defer_ = given > 1 && std::any_of(inputs.begin(), inputs.end(), [](MetaPtr input) {
                 return input != nullptr && input->nd_sbp.has_partial();
               });
}

Reach SignatureScorer::reach(const NdSignature& signature) const {
  if (may_defer_) return Reach::kMoves;
  bool fits = !cuts_what_is_whole(signature, placement_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr || inputs_[i]->nd_sbp == signature.inputs[i]) continue;
    if (!is_local(inputs_[i]->nd_sbp, signature.inputs[i])) return Reach::kMoves;
    fits = false;
  }
  return fits ? Reach::kFits : Reach::kLocal;
}

Score SignatureScorer::score(const NdSignature& signature) {
  Score score;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr || inputs_[i]->nd_sbp == signature.inputs[i]) continue;
    const TensorMeta& meta = *inputs_[i];
    score.time_us += move_time(i, signature.inputs[i]);
    ++score.moved;
    score.bytes += part_bytes(meta.shape, meta.dtype, placement_, signature.inputs[i]);
  }
  score.time_us += work_time(signature);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    score.time_us += use_time(i, signature.outputs[i]);
    score.bytes +=
        part_bytes(outputs_[i].shape, outputs_[i].dtype, placement_, signature.outputs[i]);
  }
  return score;
}

double SignatureScorer::move_time(size_t input, const NdSbp& wanted) {
  return remembered(known_moves_[input], wanted, [&] {
    const TensorMeta& meta = *inputs_[input];
    const auto time = [&](const NdSbp& from, const NdSbp& to) {
      return plan_redistribution(meta.shape, meta.dtype, {placement_, from}, {placement_, to})
          .time_us();
    };
    const double there = time(meta.nd_sbp, wanted);
    if (!is_floating(meta.dtype) || op_.grad == not_differentiable) return there;
    return there + time(arriving_gradient(meta.nd_sbp, wanted), without_partial(meta.nd_sbp));
  });
}

double SignatureScorer::use_time(size_t output, const NdSbp& nd_sbp) {
  return remembered(known_uses_[output], nd_sbp, [&] {
    const OutputSpec& spec = outputs_[output];
    double time_us = 0;
    for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
      if (nd_sbp[axis].is_broadcast()) continue;
      const Plan plan = plan_redistribution(spec.shape, spec.dtype, {placement_, nd_sbp},
                                            {placement_, nd_sbp.with(axis, sbp::broadcast)});
      time_us += plan.time_us() *
                 (nd_sbp[axis].is_partial() ? cost_table().partial_use : cost_table().cut_use);
    }
    return time_us;
  });
}

// The arithmetic is divided along the axes that cut an operand or a result.
double SignatureScorer::work_time(const NdSignature& signature) const {
  double parts = 1;
  for (int64_t axis = 0; axis < placement_.num_axes(); ++axis) {
    if (any_split(signature.inputs, axis) || any_split(signature.outputs, axis)) {
      parts *= static_cast<double>(placement_.shape()[axis]);
    }
  }
  return flops_ / parts / cost_table().flops_per_us;
}

}  // namespace flow::boxing

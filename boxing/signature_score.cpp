#include "boxing/signature_score.h"

#include <algorithm>

#include "boxing/planner.h"

namespace flow::boxing {

namespace {

// Sums of the same terms in a different order differ by less than this.
constexpr double kRounding = 1 - 1e-9;

int64_t part_bytes(const Shape& shape, DType dtype, const Placement& placement,
                   const NdSbp& nd_sbp) {
  return box_of(shape, placement, nd_sbp, 0).size.numel() * static_cast<int64_t>(dtype_size(dtype));
}

// The layout in which the gradient of an input arrives that had layout `given` and that the op uses
// in layout `used`. Along an axis on which the input was split and the op uses the whole, the
// gradient is partial.
NdSbp arriving_gradient(const NdSbp& given, const NdSbp& used) {
  NdSbp result = used;
  for (int64_t axis = 0; axis < used.size(); ++axis) {
    if (used[axis].is_split()) continue;
    const bool is_sum = used[axis].is_broadcast() && given[axis].is_split();
    result = result.with(axis, is_sum ? sbp::partial_sum : sbp::broadcast);
  }
  return result;
}

// True if only broadcast entries change, so that every rank already holds the data that it needs.
bool is_local(const NdSbp& from, const NdSbp& to) {
  for (int64_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (!from[axis].is_broadcast()) return false;
    // An outer split of a dim moves the parts of an inner split of the same dim.
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

// True if a result is split along an axis on which every rank holds all inputs whole.
bool cuts_what_is_whole(const NdSignature& signature, const Placement& placement) {
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (any_split(signature.outputs, axis) && !any_split(signature.inputs, axis)) return true;
  }
  return false;
}

uint64_t key_of(const NdSbp& from, const NdSbp& to) {
  uint64_t key = 0;
  for (const NdSbp* nd_sbp : {&from, &to}) {
    for (const Sbp entry : *nd_sbp) {
      const auto kind = static_cast<uint64_t>(entry.kind());
      key = key << 8 | kind << 4 | static_cast<uint64_t>(entry.dim());
    }
  }
  return key;
}

}  // namespace

SignatureScorer::SignatureScorer(const OpDef& op, std::span<const MetaPtr> inputs,
                                 const void* attrs, std::span<const OutputSpec> outputs,
                                 const Placement& placement)
    : op_(op),
      inputs_(inputs),
      outputs_(outputs),
      placement_(placement),
      flops_(op.cost == nullptr ? 0 : op.cost(SbpContext(op, inputs, attrs, outputs)).flops) {
  const auto given =
      std::count_if(inputs.begin(), inputs.end(), [](MetaPtr input) { return input != nullptr; });
  may_defer_ = given > 1 && std::any_of(inputs.begin(), inputs.end(), [](MetaPtr input) {
                 return input != nullptr && input->nd_sbp.has_partial();
               });
  for (const MetaPtr input : inputs)
    input_routes_.push_back(input == nullptr ? 0 : routes_of(input->shape, input->dtype));
  for (const OutputSpec& output : outputs)
    output_routes_.push_back(routes_of(output.shape, output.dtype));
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

double SignatureScorer::least_us(const NdSignature& signature) {
  double least = work_time(signature);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr || inputs_[i]->nd_sbp == signature.inputs[i]) continue;
    least += move_time(i, signature.inputs[i], Precision::kLeast);
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    least += use_time(i, signature.outputs[i], Precision::kLeast);
  return least * kRounding;
}

std::optional<Score> SignatureScorer::score(const NdSignature& signature, double limit_us) {
  Score score;
  double left = least_us(signature);
  const auto is_above = [&] { return (score.time_us + left) * kRounding > limit_us; };
  if (is_above()) return std::nullopt;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr || inputs_[i]->nd_sbp == signature.inputs[i]) continue;
    const TensorMeta& meta = *inputs_[i];
    score.time_us += move_time(i, signature.inputs[i], Precision::kRouted);
    left -= move_time(i, signature.inputs[i], Precision::kLeast);
    if (is_above()) return std::nullopt;
    ++score.moved;
    score.bytes += part_bytes(meta.shape, meta.dtype, placement_, signature.inputs[i]);
  }
  const double work_us = work_time(signature);
  score.time_us += work_us;
  left -= work_us;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    score.time_us += use_time(i, signature.outputs[i], Precision::kRouted);
    left -= use_time(i, signature.outputs[i], Precision::kLeast);
    if (is_above()) return std::nullopt;
    score.bytes +=
        part_bytes(outputs_[i].shape, outputs_[i].dtype, placement_, signature.outputs[i]);
  }
  return score;
}

size_t SignatureScorer::routes_of(const Shape& shape, DType dtype) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].shape == shape && routes_[i].dtype == dtype) return i;
  }
  routes_.push_back({.shape = shape, .dtype = dtype});
  return routes_.size() - 1;
}

double SignatureScorer::route_time(size_t routes, const NdSbp& from, const NdSbp& to,
                                   Precision precision) {
  Routes& r = routes_[routes];
  const bool is_routed = precision == Precision::kRouted;
  auto& known = is_routed ? r.predicted_us : r.least_us;
  const auto [entry, is_new] = known.try_emplace(key_of(from, to), 0.0);
  if (!is_new) return entry->second;
  const Layout a{placement_, from};
  const Layout b{placement_, to};
  return entry->second = is_routed ? find_route(r.shape, r.dtype, a, b).time_us()
                                   : least_time_us(r.shape, r.dtype, a, b);
}

double SignatureScorer::move_time(size_t input, const NdSbp& wanted, Precision precision) {
  const TensorMeta& meta = *inputs_[input];
  const size_t routes = input_routes_[input];
  const double there = route_time(routes, meta.nd_sbp, wanted, precision);
  if (!is_floating(meta.dtype) || op_.grad == not_differentiable) return there;
  return there + route_time(routes, arriving_gradient(meta.nd_sbp, wanted),
                            without_partial(meta.nd_sbp), precision);
}

double SignatureScorer::use_time(size_t output, const NdSbp& nd_sbp, Precision precision) {
  const CostTable& cost = cost_table();
  double time_us = 0;
  for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
    if (nd_sbp[axis].is_broadcast()) continue;
    time_us +=
        route_time(output_routes_[output], nd_sbp, nd_sbp.with(axis, sbp::broadcast), precision) *
        (nd_sbp[axis].is_partial() ? cost.partial_use : cost.cut_use);
  }
  return time_us;
}

// The arithmetic is divided along the axes that split an operand or a result.
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

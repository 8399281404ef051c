#include "boxing/sbp_select.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "boxing/signature_score.h"
#include "core/context.h"
#include "core/log.h"
#include "core/op.h"

namespace flow::boxing {

namespace {

std::string describe_input(std::span<const MetaPtr> inputs, size_t i) {
  return str("input ", i, " is ", *inputs[i], inputs[i]->is_global() ? "" : " (local)");
}

// The first input that is given; all others must have the same device, locality and placement.
const TensorMeta* common_input(const OpDef& op, std::span<const MetaPtr> inputs) {
  size_t first = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    if (first == inputs.size()) first = i;
    const TensorMeta& a = *inputs[first];
    const TensorMeta& b = *inputs[i];
    const char* what = a.is_global() != b.is_global() ? "local and global tensors are mixed"
                       : a.placement != b.placement   ? "inputs have different placements"
                       : a.device != b.device         ? "inputs are on different devices"
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

MetaPtr own_layout(const OpDef& op, const OutputSpec& spec, int64_t rank) {
  if (!spec.placement.defined()) return local_meta(spec.shape, spec.dtype, spec.device);
  check_layout({spec.placement, spec.nd_sbp}, spec.shape, thread_state().context->world_size(),
               op.name);
  return global_meta(spec.shape, spec.dtype, spec.placement, spec.nd_sbp, rank);
}

// ---------------------------------------------------------------- expansion over the axes

std::string layouts_text(const std::vector<Sbp>& layouts) {
  std::string text;
  for (const Sbp sbp : layouts)
    text += str(text.empty() ? "" : ", ", sbp);
  return text;
}

// A rule of a user's op may be wrong: it must name a layout for each tensor, of a dim that exists.
void check_signature(const SbpContext& ctx, const SbpSignature& signature) {
  const auto fits = [](Sbp sbp, int64_t num_dims) {
    return !sbp.is_split() || sbp.dim() < num_dims;
  };
  bool is_fitting = signature.inputs.size() == ctx.inputs().size() &&
                    signature.outputs.size() == static_cast<size_t>(ctx.num_outputs());
  for (int i = 0; is_fitting && i < ctx.num_inputs(); ++i) {
    const Sbp sbp = signature.inputs[static_cast<size_t>(i)];
    is_fitting = ctx.has_input(i) ? fits(sbp, ctx.input(i).dim()) : sbp == sbp::broadcast;
  }
  for (int i = 0; is_fitting && i < ctx.num_outputs(); ++i)
    is_fitting = fits(signature.outputs[static_cast<size_t>(i)], ctx.output(i).shape.size());
  ctx.check(
      is_fitting, "the op's sbp rule adds the signature ", layouts_text(signature.inputs), " -> ",
      layouts_text(signature.outputs), ", which does not fit ", ctx.num_inputs(), " inputs and ",
      ctx.num_outputs(),
      " outputs; it has one layout for each, of a dim that exists, and B for an input that is "
      "not given");
}

class Expansion {
 public:
  Expansion(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
            std::span<const OutputSpec> outputs, const Placement& placement)
      : op_(op), inputs_(inputs), attrs_(attrs), outputs_(outputs), placement_(placement) {
    current_.inputs.resize(inputs.size());
    current_.outputs.resize(outputs.size());
  }

  std::vector<NdSignature> run() {
    expand(0);
    return std::move(result_);
  }

 private:
  void expand(int64_t axis) {
    if (axis == placement_.num_axes()) {
      if (!mixes_extrema()) result_.push_back(current_);
      return;
    }
    for (const SbpSignature& signature : signatures_at(axis)) {
      if (cuts_apart(signature)) continue;
      const NdSignature outer = current_;
      outer_.push_back(&signature);
      for (size_t i = 0; i < inputs_.size(); ++i)
        current_.inputs[i].push_back(signature.inputs[i]);
      for (size_t i = 0; i < outputs_.size(); ++i)
        current_.outputs[i].push_back(signature.outputs[i]);
      expand(axis + 1);
      current_ = outer;
      outer_.pop_back();
    }
  }

  // True if `signature` splits several dims together of which a positional signature of an outer
  // axis splits only some. Its rule takes the slices that are left for whole dims, so it cannot see
  // that equal parts of them begin at different positions.
  bool cuts_apart(const SbpSignature& signature) const {
    return std::any_of(outer_.begin(), outer_.end(), [&](const SbpSignature* outer) {
      if (!outer->is_positional) return false;
      bool is_any_cut = false;
      bool is_any_whole = false;
      const auto compare = [&](const std::vector<Sbp>& own, const std::vector<Sbp>& before) {
        for (size_t i = 0; i < own.size(); ++i) {
          if (own[i].is_split()) (own[i] == before[i] ? is_any_cut : is_any_whole) = true;
        }
      };
      compare(signature.inputs, outer->inputs);
      compare(signature.outputs, outer->outputs);
      return is_any_cut && is_any_whole;
    });
  }

  // True if an output is a maximum along one axis and a minimum along another one, but no input is:
  // candidates of different inputs may be infinities of both signs, which give NaN together.
  bool mixes_extrema() const {
    const auto mixes = [](const NdSbp& nd_sbp) {
      return std::find(nd_sbp.begin(), nd_sbp.end(), sbp::partial_max) != nd_sbp.end() &&
             std::find(nd_sbp.begin(), nd_sbp.end(), sbp::partial_min) != nd_sbp.end();
    };
    return std::any_of(current_.outputs.begin(), current_.outputs.end(), mixes) &&
           std::none_of(current_.inputs.begin(), current_.inputs.end(), mixes);
  }

  // `shape` after the outer axes have split it, on their first or last ranks.
  Shape shape_left(const Shape& shape, const NdSbp& outer, bool at_last) const {
    Shape left = shape;
    for (int64_t axis = 0; axis < outer.size(); ++axis) {
      if (!outer[axis].is_split()) continue;
      const int64_t size = placement_.shape()[axis];
      const int64_t dim = outer[axis].dim();
      left[dim] = balanced_part(left[dim], size, at_last ? size - 1 : 0).size;
    }
    return left;
  }

  std::vector<SbpSignature> signatures_at(int64_t axis) const {
    const SbpSignature all_broadcast{std::vector<Sbp>(inputs_.size(), sbp::broadcast),
                                     std::vector<Sbp>(outputs_.size(), sbp::broadcast)};
    if (op_.has_data_dependent_shape) return {all_broadcast};
    std::vector<SbpSignature> result = rule(axis, false);
    if (axis > 0) {
      const std::vector<SbpSignature> others = rule(axis, true);
      std::erase_if(result, [&](const SbpSignature& signature) {
        return std::find(others.begin(), others.end(), signature) == others.end();
      });
    }
    std::erase(result, all_broadcast);
    result.push_back(all_broadcast);
    return result;
  }

  std::vector<SbpSignature> rule(int64_t axis, bool at_last) const {
    std::vector<MetaPtr> inputs(inputs_.begin(), inputs_.end());
    std::vector<OutputSpec> outputs(outputs_.begin(), outputs_.end());
    if (axis > 0) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == nullptr) continue;
        const TensorMeta& meta = *inputs[i];
        inputs[i] = local_meta(shape_left(meta.shape, current_.inputs[i], at_last), meta.dtype,
                               meta.device);
      }
      for (size_t i = 0; i < outputs.size(); ++i)
        outputs[i].shape = shape_left(outputs[i].shape, current_.outputs[i], at_last);
    }
    SbpContext ctx(op_, inputs, attrs_, outputs, placement_.shape()[axis]);
    op_.sbp(ctx);
    for (const SbpSignature& signature : ctx.signatures())
      check_signature(ctx, signature);
    return ctx.signatures();
  }

  const OpDef& op_;
  std::span<const MetaPtr> inputs_;
  const void* attrs_;
  std::span<const OutputSpec> outputs_;
  const Placement& placement_;
  NdSignature current_;
  std::vector<const SbpSignature*> outer_;  // those of the axes in current_
  std::vector<NdSignature> result_;
};

// ---------------------------------------------------------------- choice

// True if every tensor that is written in place keeps its layout, and so does the matching output.
bool keeps_mutated(const NdSignature& signature, std::span<const MetaPtr> inputs,
                   uint32_t mutates) {
  size_t output = 0;
  for (uint32_t left = mutates; left != 0; left &= left - 1, ++output) {
    const auto input = static_cast<size_t>(std::countr_zero(left));
    const NdSbp& layout = inputs[input]->nd_sbp;
    if (signature.inputs[input] != layout || signature.outputs[output] != layout) return false;
  }
  return true;
}

[[noreturn]] void throw_cannot_write(const OpDef& op, std::span<const MetaPtr> inputs,
                                     uint32_t mutates, const std::vector<NdSignature>& signatures) {
  std::string offered;
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < std::min(kShown, signatures.size()); ++i)
    offered += str(i == 0 ? "" : ", ", signatures[i].outputs[0]);
  const auto input = static_cast<size_t>(std::countr_zero(mutates));
  throw InvalidArgument(str(
      "[", in_place_name(op), "] the result cannot have the layout of the tensor that is written: ",
      describe_input(inputs, input), "; the op can return ", offered,
      "; use the form without underscore, or call to_global on the tensor first"));
}

// The candidate with the best score; ties go to the earlier one in the table. Candidates are scored
// in ascending order of their lower bounds, so that an early good score bounds the scoring of the
// others.
const NdSignature* best_of(const std::vector<const NdSignature*>& candidates,
                           SignatureScorer& scorer) {
  std::vector<std::pair<double, const NdSignature*>> order;  // pointers ascend in table order
  order.reserve(candidates.size());
  for (const NdSignature* candidate : candidates)
    order.emplace_back(scorer.least_us(*candidate), candidate);
  std::sort(order.begin(), order.end());
  const NdSignature* best = nullptr;
  Score best_score{.time_us = std::numeric_limits<double>::infinity()};
  for (const auto& [least_us, candidate] : order) {
    if (least_us > best_score.time_us) break;
    const std::optional<Score> score = scorer.score(*candidate, best_score.time_us);
    if (!score) continue;
    const bool is_better =
        *score < best_score || (!(best_score < *score) && std::less<>()(candidate, best));
    if (best != nullptr && !is_better) continue;
    best = candidate;
    best_score = *score;
  }
  return best;
}

struct WarnedOps {
  std::mutex mutex;
  std::set<const OpDef*> ops;  // guarded by mutex
};

// Warns once per op, on the first rank of the placement.
void warn_of_gathering(const OpDef& op, const Placement& placement, int64_t rank) {
  if (placement.ranks()[0] != rank) return;
  auto& warned = thread_state().context->slot<WarnedOps>();
  const std::lock_guard lock(warned.mutex);
  if (!warned.ops.insert(&op).second) return;
  log_warning(str("[", op.name,
                  "] needs whole inputs (its SBP rule is only_broadcast), so they are gathered on "
                  "every rank; redistribute them to B where that is cheap"));
}

}  // namespace

std::vector<NdSignature> nd_signatures(const OpDef& op, std::span<const MetaPtr> inputs,
                                       const void* attrs, std::span<const OutputSpec> outputs,
                                       const Placement& placement) {
  return Expansion(op, inputs, attrs, outputs, placement).run();
}

void choose_layouts(const OpDef& op, std::span<const MetaPtr> inputs, const void* attrs,
                    std::span<const OutputSpec> outputs, uint32_t mutates, int64_t rank,
                    Decision& out) {
  out.op = &op;
  out.inputs.assign(inputs.size(), Decision::InputLayout{});
  out.outputs.clear();
  out.redistributes = false;
  out.writes_copy = false;
  const bool fixes_layout = std::any_of(outputs.begin(), outputs.end(),
                                        [](const OutputSpec& spec) { return spec.has_layout; });
  // An op that fixes its output layout may combine inputs that other ops must not mix: such ops
  // bring tensors together.
  const TensorMeta* common = fixes_layout ? nullptr : common_input(op, inputs);
  if (common == nullptr || !common->is_global()) {
    for (const OutputSpec& spec : outputs) {
      OutputSpec placed = spec;
      if (common != nullptr) placed.device = common->device;
      out.outputs.push_back(own_layout(op, placed, rank));
    }
    return;
  }
  const Placement placement = common->placement;
  const std::vector<NdSignature> signatures = nd_signatures(op, inputs, attrs, outputs, placement);
  SignatureScorer scorer(op, inputs, attrs, outputs, placement);
  Reach least = Reach::kMoves;
  std::vector<const NdSignature*> candidates;
  for (const NdSignature& signature : signatures) {
    if (!keeps_mutated(signature, inputs, mutates)) continue;
    const Reach reach = scorer.reach(signature);
    if (reach > least) continue;
    if (reach < least) candidates.clear();
    least = reach;
    candidates.push_back(&signature);
  }
  if (candidates.empty()) {
    out.writes_copy = mutates == 1 && op.allows_in_place && inputs[0]->nd_sbp.has_partial();
    if (!out.writes_copy) throw_cannot_write(op, inputs, mutates, signatures);
    out.outputs.push_back(inputs[0]);
    return;
  }
  const NdSignature* best = candidates.size() == 1 ? candidates[0] : best_of(candidates, scorer);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->nd_sbp == best->inputs[i]) continue;
    out.inputs[i] = {placement, best->inputs[i]};
    out.redistributes = true;
  }
  if (out.redistributes && op.sbp == only_broadcast) warn_of_gathering(op, placement, rank);
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.outputs.push_back(
        global_meta(outputs[i].shape, outputs[i].dtype, placement, best->outputs[i], rank));
  }
}

bool copies_view(const Decision& decision, const TensorMeta& input, const void* attrs) {
  const OpDef& op = *decision.op;
  if (op.sbp == &only_broadcast || !input.is_global()) return false;
  Layout layout{input.placement, input.nd_sbp};
  const Decision::InputLayout& wanted = decision.inputs[0];
  if (wanted.placement.defined()) {
    if (!same_parts(layout, {wanted.placement, wanted.nd_sbp})) return true;
    layout = {wanted.placement, wanted.nd_sbp};
  }
  const TensorMeta& output = *decision.outputs[0];
  const auto ranks = layout.placement.ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
    const MetaPtr from =
        global_meta(input.shape, input.dtype, layout.placement, layout.nd_sbp, rank);
    const MetaPtr to =
        global_meta(output.shape, output.dtype, output.placement, output.nd_sbp, rank);
    ViewSpec view;
    return !op.view(*from, to->local_shape, attrs, view);
  });
}

}  // namespace flow::boxing

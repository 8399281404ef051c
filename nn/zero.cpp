#include "nn/zero.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/grad_mode.h"
#include "nn/layout.h"

namespace flow::nn {

const ZeroParameters::Entry* ZeroParameters::find(const Tensor& parameter) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.parameter.is_same(parameter);
  });
  return found == entries_.end() ? nullptr : &*found;
}

void ZeroParameters::add(optim::Optimizer& optimizer, int64_t stage) {
  const NoGradGuard no_grad;
  optimizer.for_each_param([&](const Tensor& parameter, size_t number) {
    if (!parameter.is_global()) return;
    const auto parts_of = [&](const NdSbp& sbp) {
      return without_replicas(parameter.shape(), parameter.placement(), sbp);
    };
    std::vector<NdSbp>& known = optimizer.whole_sbps_;
    if (known.size() <= number) known.resize(number + 1);
    const bool is_cut = !known[number].empty() && parameter.sbp() == parts_of(known[number]);
    const NdSbp whole = is_cut ? known[number] : parameter.sbp(), parts = parts_of(whole);
    if (parts == whole) return;
    known[number] = stage >= 3 ? whole : NdSbp();
    const NdSbp& wanted = stage >= 3 ? parts : whole;
    if (parameter.sbp() != wanted) {
      // A clone is needed, because a shard may be a view of the whole.
      parameter.set_data(parameter.detach().to_global({.sbp = wanted}).clone());
    }
    entries_.push_back({parameter, whole, parts});
  });
}

Tensor ZeroParameters::gradient_in_parts(const Tensor& parameter, const Tensor& gradient,
                                         bool is_transient) const {
  const Entry* entry = find(parameter);
  if (entry == nullptr) return {};
  std::optional<graph::TransientGuard> transient;
  if (is_transient) transient.emplace();
  return gradient.to_global({.placement = parameter.placement(), .sbp = entry->parts});
}

ZeroParameters::StandIns::StandIns(const ZeroParameters& parameters) {
  RankContext& rank = *thread_state().context;
  for (const Entry& entry : parameters.entries_) {
    const Tensor& parameter = entry.parameter;
    if (parameter.sbp() != entry.parts) continue;
    const TensorMeta& meta = parameter.meta();
    const MetaPtr whole =
        global_meta(meta.shape, meta.dtype, meta.placement, entry.whole, rank.rank());
    stand_ins_.push_back({parameter, parameter.detach(),
                          Tensor::make(whole, Storage::allocate(rank.allocator(), 0))});
    parameter.set_data(stand_ins_.back().whole);
  }
}

ZeroParameters::StandIns::~StandIns() {
  for (const StandIn& it : stand_ins_)
    it.parameter.set_data(it.data);
}

std::vector<graph::ShardedCapture> ZeroParameters::StandIns::replace_in(
    graph::TracedStep& step) const {
  std::vector<graph::ShardedCapture> shards;
  for (size_t i = 0; i < step.captures.size(); ++i) {
    for (const StandIn& it : stand_ins_) {
      if (step.captures[i].impl().storage != it.whole.impl().storage) continue;
      step.captures[i] = it.parameter;  // do not keep a handle of the stand-in
      shards.push_back({i, it.data.sbp()});
    }
  }
  return shards;
}

}  // namespace flow::nn

#include "tools/flow_plan/transfers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "boxing/cost.h"
#include "boxing/planner.h"
#include "boxing/route.h"
#include "core/error.h"
#include "graph/program/buffer_uses.h"
#include "tools/flow_plan/forecast.h"
#include "tools/page/markup.h"

namespace flow::tools {

namespace {

using graph::Program;
using graph::Step;

std::string reason_of(const boxing::Route& route) {
  std::string text = str(route.from.nd_sbp, " -> ", route.to.nd_sbp, " on ", route.from.placement);
  if (!(route.from.placement == route.to.placement)) text += str(" -> ", route.to.placement);
  return text;
}

Transfer transfer_of(const Step& step, const boxing::Route& route) {
  Transfer it{.origin = origin_of(step),
              .what = str(route.dtype, ' ', route.shape),
              .reason = reason_of(route),
              .route = boxing::step_names(route),
              .bytes = static_cast<int64_t>(sane(route.bytes())),
              .time_us = sane(route.time_us())};
  if (step.inputs.size() > 1) it.what += str(", ", step.inputs.size(), " sums together");
  if (const std::optional<boxing::Route> other = boxing::runner_up(route))
    it.instead = str(boxing::step_names(*other), ", ", time_text(sane(other->time_us())));
  return it;
}

Transfer transfer_of(const Program& program, const Step& step, graph::BufferId buffer,
                     const std::string& reason) {
  const TensorMeta& meta = *program.buffer(buffer).meta;
  const auto bytes = static_cast<int64_t>(meta.local_bytes());
  const boxing::CostTable& costs = boxing::cost_table();
  return {.origin = origin_of(step),
          .what = str(meta.dtype, ' ', meta.local_shape),
          .reason = reason,
          .route = "message",
          .instead = {},
          .bytes = bytes,
          .time_us = costs.meeting_us + static_cast<double>(bytes) / costs.bytes_per_us};
}

std::optional<Transfer> find_transfer(const Program& program, const Step& step, int64_t rank) {
  if (const boxing::Route* route = step.route()) {
    const bool moves = std::any_of(route->steps.begin(), route->steps.end(), [&](const auto& part) {
      return boxing::group_of(part, rank).size() > 1;
    });
    if (!moves) return std::nullopt;
    return transfer_of(step, *route);
  }
  if (const auto* send = step.as<graph::SendStep>())
    return transfer_of(program, step, step.inputs[0], str("to rank ", send->peer));
  if (const auto* receive = step.as<graph::ReceiveStep>())
    return transfer_of(program, step, step.outputs[0], str("from rank ", receive->peer));
  return std::nullopt;
}

}  // namespace

std::vector<Transfer> transfers_of(const Program& program, int64_t rank) {
  const graph::ProgramRuns runs(program);
  const graph::BlockTimes times(program);
  std::vector<Transfer> all;
  using Key = std::tuple<Origin, std::string, std::string, std::string>;
  std::map<Key, size_t> known;
  for (size_t b = 0; b < runs.blocks().size(); ++b) {
    const auto count = static_cast<int64_t>(times.num_runs(static_cast<graph::BlockIndex>(b)));
    for (size_t i = runs.blocks()[b].first_step; i < runs.blocks()[b].end_step; ++i) {
      std::optional<Transfer> it = find_transfer(program, program.steps[i], rank);
      if (!it) continue;
      const auto [found, is_new] =
          known.try_emplace({it->origin, it->what, it->reason, it->route}, all.size());
      if (is_new) all.push_back(std::move(*it));
      all[found->second].count += count;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Transfer& a, const Transfer& b) {
    return a.total_us() > b.total_us();
  });
  return all;
}

}  // namespace flow::tools

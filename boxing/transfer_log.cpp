#include "boxing/transfer_log.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "boxing/planner.h"

namespace flow::boxing {

size_t TransferLog::KeyHash::operator()(const Key& key) const {
  return std::hash<const void*>()(key.file) * 31 + key.line;
}

void TransferLog::add(Site site, const Route& route, double took_us) {
  const std::lock_guard lock(mutex_);
  std::vector<Runs>& here = runs_[{site.file(), site.line()}];
  auto runs = std::find_if(here.begin(), here.end(), [&](const Runs& known) {
    return known.route.from == route.from && known.route.to == route.to &&
           known.route.dtype == route.dtype && known.route.shape == route.shape;
  });
  if (runs == here.end()) {
    here.push_back({.route = route, .least_us = took_us});
    runs = here.end() - 1;
  }
  ++runs->count;
  runs->least_us = std::min(runs->least_us, took_us);
  runs->total_us += took_us;
}

std::vector<BoxingEntry> TransferLog::entries() const {
  std::vector<BoxingEntry> result;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, all_runs] : runs_) {
    for (const Runs& runs : all_runs) {
      BoxingEntry entry = describe(Site::here(key.file, key.line), runs.route);
      entry.runs = runs.count;
      entry.least_us = runs.least_us;
      entry.total_us = runs.total_us;
      result.push_back(std::move(entry));
    }
  }
  std::sort(result.begin(), result.end(),
            [](const BoxingEntry& a, const BoxingEntry& b) { return a.total_us > b.total_us; });
  return result;
}

void TransferLog::clear() {
  const std::lock_guard lock(mutex_);
  runs_.clear();
}

BoxingEntry describe(Site site, const Route& route) {
  BoxingEntry entry{.site = site,
                    .shape = route.shape,
                    .dtype = route.dtype,
                    .from_placement = route.from.placement,
                    .from_sbp = route.from.nd_sbp,
                    .to_placement = route.to.placement,
                    .to_sbp = route.to.nd_sbp,
                    .route = step_names(route),
                    .bytes = route.bytes(),
                    .predicted_us = route.time_us(),
                    .runner_up = {}};
  if (const std::optional<Route> other = runner_up(route)) {
    entry.runner_up = step_names(*other);
    entry.runner_up_bytes = other->bytes();
    entry.runner_up_us = other->time_us();
  }
  return entry;
}

}  // namespace flow::boxing

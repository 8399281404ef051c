#include "boxing/transfer_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "boxing/planner.h"
#include "core/attrs.h"
#include "core/hash.h"

namespace flow::boxing {

size_t TransferLog::KeyHash::operator()(const Key& key) const {
  using internal::hash_field;
  Hasher hasher;
  hasher.add(uint64_t{key.line});
  hash_field(hasher, key.shape);
  hash_field(hasher, key.dtype);
  for (const Layout* layout : {&key.from, &key.to}) {
    hash_field(hasher, layout->placement);
    hash_field(hasher, layout->nd_sbp);
  }
  return hasher.value();
}

void TransferLog::add(Site site, const Route& route, double took_us) {
  const std::lock_guard lock(mutex_);
  const Key key{site.file(), site.line(), route.shape, route.dtype, route.from, route.to};
  const auto [entry, is_new] = runs_.try_emplace(key);
  Runs& runs = entry->second;
  if (is_new) runs = {.route = route, .least_us = took_us};
  ++runs.count;
  runs.least_us = std::min(runs.least_us, took_us);
  runs.total_us += took_us;
}

std::vector<BoxingEntry> TransferLog::entries() const {
  std::vector<BoxingEntry> result;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, runs] : runs_) {
    BoxingEntry entry = describe(Site::here(key.file.data(), key.line), runs.route);
    entry.runs = runs.count;
    entry.least_us = runs.least_us;
    entry.total_us = runs.total_us;
    result.push_back(std::move(entry));
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

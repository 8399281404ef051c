#include "boxing/report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <ostream>

#include "boxing/layout.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/error.h"

namespace flow {

namespace boxing {

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

}  // namespace boxing

BoxingReport boxing_report() {
  return {thread_state().context->slot<boxing::TransferLog>().entries()};
}

void reset_boxing_report() {
  thread_state().context->slot<boxing::TransferLog>().clear();
}

namespace {

// Times in microseconds are not accurate beyond tenths.
std::string microseconds(double us) {
  const int64_t tenths = std::llround(us * 10);
  return str(tenths / 10, ".", tenths % 10, " us");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BoxingEntry& entry) {
  const auto bytes = [](double count) { return static_cast<int64_t>(count); };
  if (entry.site.is_known()) out << entry.site.file() << ':' << entry.site.line() << ": ";
  out << entry.dtype << ' ' << entry.shape << ", " << entry.from_sbp << " -> " << entry.to_sbp;
  out << " on " << entry.from_placement;
  if (entry.from_placement != entry.to_placement) out << " -> " << entry.to_placement;
  out << "\n  " << entry.route << ", " << bytes(entry.bytes) << " bytes, predicted "
      << microseconds(entry.predicted_us);
  if (entry.runs > 0) {
    out << ", measured " << microseconds(entry.least_us) << " at least, "
        << microseconds(entry.total_us / static_cast<double>(entry.runs)) << " on average of "
        << entry.runs;
  }
  if (!entry.runner_up.empty()) {
    out << "\n  instead of " << entry.runner_up << ", " << bytes(entry.runner_up_bytes)
        << " bytes, predicted " << microseconds(entry.runner_up_us);
  }
  return out << '\n';
}

std::ostream& operator<<(std::ostream& out, const BoxingReport& report) {
  for (const BoxingEntry& entry : report.entries)
    out << entry;
  return out;
}

}  // namespace flow

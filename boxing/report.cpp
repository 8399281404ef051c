#include "boxing/report.h"

#include <cmath>
#include <ostream>

#include "boxing/layout.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/error.h"

namespace flow {

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

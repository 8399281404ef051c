#include "tools/flowrun/limits.h"

#include <array>

#include <sys/resource.h>

namespace flowrun {

namespace {

struct Limit {
  __rlimit_resource_t resource;
  rlim_t enough;
  rlim_t unit;
  const char* what;
  const char* option;  // of ulimit, which counts in units
};

constexpr rlim_t kKibibyte = 1024;
constexpr rlim_t kGibibyte = rlim_t{1} << 30;
constexpr std::array kLimits = {
    Limit{RLIMIT_NOFILE, 256, 1, "open files", "-n"},
    Limit{RLIMIT_AS, 16 * kGibibyte, kKibibyte, "KiB of address space", "-v"},
    Limit{RLIMIT_FSIZE, 4 * kGibibyte, kKibibyte, "KiB of each file", "-f"},
    Limit{RLIMIT_NPROC, 256, 1, "processes and threads", "-u"}};

}  // namespace

std::string describe_tight_limits() {
  std::string text;
  for (const Limit& limit : kLimits) {
    rlimit value{};
    if (getrlimit(limit.resource, &value) != 0 || value.rlim_cur >= limit.enough) continue;
    text += text.empty() ? "" : ", ";
    text += std::to_string(value.rlim_cur / limit.unit) + ' ' + limit.what + " (ulimit " +
            limit.option + ')';
  }
  return text.empty() ? text : "the limits on this host may be the reason: " + text;
}

}  // namespace flowrun

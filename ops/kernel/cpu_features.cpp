#include "ops/kernel/cpu_features.h"

#include <algorithm>
#include <string>

#include "core/env.h"
#include "core/error.h"

namespace flow::ops {

namespace {
constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};
constexpr CpuIsa kRequired{FLOW_REQUIRED_ISA};

bool is_compiled(CpuIsa isa) {
  return (FLOW_COMPILED_ISAS >> static_cast<int>(isa)) & 1;
}
}  // namespace

std::string_view to_string(CpuIsa isa) {
  return kNames[static_cast<size_t>(isa)];
}

CpuIsa detected_isa() {
#if defined(__x86_64__)
  // Every CPU with avx2 also has f16c, which clang 14 cannot test for.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  if (has_avx2) return has_avx512 ? CpuIsa::kAvx512 : CpuIsa::kAvx2;
#endif
  return CpuIsa::kBaseline;
}

void require_isa(CpuIsa required, CpuIsa detected) {
  if (detected >= required) return;
  throw Unsupported(str("[cpu_features] flow was built with FLOW_CPU_ISAS=native on a CPU with ",
                        to_string(required), "; this CPU has only ", to_string(detected),
                        "; build flow with -DFLOW_CPU_ISAS=all, or on this machine"));
}

CpuIsa choose_isa(CpuIsa detected, std::string_view limit) {
  CpuIsa chosen = detected;
  if (!limit.empty()) {
    const auto* name = std::find(kNames.begin(), kNames.end(), limit);
    if (name == kNames.end()) {
      throw InvalidArgument(
          str("[cpu_features] FLOW_CPU_ISA names an unknown instruction set; got '", limit,
              "'; give baseline, avx2 or avx512"));
    }
    chosen = std::min(chosen, static_cast<CpuIsa>(name - kNames.begin()));
  }
  while (!is_compiled(chosen))
    chosen = static_cast<CpuIsa>(static_cast<int>(chosen) - 1);
  return chosen;
}

CpuIsa active_isa() {
  static const CpuIsa chosen = [] {
    const CpuIsa detected = detected_isa();
    require_isa(kRequired, detected);
    return choose_isa(detected, env_string("FLOW_CPU_ISA", ""));
  }();
  return chosen;
}

}  // namespace flow::ops

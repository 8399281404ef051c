#include "ops/kernel/cpu_features.h"

#include <algorithm>
#include <string>

#include "core/env.h"
#include "core/error.h"

namespace flow::ops {

namespace {
constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};
#if FLOW_NUM_ISAS >= 3
constexpr CpuIsa kWidestCompiled = CpuIsa::kAvx512;
#else
constexpr CpuIsa kWidestCompiled = CpuIsa::kBaseline;
#endif
}  // namespace

std::string_view to_string(CpuIsa isa) {
  return kNames[static_cast<size_t>(isa)];
}

CpuIsa detected_isa() {
#if defined(__x86_64__)
  // Every CPU with avx2 has f16c, which clang 14 cannot ask for.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  if (has_avx2) return has_avx512 ? CpuIsa::kAvx512 : CpuIsa::kAvx2;
#endif
  return CpuIsa::kBaseline;
}

CpuIsa choose_isa(CpuIsa detected, std::string_view limit) {
  CpuIsa chosen = std::min(detected, kWidestCompiled);
  if (limit.empty()) return chosen;
  const auto* name = std::find(kNames.begin(), kNames.end(), limit);
  if (name == kNames.end()) {
    throw InvalidArgument(str("[cpu_features] FLOW_CPU_ISA names an unknown instruction set; got '",
                              limit, "'; give baseline, avx2 or avx512"));
  }
  return std::min(chosen, static_cast<CpuIsa>(name - kNames.begin()));
}

CpuIsa active_isa() {
  static const CpuIsa chosen = choose_isa(detected_isa(), env_string("FLOW_CPU_ISA", ""));
  return chosen;
}

}  // namespace flow::ops

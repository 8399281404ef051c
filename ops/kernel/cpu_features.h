// Which variant of the kernels this process uses: each *_cpu.cpp exists once per instruction set
// (ops/kernel/isa_begin.h).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace flow::ops {

// In the order of FLOW_ISA, each containing those before it.
enum class CpuIsa { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(CpuIsa isa);

// The widest instruction set that both this CPU and its operating system support.
CpuIsa detected_isa();

// The narrowest of `detected`, the widest compiled in, and `limit`, a name as to_string gives it or
// "" for none. Throws InvalidArgument for another name.
CpuIsa choose_isa(CpuIsa detected, std::string_view limit);

// choose_isa for this machine and the variable FLOW_CPU_ISA, decided at the first call.
CpuIsa active_isa();

// The entry for active_isa() of a table made by FLOW_ISA_VARIANTS.
template <class T, size_t kNumIsas>
const T& active_variant(const std::array<T, kNumIsas>& variants) {
  return variants[static_cast<size_t>(active_isa())];
}

}  // namespace flow::ops

// For what a kernel file defines in its region, with external linkage:
//   FLOW_DECLARE_PER_ISA(void register_unary_cpu(KernelTable& table))    in namespace flow::ops
//   active_variant(FLOW_ISA_VARIANTS(register_unary_cpu))(table);
#if FLOW_NUM_ISAS >= 3
#define FLOW_DECLARE_PER_ISA(...) \
  namespace isa_baseline {        \
  __VA_ARGS__;                    \
  }                               \
  namespace isa_avx2 {            \
  __VA_ARGS__;                    \
  }                               \
  namespace isa_avx512 {          \
  __VA_ARGS__;                    \
  }
#define FLOW_ISA_VARIANTS(name)                             \
  ::std::array {                                            \
    &isa_baseline::name, &isa_avx2::name, &isa_avx512::name \
  }
#else
#define FLOW_DECLARE_PER_ISA(...) \
  namespace isa_baseline {        \
  __VA_ARGS__;                    \
  }
#define FLOW_ISA_VARIANTS(name) \
  ::std::array {                \
    &isa_baseline::name         \
  }
#endif

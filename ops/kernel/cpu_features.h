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

// Throws Unsupported if a build that requires `required` runs on a CPU with `detected`.
void require_isa(CpuIsa required, CpuIsa detected);

// The widest instruction set compiled in (FLOW_CPU_ISAS of CMake) that is not wider than `detected`
// and `limit`, a name as to_string gives it or "" for none. Throws InvalidArgument for another
// name.
CpuIsa choose_isa(CpuIsa detected, std::string_view limit);

// choose_isa for this machine and the variable FLOW_CPU_ISA, decided at the first call. Throws
// Unsupported if the CPU lacks an instruction set that this build requires.
CpuIsa active_isa();

// Returns the last entry of a table made by FLOW_ISA_VARIANTS that is present and not wider than
// `isa`.
template <class T, size_t kNumIsas>
const T& widest_variant(const std::array<T, kNumIsas>& variants, CpuIsa isa) {
  auto i = static_cast<size_t>(isa);
  while (i > 0 && variants[i] == nullptr)
    --i;
  return variants[i];
}

// The entry for active_isa() of a table made by FLOW_ISA_VARIANTS.
template <class T, size_t kNumIsas>
const T& active_variant(const std::array<T, kNumIsas>& variants) {
  return widest_variant(variants, active_isa());
}

}  // namespace flow::ops

// For what a kernel file defines in its region, with external linkage:
//   FLOW_DECLARE_PER_ISA(void register_unary_cpu(KernelTable& table))    in namespace flow::ops
//   active_variant(FLOW_ISA_VARIANTS(register_unary_cpu))(table);
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

// An entry per CpuIsa, null for those that are not compiled in. Known where CMake defines
// FLOW_COMPILED_ISAS, which has a bit for each that is: flow_tell_isas(), flow_add_isa_objects().
#if defined(FLOW_COMPILED_ISAS)
#define FLOW_ISA_VARIANTS(name)                                             \
  ::std::array {                                                            \
    &isa_baseline::name, FLOW_AVX2_VARIANT(name), FLOW_AVX512_VARIANT(name) \
  }
#if FLOW_COMPILED_ISAS & 2
#define FLOW_AVX2_VARIANT(name) &isa_avx2::name
#else
#define FLOW_AVX2_VARIANT(name) static_cast<decltype(&isa_baseline::name)>(nullptr)
#endif
#if FLOW_COMPILED_ISAS & 4
#define FLOW_AVX512_VARIANT(name) &isa_avx512::name
#else
#define FLOW_AVX512_VARIANT(name) static_cast<decltype(&isa_baseline::name)>(nullptr)
#endif
#endif

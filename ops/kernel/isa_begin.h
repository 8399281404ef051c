// Opens the region of a file that is compiled for one instruction set (ISA); "ops/kernel/isa_end.h"
// closes it.
//
//   #include <vector>                  every include comes before the region,
//   #include "ops/kernel/vector_math.h"       this one too: it opens and closes regions of its own
//   #include "ops/kernel/isa_begin.h"
//   void add_f32(...) { ... }          flow::ops::isa_avx512::add_f32 when FLOW_ISA is 2
//   #include "ops/kernel/isa_end.h"
//
// FLOW_ISA   namespace      instructions
//   0        isa_baseline   what every CPU of the platform has (x86-64: SSE2); also when undefined
//   1        isa_avx2       avx2 fma f16c
//   2        isa_avx512     avx512 f bw dq vl cd, avx2 fma f16c
//
// CMake compiles each kernel file once per ISA with -DFLOW_ISA and without -m flags; active_isa()
// of ops/kernel/cpu_features.h says at run time which variant this process uses. Why a pragma and
// not a flag: an inline function of a header (std::vector, core) compiled with -mavx512f is a weak
// symbol, and the linker may keep that copy for the whole program, which then dies on a smaller
// CPU. With the region, code defined before it keeps the baseline target, and it can still be
// inlined into code within the region. What g++ 12 and clang 14 do:
// - functions, members defined in or out of their class, templates, and lambdas written in the
//   region get the ISA, wherever they are instantiated, and loops use its full width at -O3;
// - a template of an earlier header stays baseline even when first instantiated in the region,
//   unless it is inlined. So a lambda handed to core's thread pool runs with the ISA, but is called
//   once per chunk, not inlined into the pool. A hot loop belongs into the region;
// - exceptions: g++ 12 forgets the target of a friend defined inside an explicit specialisation,
//   and of constructors that the compiler writes; a struct of vectors declares its constructor.
//
// Not self-contained: no include guard, by nature, as a file may hold several regions. Regions do
// not nest.
#if defined(FLOW_ISA_REGION)
#error \
    "ops/kernel/isa_begin.h inside a region: include vector.h and the like before ops/kernel/isa_begin.h"
#endif
#define FLOW_ISA_REGION

#if !defined(FLOW_ISA)
#define FLOW_ISA 0
#endif

#if !defined(FLOW_ISA_NAMESPACE)
#if FLOW_ISA == 2
#define FLOW_ISA_NAMESPACE isa_avx512
#define FLOW_ISA_NAME "avx512"
#elif FLOW_ISA == 1
#define FLOW_ISA_NAMESPACE isa_avx2
#define FLOW_ISA_NAME "avx2"
#elif FLOW_ISA == 0
#define FLOW_ISA_NAMESPACE isa_baseline
#define FLOW_ISA_NAME "baseline"
#else
#error "FLOW_ISA is 0, 1 or 2"
#endif
#endif

#if FLOW_ISA == 2 && defined(__clang__)
#pragma clang attribute push(                                                             \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c"))), \
    apply_to = function)
#elif FLOW_ISA == 2
// g++ 12 reports the deliberately undefined operands inside its own avx512 intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c")
#elif FLOW_ISA == 1 && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#elif FLOW_ISA == 1
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace flow::ops::FLOW_ISA_NAMESPACE {

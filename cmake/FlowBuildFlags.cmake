# flow_build_flags: how every file of this project is compiled. It is linked PRIVATE and is not
# exported: a user's flags are the user's own.
add_library(flow_build_flags INTERFACE)
target_compile_features(flow_build_flags INTERFACE cxx_std_20)
target_include_directories(flow_build_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(flow_build_flags INTERFACE Threads::Threads)

# What nvcc warns of: parentheses that it writes itself (so says the host's compiler), what its own
# stubs for generic lambdas do not use (445), comparisons that only some types make pointless (186).
if(FLOW_WITH_CUDA AND NOT FLOW_CUDA_EMULATED)
  target_compile_options(
    flow_build_flags
    INTERFACE
      "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-O3;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-parentheses;-diag-suppress=186,445>"
  )
endif()

# Contraction is off so that a formula rounds the same at every place it is compiled.
target_compile_options(
  flow_build_flags
  INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O2>
            $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

if(FLOW_DEVELOPER)
  set(warnings
      -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
      -Wimplicit-fallthrough -Wswitch-enum -Werror)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # GCC's hints for its vectoriser are unknown there.
    list(APPEND warnings -Wthread-safety -Wno-unknown-pragmas)
  endif()
  target_compile_options(flow_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endif()

# -Og compiles in two thirds of the time of -O1, -g1 gives the reports line numbers.
if(FLOW_SANITIZE)
  set(sanitize -fsanitize=${FLOW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(flow_build_flags
                         INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-Og;-g1>")
  target_link_options(flow_build_flags INTERFACE -fsanitize=${FLOW_SANITIZE})
endif()

# Instruction sets the kernel files are compiled for, lowest first: the position is FLOW_ISA.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(FLOW_ISAS baseline avx2 avx512 CACHE STRING "Instruction sets kernels are compiled for")
else()
  set(FLOW_ISAS baseline CACHE STRING "Instruction sets kernels are compiled for")
endif()
mark_as_advanced(FLOW_ISAS)
if(NOT FLOW_ISAS STREQUAL "baseline" AND NOT FLOW_ISAS STREQUAL "baseline;avx2;avx512")
  message(FATAL_ERROR "FLOW_ISAS is baseline or baseline;avx2;avx512 (the kernels of the best set are "
                      "chosen at run time); received ${FLOW_ISAS}. Others would be compiled as baseline.")
endif()

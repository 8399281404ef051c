# flow_build_flags: how every file of this project is compiled. It is linked PRIVATE and is not
# exported: a user's flags are the user's own.
add_library(flow_build_flags INTERFACE)
target_compile_features(flow_build_flags INTERFACE cxx_std_20)
target_include_directories(flow_build_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(flow_build_flags INTERFACE Threads::Threads)

# What nvcc warns of: parentheses that it writes itself (so says the host's compiler), what its own
# stubs for generic lambdas do not use (445), comparisons that only some types make pointless (186).
if(FLOW_WITH_CUDA AND NOT FLOW_CUDA_EMULATED)
  set(cuda_flags -std=c++20 -O3 --expt-relaxed-constexpr
                 -Xcompiler=-Wall,-Wextra,-Wno-parentheses -diag-suppress=186,445)
  target_compile_options(flow_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")
endif()

# Contraction is off so that a formula rounds the same at every place it is compiled.
target_compile_options(
  flow_build_flags
  INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O2>
            $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

if(FLOW_DEVELOPER)
  set(warnings
      -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
      -Wimplicit-fallthrough -Wswitch-enum)
  # Later compilers warn of other things, some of them wrongly, which must not stop a build.
  set(newest_known_GNU 12)
  set(newest_known_Clang 14)
  string(REGEX MATCH "^[0-9]+" compiler_major ${CMAKE_CXX_COMPILER_VERSION})
  if(compiler_major LESS_EQUAL "${newest_known_${CMAKE_CXX_COMPILER_ID}}")
    list(APPEND warnings -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # GCC's hints for its vectoriser are unknown there. -Wconversion includes signs there, which GCC
    # reports wrongly in templates, so they must not stop a build; tools/tidy reports them.
    list(APPEND warnings -Wthread-safety -Wno-unknown-pragmas -Wno-error=sign-conversion)
  endif()
  target_compile_options(flow_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endif()

# -Og compiles in two thirds of the time of -O1, -g1 gives the reports line numbers.
if(FLOW_SANITIZE)
  set(sanitize -fsanitize=${FLOW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(BUILD_SHARED_LIBS)
    # The leak sanitizer crashes in thread-local memory that the loader adds later.
    list(APPEND sanitize -ftls-model=initial-exec)
  endif()
  target_compile_options(flow_build_flags
                         INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-Og;-g1>")
  target_link_options(flow_build_flags INTERFACE -fsanitize=${FLOW_SANITIZE})
endif()

# flow_test_flags: linked after flow_build_flags by tests, which spend their time in the library. -Og
# compiles them in 0.6 of the time of -O2.
add_library(flow_test_flags INTERFACE)
target_compile_options(flow_test_flags
                       INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Og>)

# flow_kernel_flags: linked after flow_build_flags by files that hold kernels.
add_library(flow_kernel_flags INTERFACE)
target_compile_options(
  flow_kernel_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O3>
                              $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=fast>)

# Instruction sets the kernel files are compiled for: all, of which the best is chosen at run time;
# native, that of this machine, for programs that run nowhere else; or baseline, which every CPU of
# the platform has and which is always there, as it holds the reference kernels.
set(FLOW_CPU_ISAS all CACHE STRING "Instruction sets of the CPU kernels: all, native or baseline")
set_property(CACHE FLOW_CPU_ISAS PROPERTY STRINGS all native baseline)
if(NOT FLOW_CPU_ISAS MATCHES "^(all|native|baseline)$")
  message(FATAL_ERROR "FLOW_CPU_ISAS is all, native or baseline; received ${FLOW_CPU_ISAS}")
endif()

# flow_find_native_isa(<variable>): baseline, avx2 or avx512, as detected_isa() of
# ops/cpu_features.h will find it.
function(flow_find_native_isa variable)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE macros
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "FLOW_CPU_ISAS=native needs a compiler that knows -march=native; "
                        "give all or baseline")
  endif()
  set(widest baseline)
  set(avx2_macros AVX2 FMA F16C)
  set(avx512_macros ${avx2_macros} AVX512F AVX512BW AVX512DQ AVX512VL AVX512CD)
  foreach(isa avx2 avx512)
    set(is_there ON)
    foreach(macro ${${isa}_macros})
      if(NOT macros MATCHES "__${macro}__ ")
        set(is_there OFF)
      endif()
    endforeach()
    if(is_there)
      set(widest ${isa})
    endif()
  endforeach()
  set(${variable} ${widest} PARENT_SCOPE)
endfunction()

# flow_isas: their names, lowest first. FLOW_ISA of a kernel file is the position in flow_isa_names;
# flow_compiled_isas has a bit for each compiled one, flow_required_isa is what the CPU must have.
set(flow_isa_names baseline avx2 avx512)
set(flow_isas baseline)
set(flow_required_isa 0)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  if(FLOW_CPU_ISAS STREQUAL "all")
    set(flow_isas ${flow_isa_names})
  elseif(FLOW_CPU_ISAS STREQUAL "native")
    flow_find_native_isa(native)
    list(APPEND flow_isas ${native})
    list(REMOVE_DUPLICATES flow_isas)
    list(FIND flow_isa_names ${native} flow_required_isa)
  endif()
endif()
set(flow_compiled_isas 0)
foreach(isa ${flow_isas})
  list(FIND flow_isa_names ${isa} level)
  math(EXPR flow_compiled_isas "${flow_compiled_isas} | (1 << ${level})")
endforeach()
string(REPLACE ";" " " flow_isas_text "${flow_isas}")
message(STATUS "flow: instruction sets ${flow_isas_text}")

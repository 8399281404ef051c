# Precompiled headers: what nearly every file of the library includes is parsed once per build,
# which saves about half of the compile time of a file without kernels. Sources still include what
# they use: tools/check compiles each header without, and -DFLOW_PCH=OFF builds every file without
# (the preset tidy does).
option(FLOW_PCH "Precompile the headers that nearly every file includes" ON)
if(NOT FLOW_PCH)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

set(FLOW_PCH_HEADERS
    <algorithm>
    <array>
    <atomic>
    <cmath>
    <cstdint>
    <cstring>
    <deque>
    <functional>
    <limits>
    <map>
    <memory>
    <mutex>
    <numeric>
    <optional>
    <span>
    <stdexcept>
    <string>
    <string_view>
    <tuple>
    <type_traits>
    <unordered_map>
    <utility>
    <variant>
    <vector>
    <core/context.h>
    <core/kernel.h>
    <core/op.h>
    <core/tensor.h>
    <core/thread_pool.h>)

# flow_add_pch(<name> LIBRARIES flags... [HEADERS ...]): an object library that carries the headers'
# precompiled form. GCC restores the optimisation options with it, so who uses it must be compiled
# with the same LIBRARIES.
function(flow_add_pch name)
  cmake_parse_arguments(arg "" "" "LIBRARIES;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pch.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  flow_map_prefixes(${name} flow:)
  list(TRANSFORM arg_HEADERS REPLACE ".+" "$<$<COMPILE_LANGUAGE:CXX>:\\0>")
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# flow_use_pch(<target> <name>): compiles the target's sources with what flow_add_pch(<name>) made.
function(flow_use_pch target name)
  if(FLOW_PCH)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# flow_use_program_pch(<target>): the library's precompiled headers for a program, unless they are
# compiled for a shared object.
function(flow_use_program_pch target)
  if(NOT BUILD_SHARED_LIBS)
    flow_use_pch(${target} flow_pch)
  endif()
endfunction()

if(FLOW_PCH)
  flow_add_pch(flow_pch LIBRARIES flow_build_flags HEADERS ${FLOW_PCH_HEADERS})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(intrinsics <immintrin.h>)
  endif()
  flow_add_pch(flow_kernel_pch LIBRARIES flow_build_flags flow_kernel_flags
               HEADERS ${FLOW_PCH_HEADERS} ${intrinsics})
  if(BUILD_SHARED_LIBS)
    set_target_properties(flow_pch flow_kernel_pch PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endif()

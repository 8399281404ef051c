# Programs of the developer build: tests, benchmarks, examples, tools. All go to build/<preset>/bin.

# The options of sanitizers for tests that are not googletest's; add_suites.cmake has the same and
# says why.
set(flow_suppressions ${PROJECT_SOURCE_DIR}/tests/support)
set(FLOW_SANITIZER_ENVIRONMENT
    "ASAN_OPTIONS=intercept_tls_get_addr=0:allocator_may_return_null=1"
    "LSAN_OPTIONS=suppressions=${flow_suppressions}/lsan.supp"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${flow_suppressions}/tsan.supp")

# flow_add_program(<name> sources...). Reports name its lines from the project's root on.
function(flow_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE flow::flow flow_build_flags)
  flow_map_prefixes(${name} "")
  flow_use_program_pch(${name})
endfunction()

# flow_add_isa_objects(<name> sources...): the sources compiled once per instruction set, as
# flow_add_isa_kernels does for the library; who links <name> gets all their objects.
function(flow_add_isa_objects name)
  add_library(${name} INTERFACE)
  target_compile_definitions(${name} INTERFACE FLOW_COMPILED_ISAS=${flow_compiled_isas})
  foreach(isa ${flow_isas})
    add_library(${name}_${isa} OBJECT ${ARGN})
    if(BUILD_SHARED_LIBS)
      set_target_properties(${name}_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    target_link_libraries(${name}_${isa} PRIVATE flow_build_flags)
    target_compile_definitions(${name}_${isa} PRIVATE FLOW_COMPILED_ISAS=${flow_compiled_isas})
    flow_make_isa_objects(${name}_${isa} ${isa})
    target_sources(${name} INTERFACE $<TARGET_OBJECTS:${name}_${isa}>)
  endforeach()
endfunction()

# flow_add_test(<name> LABEL unit|mpi|cuda|slow [SOURCES ...] [LIBRARIES ...])
# One googletest executable; ctest runs it once per test suite, so that suites run side by side and
# a failure names its suite. The target tests_<label> builds all of a label and nothing else.
function(flow_add_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE flow::flow flow_build_flags flow_test_flags)
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
  endif()
  add_dependencies(tests_${arg_LABEL} ${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM flow_test_pch)

  set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(
    CONFIGURE OUTPUT ${script}
    CONTENT [[
set(program "@CMAKE_RUNTIME_OUTPUT_DIRECTORY@/@name@")
set(label "@arg_LABEL@")
set(results "@PROJECT_BINARY_DIR@/test-results")
set(sources "@PROJECT_SOURCE_DIR@")
set(sanitizer "@FLOW_SANITIZE@")
include("@PROJECT_SOURCE_DIR@/cmake/add_suites.cmake")
]]
    @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# flow_report_cases(<test>): a ctest that add_suites.cmake does not add writes googletest's report
# too, where tools/test looks for it. Call it after the test's environment has been set.
function(flow_report_cases test)
  set_property(
    TEST ${test} APPEND PROPERTY ENVIRONMENT
                                 "GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/test-results/${test}.json")
endfunction()

# flow_add_orders(<test>): the tests of label cuda once more in emulated CUDA, with the blocks and
# threads of each launch in other orders, and with libraries that do less: without cuDNN and NCCL,
# and with a cuBLASLt that refuses the algorithms it proposes.
function(flow_add_orders name)
  if(NOT FLOW_CUDA_EMULATED)
    return()
  endif()
  set(libraries_reversed "CUDA_EMULATOR_MISSING=libcudnn,libnccl")
  set(libraries_random "CUDA_EMULATOR_REFUSED_ALGORITHMS=100")
  foreach(order reversed random)
    add_test(NAME ${name}.${order} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(
      ${name}.${order}
      PROPERTIES
        LABELS cuda
        TIMEOUT 1200
        ENVIRONMENT
        "CUDA_EMULATOR_ORDER=${order};${libraries_${order}};FLOW_CUDA_CACHE=0;FLOW_TIMEOUT_S=10")
    flow_report_cases(${name}.${order})
  endforeach()
endfunction()

# flow_add_benchmark(<name> sources...): a google-benchmark program, with the machine's limits.
function(flow_add_benchmark name)
  flow_add_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE machine_limits benchmark::benchmark)
endfunction()

# flow_add_example(<name> [RANKS n] [ARGS ...]): the program <name>.cpp, and a ctest of label
# example that runs it with ARGS, which should make it end within seconds, on n ranks as threads.
function(flow_add_example name)
  flow_add_program(${name} ${name}.cpp)
  flow_add_example_run(${name} ${name} ${ARGN})
endfunction()

# flow_add_example_run(<run> <name> [RANKS n] [ARGS ...]): the ctest example.<run> alone.
function(flow_add_example_run run name)
  cmake_parse_arguments(arg "" "RANKS" "ARGS" ${ARGN})
  set(launcher)
  if(arg_RANKS)
    set(launcher flowrun --ranks=threads:${arg_RANKS})
  endif()
  add_test(NAME example.${run} COMMAND ${launcher} $<TARGET_FILE:${name}> ${arg_ARGS})
  set_tests_properties(example.${run} PROPERTIES LABELS example TIMEOUT 300)
endfunction()

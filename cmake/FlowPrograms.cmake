# Programs of the developer build: tests, benchmarks, examples, tools. All go to build/<preset>/bin.

# flow_add_program(<name> sources...)
function(flow_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE flow::flow flow_build_flags)
endfunction()

# flow_add_test(<name> LABEL unit|mpi|cuda|slow [SOURCES ...] [LIBRARIES ...])
# One googletest executable; ctest runs it once per test suite, so that suites run side by side and a
# failure names its suite. With no sources yet there is no test.
function(flow_add_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  flow_add_program(${name} ${arg_SOURCES})
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
include("@PROJECT_SOURCE_DIR@/cmake/add_suites.cmake")
]]
    @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# flow_add_benchmark(<name> sources...): a google-benchmark program.
function(flow_add_benchmark name)
  flow_add_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE benchmark::benchmark)
endfunction()

# flow_add_example(<name> [ARGS ...]): the program <name>.cpp, and a ctest of label example that runs
# it with ARGS, which should make it end within seconds.
function(flow_add_example name)
  cmake_parse_arguments(arg "" "" "ARGS" ${ARGN})
  flow_add_program(${name} ${name}.cpp)
  add_test(NAME example.${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(example.${name} PROPERTIES LABELS example TIMEOUT 300)
endfunction()

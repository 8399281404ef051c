# Run by ctest at its start with program, label, results, sources and sanitizer set: adds one test
# per suite of a googletest program. Instances of a parameterised or typed suite (A/Suite/0) count as
# one suite.
if(NOT EXISTS "${program}")
  get_filename_component(name "${program}" NAME)
  add_test(${name}_NOT_BUILT "${program}")
  set_tests_properties(${name}_NOT_BUILT PROPERTIES LABELS "${label}")
  return()
endif()

execute_process(
  COMMAND "${program}" --gtest_list_tests
  OUTPUT_VARIABLE listing
  RESULT_VARIABLE status
  TIMEOUT 60)
get_filename_component(name "${program}" NAME)
if(NOT status EQUAL 0)
  add_test(${name}.list "${program}" --gtest_list_tests)
  set_tests_properties(${name}.list PROPERTIES LABELS "${label}")
  return()
endif()

string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listing}")
list(TRANSFORM suites REPLACE "[\n.]" "")
list(TRANSFORM suites REPLACE "/[0-9]+$" "")
list(TRANSFORM suites REPLACE "^.*/" "")
list(REMOVE_DUPLICATES suites)
# intercept_tls_get_addr: at some addresses the sanitizer takes a thread's dynamic TLS block for one
# with a header of glibc 2.19 and reads its place from what is no header; the leak check then
# crashes.
set(suppressions "${sources}/tests/support")
# Seconds that a test may take, and that a rank waits for another one. Under a sanitizer programs
# take several times as long, under that of threads ten times and more.
set(limit 1200)
set(patience 2)
if(NOT sanitizer STREQUAL "")
  set(limit 2700)
endif()
if(sanitizer STREQUAL "thread")
  set(patience 10)
endif()
foreach(suite ${suites})
  set(test ${name}.${suite})
  add_test(${test} "${program}" "--gtest_filter=${suite}.*:${suite}/*:*/${suite}.*:*/${suite}/*"
           --gtest_brief=1)
  set(environment
      "GTEST_OUTPUT=json:${results}/${test}.json"
      "FLOW_TIMEOUT_S=${patience}"
      "ASAN_OPTIONS=intercept_tls_get_addr=0:allocator_may_return_null=1"
      "LSAN_OPTIONS=suppressions=${suppressions}/lsan.supp"
      "UBSAN_OPTIONS=print_stacktrace=1"
      "TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${suppressions}/tsan.supp")
  set_tests_properties(${test} PROPERTIES LABELS "${label}" TIMEOUT ${limit} ENVIRONMENT
                                                                             "${environment}")
endforeach()

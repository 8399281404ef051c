// The numbers of random cases, which the environment chooses.
#pragma once

#include <cstdint>

namespace flow {

// FLOW_TEST_CASE names the first case, FLOW_TEST_SEED the first of a large range. Without them the
// cases belong to a day: FLOW_TEST_DAY, which tools/test sets to the day of the commit, or today.
uint64_t first_case();
// FLOW_TEST_CASES, or `usual`.
int num_cases(int usual);
// Prints on one line which cases run and how a single one is run again.
void print_cases();

}  // namespace flow

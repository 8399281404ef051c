// Runs jobs on two hosts. A host is a network namespace with its own host name; a cable connects
// them, 10.77.5.1 (host-a) and 10.77.5.2 (host-b).
#pragma once

#include <string>
#include <vector>

#include "tests/support/job.h"

namespace flow {

// True if the system allows such hosts (root is required, and ip).
bool has_two_hosts();

// The secret of the jobs, as an environment variable.
extern const std::string kJobSecret;

// Runs a shell script on host-a, in which these names are defined:
//   $BIN                  where programs are
//   start_a, start_b      words of flowrun as node 0 and 1: starts them in the background
//   $of_a, $of_b          their process ids
//   on_b                  words of a command to run on host-b
//   pid_on_b PATTERN      the first process there whose command line matches
//   until_in FILE TEXT    waits; a.out and b.out have what the nodes print
// At the end waits for both nodes. The output holds their exit codes, what they have printed, and
// their reports.
JobResult run_on_two_hosts(const std::string& script, std::vector<std::string> environment);

// Two ranks on each host sum numbers until they are asked to stop; `action` runs at the same time.
JobResult disturb_two_hosts(const std::string& action);

// Expects that `text` contains all of `words`.
void expect_words(const std::string& text, const std::vector<std::string>& words);

}  // namespace flow

#define FLOW_SKIP_WITHOUT_TWO_HOSTS() \
  if (!flow::has_two_hosts()) GTEST_SKIP() << "needs root, and ip, for network namespaces"

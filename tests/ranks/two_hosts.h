// Jobs on two hosts. A host is a network namespace with a host name of its own; a cable connects
// them, 10.77.5.1 (host-a) and 10.77.5.2 (host-b).
#pragma once

#include <string>
#include <vector>

#include "tests/support/job.h"

namespace flow {

// Whether the system allows such hosts (to root, with ip).
bool has_two_hosts();

// The secret of their jobs, as a variable of the environment.
extern const std::string kJobSecret;

// Runs a shell script on host-a, which knows:
//   $BIN                  where programs are
//   start_a, start_b      words of flowrun as node 0 and 1: starts them in the background
//   $of_a, $of_b          their process ids
//   on_b                  words of a command to run on host-b
//   pid_on_b PATTERN      the first process there whose command line matches
//   until_in FILE TEXT    waits; a.out and b.out have what the nodes print
// and waits for both in the end. The output names their exit codes, what they have printed, and
// their reports.
JobResult run_on_two_hosts(const std::string& script, std::vector<std::string> environment);

// Two ranks on each host sum numbers until they are asked to stop; `action` runs meanwhile.
JobResult disturb_two_hosts(const std::string& action);

// That `text` has them all.
void expect_words(const std::string& text, const std::vector<std::string>& words);

}  // namespace flow

#define FLOW_SKIP_WITHOUT_TWO_HOSTS() \
  if (!flow::has_two_hosts()) GTEST_SKIP() << "needs root, and ip, for network namespaces"

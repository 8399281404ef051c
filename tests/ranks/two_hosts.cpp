#include "tests/ranks/two_hosts.h"

#include <gtest/gtest.h>

namespace flow {

namespace {

const std::string kHosts = R"sh(
unshare --net --uts sleep 1000 & b=$!
until [ "$(readlink /proc/$b/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
on_b() { nsenter -t $b -n -u "$@"; }
on_b hostname host-b && hostname host-a || exit 125
ip link add va type veth peer name vb netns $b || exit 125
ip addr add 10.77.5.1/24 dev va && ip link set va up && ip link set lo up || exit 125
on_b ip addr add 10.77.5.2/24 dev vb && on_b ip link set vb up && on_b ip link set lo up || exit 125
cd $(mktemp -d)
job="--nnodes 2 --master_addr 10.77.5.1 --report $PWD/report.json"
start_b() { on_b $BIN/flowrun --node_rank 1 $job "$@" > b.out 2>&1 & of_b=$!; }
start_a() { $BIN/flowrun --node_rank 0 $job "$@" > a.out 2>&1 & of_a=$!; }
until_in() { until grep -q "$2" "$1"; do sleep 0.02; done; }
pid_on_b() {
  for p in $(pgrep -f "$1"); do
    [ "$(readlink /proc/$p/ns/net)" = "$(readlink /proc/$b/ns/net)" ] && echo $p && break
  done
}
finish() {
  [ -z "$of_a" ] || wait $of_a; a_status=$?
  [ -z "$of_b" ] || wait $of_b; b_status=$?
  kill $b; wait $b 2>/dev/null
  echo "a ended with $a_status:"; cat a.out; echo "b ended with $b_status:"; cat b.out
  cat report*.json 2>/dev/null; rm -r $PWD; exit 0
}
touch a.out b.out
)sh";

std::vector<std::string> script_on_two_hosts(const std::string& script) {
  return {"unshare", "--net", "--uts", "sh", "-c", kHosts + script + "\nfinish"};
}

}  // namespace

const std::string kJobSecret = "FLOW_JOB_SECRET=a secret of sixteen";

bool has_two_hosts() {
  static const bool has = jobs_are_boxed() && run_job(script_on_two_hosts("")).exit_code == 0;
  return has;
}

JobResult run_on_two_hosts(const std::string& script, std::vector<std::string> environment) {
  environment.emplace_back("FLOW_TIMEOUT_S=60");  // longer than a silent host is waited for
  environment.emplace_back("BIN=" FLOW_PROGRAMS);
  return run_job(script_on_two_hosts(script),
                 {.environment = std::move(environment), .limit_s = 120});
}

JobResult disturb_two_hosts(const std::string& action) {
  return run_on_two_hosts(
      "program=\"--nproc_per_node 2 $BIN/rank_fault until_asked\"\n"
      "start_b $program; start_a $program; until_in a.out ready\n" +
          action,
      {kJobSecret});
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "missing: " << word << "\nin: " << text;
}

}  // namespace flow

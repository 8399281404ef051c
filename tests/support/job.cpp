#include "tests/support/job.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flow {

namespace {

// $0 is the file that receives the list of what remains. Process 1 is this shell.
constexpr const char* kBox = R"(
mount -t proc proc /proc && mount -t tmpfs -o size=2g tmpfs /dev/shm || exit 125
mkdir /dev/shm/tmp && export TMPDIR=/dev/shm/tmp
[ $# -gt 0 ] || exit 0
"$@"
status=$?
for directory in /proc/[0-9]*; do
  [ "$directory" = /proc/1 ] || { tr '\0' ' ' < "$directory/cmdline" 2>/dev/null && echo; } >> "$0"
done
ls -A /dev/shm | grep -v '^tmp$' >> "$0"
echo inspected >> "$0"
exit $status
)";

using Clock = std::chrono::steady_clock;

[[noreturn]] void run_child(const std::vector<std::string>& command, const JobOptions& options,
                            const std::string& output) {
  setsid();
  const int null = open("/dev/null", O_RDONLY);
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(null, 0);
  dup2(file, 1);
  dup2(file, 2);
  unsetenv("GTEST_OUTPUT");
  for (const std::string& entry : options.environment) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> words;
  for (const std::string& word : command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

// Returns the exit code, 128 + signal, or -1 after the limit.
int wait_for(pid_t child, Clock::time_point until) {
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (Clock::now() > until) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// A launcher ends its ranks when it is asked to end; a box ends all its processes when it is
// killed.
void end_session(pid_t leader) {
  kill(-leader, SIGTERM);
  if (wait_for(leader, Clock::now() + std::chrono::seconds(3)) >= 0) return;
  kill(-leader, SIGKILL);
  wait_for(leader, Clock::now() + std::chrono::seconds(3));
}

JobResult run(const std::vector<std::string>& command, const JobOptions& options,
              const std::string& output) {
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) run_child(command, options, output);
  JobResult result;
  result.exit_code = wait_for(child, start + std::chrono::seconds(options.limit_s));
  if (result.exit_code < 0) end_session(child);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::stringstream text;
  text << std::ifstream(output).rdbuf();
  result.output = text.str();
  return result;
}

std::vector<std::string> in_a_box(const std::string& report) {
  std::vector<std::string> words;
  for (const char* word :
       {"unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", kBox}) {
    words.emplace_back(word);
  }
  words.push_back(report);
  return words;
}

JobResult run_once(bool is_boxed, const std::vector<std::string>& command,
                   const JobOptions& options) {
  std::string directory = "/tmp/flow_job_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  const std::string report = directory + "/remains";
  const std::string output = directory + "/output";
  std::vector<std::string> words = is_boxed ? in_a_box(report) : std::vector<std::string>{};
  words.insert(words.end(), command.begin(), command.end());
  JobResult result = run(words, options, output);
  std::ifstream remains(report);
  for (std::string line; std::getline(remains, line);)
    result.remains.push_back(line);
  result.was_inspected = !result.remains.empty() && result.remains.back() == "inspected";
  if (result.was_inspected) result.remains.pop_back();
  unlink(report.c_str());
  unlink(output.c_str());
  rmdir(directory.c_str());
  return result;
}

}  // namespace

bool jobs_are_boxed() {
  static const bool are_boxed = run_once(true, {}, {.limit_s = 10}).exit_code == 0;
  return are_boxed;
}

JobResult run_job(const std::vector<std::string>& command, const JobOptions& options) {
  return run_once(jobs_are_boxed(), command, options);
}

void expect_nothing_remains(const JobResult& job) {
  if (!jobs_are_boxed()) {
    GTEST_SKIP() << "the system allows no namespaces, so what the job leaves behind is not seen";
  }
  EXPECT_TRUE(job.was_inspected) << "the job was ended before it was known what it left behind";
  EXPECT_EQ(job.remains, std::vector<std::string>{}) << job.output;
}

std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const char* word : {"mpirun", "--oversubscribe", "--bind-to", "none", "-n"})
    words.emplace_back(word);
  words.push_back(std::to_string(ranks));
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace flow

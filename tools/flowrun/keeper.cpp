#include "tools/flowrun/keeper.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/job_error.h"
#include "tools/flowrun/launch.h"
#include "tools/flowrun/process.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kKeeperWord = "--keep-rank";
constexpr int kOptionWords = 7;  // flowrun, kKeeperWord, five options
constexpr std::string_view kIgnoreWord = "ignore:";
// Begins each word of the program, because mpirun ends a command line at a word ":".
constexpr char kProgramWord = '=';

// A stopped rank counts as lost if it does not continue within this time.
constexpr milliseconds kStoppedLimit(1500);
// The time that the keeper of a failed rank gives the other ranks to report, before the launcher
// ends them.
constexpr milliseconds kGrace(500);

long environment_number(const char* name, long fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtol(text, nullptr, 10);
}

// Returns 0, or the error number of the failure.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {  // the reader is slow, and made the file non-blocking
      pollfd event{file, POLLOUT, 0};
      poll(&event, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void complain(const std::string& what) {
  static_cast<void>(write_all(STDERR_FILENO, "flowrun: " + what + '\n'));
}

// One output stream of the rank, forwarded line by line so that lines of several ranks do not mix.
class Stream {
 public:
  // What ends with \r counts as a line if a terminal shows the stream: it is progress in place.
  // `owner` is the name of the rank in messages.
  Stream(int target, std::string owner, std::string prefix, bool is_on_terminal)
      : target_(target),
        owner_(std::move(owner)),
        prefix_(std::move(prefix)),
        is_on_terminal_(is_on_terminal) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    source_ = ends[0];
    writing_end_ = ends[1];
    fcntl(source_, F_SETFL, O_NONBLOCK);
  }

  int source() const { return source_; }

  int writing_end() const { return writing_end_; }

  void close_writing_end() { close(writing_end_); }

  // Forwards the output that has arrived.
  void pump() {
    std::array<char, 16384> buffer;
    for (;;) {
      const ssize_t count = read(source_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;
      if (count == 0) return finish();
      take({buffer.data(), static_cast<size_t>(count)});
    }
  }

  bool is_open() const { return source_ >= 0; }

  // The error number of the first write that failed; 0 if none did. A reader that has closed the
  // file does not want the output, so this is no failure.
  int error() const { return error_ == EPIPE ? 0 : error_; }

  void finish() {
    if (source_ < 0) return;
    if (!line_.empty()) put(prefix_ + line_ + '\n');
    close(source_);
    source_ = -1;
  }

 private:
  void take(std::string_view text) {
    if (prefix_.empty()) return put(text);
    std::string lines;
    for (const char c : text) {
      line_ += c;
      if (c != '\n' && !(c == '\r' && is_on_terminal_)) continue;
      lines += prefix_ + line_;
      line_.clear();
    }
    put(lines);
  }

  // After a failure the rest is dropped, so that the rank can go on.
  void put(std::string_view text) {
    if (error_ != 0) return;
    error_ = write_all(target_, text);
    if (error() != 0)
      complain("the output of " + owner_ + " cannot be written: " + std::strerror(error_));
  }

  int target_;
  std::string owner_;
  std::string prefix_;
  bool is_on_terminal_;
  int source_ = -1;
  int writing_end_ = -1;
  int error_ = 0;
  std::string line_;
};

// Binds this rank to its share of the cores that the keeper may use, if every rank gets at least
// one.
void bind_to_cores(long local_rank, long ranks_on_host) {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  const long cores = CPU_COUNT(&all) / ranks_on_host;
  if (cores < 1) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  long index = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all)) continue;
    if (index / cores == local_rank) CPU_SET(core, &mine);
    ++index;
  }
  sched_setaffinity(0, sizeof(mine), &mine);  // if this fails, the rank is slower but correct
}

struct Ending {
  bool is_over = false;
  int exit_code = 0;
  int signal = 0;
  bool was_stopped = false;
};

class Keeper {
 public:
  Keeper(KeeperOptions options, char** program)
      : options_(std::move(options)),
        program_(program),
        rank_(environment_number("OMPI_COMM_WORLD_RANK", 0)),
        world_size_(environment_number("OMPI_COMM_WORLD_SIZE", 1)),
        has_threads_(std::getenv("FLOW_RANKS") != nullptr) {}

  int run() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // gets the processes that the rank leaves behind
    if (options_.session.empty() && !settle()) return kUsage;
    if (options_.binds) {
      bind_to_cores(environment_number("OMPI_COMM_WORLD_LOCAL_RANK", 0),
                    environment_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
    }
    const std::string prefix = options_.has_prefix ? '[' + std::to_string(rank_) + "] " : "";
    const bool is_on_terminal = environment_number(kTerminalWidth, 0) > 0;
    const std::string owner = has_threads_ ? "the thread ranks" : "rank " + std::to_string(rank_);
    Stream out(open_target("out", STDOUT_FILENO), owner, prefix, is_on_terminal);
    Stream err(open_target("err", STDERR_FILENO), owner, prefix, is_on_terminal);
    // The launcher forwards these signals to its children, and so to the keeper.
    for (const int number : {SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE})
      signal(number, SIG_IGN);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, nullptr);
    const int child_events = signalfd(-1, &ended, SFD_NONBLOCK | SFD_CLOEXEC);
    child_ = fork();
    if (child_ == 0) run_child(out, err);
    if (child_ < 0) {
      complain(std::string("cannot start a process for the rank: ") + std::strerror(errno));
      ending_.exit_code = kRankLost;
    } else {
      write_record(options_.session, "pid", rank_, std::to_string(child_));
    }
    out.close_writing_end();
    err.close_writing_end();
    if (child_ > 0) watch(child_events, out, err);
    kill_children({});
    out.pump();  // nobody can write any more
    err.pump();
    out.finish();
    err.finish();
    return conclude(out.error() != 0 ? out.error() : err.error());
  }

 private:
  // On one of several nodes: takes the session from the environment, because each node has its own
  // folder for the program and for the files of MPI.
  bool settle() {
    const char* session = std::getenv("FLOW_STATUS_DIR");
    if (session == nullptr) return false;
    options_.session = session;
    setenv("OMPI_MCA_orte_tmpdir_base", session, 1);
    setenv("OMPI_MCA_btl_vader_backing_directory", session, 1);
    std::string folder;
    std::getline(std::ifstream(options_.session + "/directory"), folder);
    return chdir(folder.c_str()) == 0;
  }

  int open_target(const char* stream, int otherwise) const {
    if (options_.output_dir.empty()) return otherwise;
    std::error_code error;
    std::filesystem::create_directories(options_.output_dir, error);
    const std::string name = options_.output_dir + "/rank_" + std::to_string(rank_) + '.' + stream;
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file >= 0) return file;
    complain("cannot write " + name + ": " + std::strerror(errno));
    return otherwise;
  }

  [[noreturn]] void run_child(const Stream& out, const Stream& err) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int number : {SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ})
      signal(number, SIG_DFL);
    for (const int number : options_.ignored)
      signal(number, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(out.writing_end(), STDOUT_FILENO);
    dup2(err.writing_end(), STDERR_FILENO);
    execvp(program_[0], program_);
    complain(std::string("cannot run ") + program_[0] + ": " + std::strerror(errno));
    _exit(kUsage);
  }

  // Returns when the rank has ended and its output has been forwarded.
  void watch(int child_events, Stream& out, Stream& err) {
    constexpr milliseconds kDrain(200);  // how long a child of the rank may keep the streams open
    Clock::time_point stopped_at{};
    Clock::time_point over_at{};
    while (!ending_.is_over ||
           ((out.is_open() || err.is_open()) && Clock::now() < over_at + kDrain)) {
      std::array<pollfd, 3> files = {
          pollfd{child_events, POLLIN, 0}, {out.source(), POLLIN, 0}, {err.source(), POLLIN, 0}};
      const bool is_waiting = ending_.is_over || stopped_at != Clock::time_point{};
      poll(files.data(), files.size(), is_waiting ? 20 : -1);
      if (files[1].revents != 0) out.pump();
      if (files[2].revents != 0) err.pump();
      std::array<signalfd_siginfo, 8> events;
      while (read(child_events, events.data(), sizeof(events)) > 0)
        continue;
      int status = 0;
      while (!ending_.is_over &&
             waitpid(child_, &status, WNOHANG | WUNTRACED | WCONTINUED) == child_) {
        if (WIFSTOPPED(status)) stopped_at = Clock::now();
        if (WIFCONTINUED(status)) stopped_at = {};
        if (!WIFEXITED(status) && !WIFSIGNALED(status)) continue;
        ending_.is_over = true;
        prctl(PR_SET_PDEATHSIG, 0);  // a launcher that ends now must not keep it from its report
        over_at = Clock::now();
        ending_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        ending_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      }
      if (stopped_at != Clock::time_point{} && !ending_.was_stopped &&
          Clock::now() > stopped_at + kStoppedLimit) {
        ending_.was_stopped = true;
        kill(child_, SIGKILL);
      }
    }
  }

  // True if a rank of this process has joined the job and ended without reporting it.
  bool has_left_silently() const {
    const auto ended = read_records(options_.session, "ended");
    for (const auto& [rank, content] : read_records(options_.session, "running")) {
      const bool is_here =
          rank == rank_ || world_size_ == 1;  // all thread ranks are in this process
      const auto is_same = [own = rank](const auto& other) { return other.first == own; };
      if (is_here && std::none_of(ended.begin(), ended.end(), is_same)) return true;
    }
    return false;
  }

  // `output_error` is the error number with which its output was lost, or 0. The rank itself has
  // not failed then, so the others may go on.
  int conclude(int output_error) const {
    // A rank that joined the job and ended without reporting it has failed, whatever its exit code.
    const bool left_silently = ending_.exit_code == 0 && ending_.signal == 0 && has_left_silently();
    const bool is_good = ending_.exit_code == 0 && ending_.signal == 0 && !left_silently;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    nlohmann::json record = {{"good", is_good},
                             {"exit_code", ending_.exit_code},
                             {"signal", ending_.signal},
                             {"was_started", child_ > 0},
                             {"has_threads", has_threads_},
                             {"was_stopped", ending_.was_stopped},
                             {"left_silently", left_silently},
                             {"time", std::chrono::duration<double>(now).count()}};
    if (output_error != 0) record["output_error"] = std::strerror(output_error);
    write_record(options_.session, "exit", rank_, record.dump());
    if (is_good) return 0;
    const auto until = Clock::now() + kGrace;
    while (Clock::now() < until &&
           read_records(options_.session, "exit").size() < static_cast<size_t>(world_size_)) {
      usleep(5000);
    }
    return ending_.exit_code != 0 ? ending_.exit_code : kRankLost;
  }

  KeeperOptions options_;
  char** program_;
  long rank_;
  long world_size_;
  bool has_threads_;
  pid_t child_ = -1;
  Ending ending_;
};

std::string to_word(const std::vector<int>& signals) {
  std::string word(kIgnoreWord);
  for (const int number : signals)
    word += std::to_string(number) + ',';
  return word;
}

std::vector<int> parse_signals(const char* word) {
  std::vector<int> signals;
  std::istringstream numbers(word + kIgnoreWord.size());
  for (std::string number; std::getline(numbers, number, ',');)
    signals.push_back(static_cast<int>(std::strtol(number.c_str(), nullptr, 10)));
  return signals;
}

}  // namespace

std::vector<std::string> keeper_command(const std::string& flowrun, const KeeperOptions& options,
                                        const std::vector<std::string>& program) {
  std::vector<std::string> words = {flowrun,
                                    std::string(kKeeperWord),
                                    options.session,
                                    options.has_prefix ? "prefix" : "plain",
                                    options.binds ? "cores" : "none",
                                    "dir:" + options.output_dir,
                                    to_word(options.ignored)};
  for (const std::string& word : program)
    words.push_back(kProgramWord + word);
  return words;
}

bool is_keeper_command(int argc, char** argv) {
  return argc > kOptionWords && argv[1] == kKeeperWord;
}

int run_keeper(int argc, char** argv) {
  for (int i = kOptionWords; i < argc; ++i)
    ++argv[i];  // past kProgramWord
  const KeeperOptions options{.session = argv[2],
                              .has_prefix = std::string_view(argv[3]) == "prefix",
                              .binds = std::string_view(argv[4]) == "cores",
                              .output_dir = argv[5] + std::strlen("dir:"),
                              .ignored = parse_signals(argv[6])};
  return Keeper(options, argv + kOptionWords).run();
}

}  // namespace flowrun

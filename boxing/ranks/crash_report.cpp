#include "boxing/ranks/crash_report.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "boxing/ranks/exit_codes.h"
#include "boxing/ranks/forked_child.h"
#include "core/context.h"
#include "core/env.h"
#include "core/signals.h"

namespace flow::boxing {

namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// FLOW_STATUS_DIR, noted before any signal: the handler must not read the environment.
std::string& status_folder() {
  static std::string& folder = *new std::string;
  return folder;
}

// Text of limited length, made without allocating.
class ShortText {
 public:
  ShortText& operator<<(std::string_view text) {
    const size_t count = std::min(text.size(), text_.size() - 1 - size_);
    std::copy_n(text.begin(), count, text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += count;
    return *this;
  }

  ShortText& operator<<(int64_t number) {
    std::array<char, 24> digits{};
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<size_t>(end - digits.data()));
  }

  const char* c_str() const { return text_.data(); }

  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1024> text_{};
  size_t size_ = 0;
};

const char* name_of_signal(int number) {
  switch (number) {
    case SIGSEGV:
      return "Segmentation fault";
    case SIGBUS:
      return "Bus error";
    case SIGFPE:
      return "Floating point exception";
    case SIGILL:
      return "Illegal instruction";
    default:
      return "Aborted";
  }
}

void write_text(int file, std::string_view text) {
  static_cast<void>(write(file, text.data(), text.size()) < 0);  // there is nobody left to tell
}

// The file that write_rank_status would write.
void write_status(int64_t rank, int number, std::string_view message) {
  if (status_folder().empty()) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  ShortText name, scratch, content;
  name << status_folder() << "/failed_" << rank << ".json";
  scratch << name.view() << ".new";
  content << R"({"rank": )" << rank << R"(, "exit_code": )" << int64_t{exit_codes::kRankLost}
          << R"(, "cause": "rank_lost", "signal": )" << int64_t{number} << R"(, "time": )"
          << int64_t{now.tv_sec} << "." << int64_t{now.tv_nsec / 100'000'000} << R"(, "message": ")"
          << message << "\"}";
  const int file = open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  write_text(file, content.view());
  close(file);
  std::rename(scratch.c_str(), name.c_str());
}

// Uses only functions that a signal handler may call.
extern "C" void flow_report_crash(int number) {
  static std::atomic_flag is_reported;  // the first thread counts
  if (is_forked_child()) {
    // Its end is no end of a rank.
  } else if (is_reported.test_and_set()) {
    sleep(1);  // the first thread ends the process as soon as it has reported
  } else {
    const ThreadState* state = flow::internal::current_thread_state;
    const int64_t rank = state == nullptr ? -1 : state->context->rank();
    ShortText message;
    if (rank >= 0) {
      message << "rank " << rank;
    } else {
      message << "a thread that belongs to no rank";
    }
    message << " was ended by signal " << int64_t{number} << " (" << name_of_signal(number) << ")";
    write_status(rank, number, message.view());
    message << "\n";
    write_text(STDERR_FILENO, message.view());
  }
  signal(number, SIG_DFL);
  raise(number);  // takes effect when this handler returns
}

}  // namespace

void report_crashes() {
  status_folder() = env_string("FLOW_STATUS_DIR", "");
  for (const int number : kSignals)
    handle_if_default(number, flow_report_crash, SA_ONSTACK);
}

CrashStack::CrashStack() : memory_(std::make_unique<std::byte[]>(kStackBytes)) {
  stack_t stack = {};
  stack.ss_sp = memory_.get();
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
}

CrashStack::~CrashStack() {
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace flow::boxing

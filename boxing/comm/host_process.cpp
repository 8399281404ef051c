#include "boxing/comm/host_process.h"

#include <fstream>
#include <sstream>
#include <string>

#include <sys/uio.h>
#include <unistd.h>

#include "core/error.h"

namespace flow::boxing {

namespace {

struct Stat {
  char state = '?';
  uint64_t start_time = 0;
};

// Reads /proc/ID/stat: "ID (NAME) STATE …", where NAME may contain anything.
bool read_stat(int64_t id, Stat& stat) {
  std::ifstream file(str("/proc/", id, "/stat"));
  std::string text;
  if (!std::getline(file, text)) return false;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  constexpr int kFieldsBetween = 18;  // between the state and the start time
  fields >> stat.state;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i)
    fields >> skipped;
  return static_cast<bool>(fields >> stat.start_time);
}

// Needs no file descriptor: the program may have used up all of them.
bool is_there(int64_t id) {
  return access(str("/proc/", id).c_str(), F_OK) == 0;
}

}  // namespace

HostProcess own_process() {
  const int64_t id = getpid();
  Stat stat;
  return read_stat(id, stat) ? HostProcess{id, stat.start_time} : HostProcess();
}

ProcessState state_of(const HostProcess& process) {
  if (process.id == 0) return ProcessState::kUnknown;
  Stat stat;
  if (!read_stat(process.id, stat)) {
    return is_there(process.id) ? ProcessState::kRunning : ProcessState::kUnknown;
  }
  if (stat.start_time != process.start_time) return ProcessState::kUnknown;
  switch (stat.state) {
    case 'T':
    case 't':
      return ProcessState::kStopped;
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::kEnded;
    default:
      return ProcessState::kRunning;
  }
}

int64_t read_memory(int64_t process_id, uint64_t address, std::byte* target, int64_t bytes) {
  int64_t read = 0;
  while (read < bytes) {
    const auto rest = static_cast<size_t>(bytes - read);
    const iovec to{target + read, rest};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
    const iovec from{reinterpret_cast<void*>(address + static_cast<uint64_t>(read)), rest};
    const ssize_t count = process_vm_readv(static_cast<pid_t>(process_id), &to, 1, &from, 1, 0);
    if (count <= 0) break;
    read += count;
  }
  return read;
}

}  // namespace flow::boxing

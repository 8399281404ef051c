#include "process_mail.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>

#include <unistd.h>

namespace cuda_emulator {

namespace {

// The files that this process has put. A communicator that waits for a rank whom NCCL has refused
// does not end before the process.
class OwnFiles {
 public:
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(path);
  }

  void remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (paths_.erase(path) > 0) std::remove(path.c_str());
  }

  void remove_all() {
    const std::lock_guard lock(mutex_);
    for (const std::string& path : paths_)
      std::remove(path.c_str());
    paths_.clear();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> paths_;  // guarded by mutex_
};

OwnFiles& own_files() {
  static OwnFiles& instance = *new OwnFiles;  // communicators may end late
  return instance;
}

}  // namespace

ProcessMail::ProcessMail(const std::string& communicator)
    : prefix_("/dev/shm/cuda-emulator-nccl-" + communicator + '-') {}

ProcessMail::~ProcessMail() {
  for (const std::string& path : put_)
    own_files().remove(path);
}

bool ProcessMail::put(const std::string& name, const Bytes& data) {
  std::erase_if(put_, [](const std::string& path) { return access(path.c_str(), F_OK) != 0; });
  const std::string unfinished = path(name) + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary);
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  file.close();
  if (file.fail() || std::rename(unfinished.c_str(), path(name).c_str()) != 0) {
    std::remove(unfinished.c_str());
    return false;
  }
  static const int registered = std::atexit([] { own_files().remove_all(); });
  if (registered != 0) return false;
  own_files().add(path(name));
  put_.push_back(path(name));
  return true;
}

std::optional<ProcessMail::Bytes> ProcessMail::take(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  if (!file) return {};
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  std::remove(path(name).c_str());
  const auto* const begin = reinterpret_cast<const std::byte*>(data.data());
  return Bytes(begin, begin + data.size());
}

bool ProcessMail::is_there(const std::string& name) const {
  return access(path(name).c_str(), F_OK) == 0;
}

std::string ProcessMail::path(const std::string& name) const {
  return prefix_ + name;
}

}  // namespace cuda_emulator

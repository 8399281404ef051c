#include "tools/flowrun/session.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace flowrun {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "flowrun_";
constexpr const char* kNewPrefix = ".flowrun_";  // for a folder that is not locked yet

// Prefers memory, which is fast and is emptied at a reboot. A container may have little of it.
fs::path home() {
  fs::path memory = "/dev/shm";
  constexpr std::uintmax_t kNeeded = 32 << 20;
  std::error_code error;
  const fs::space_info space = fs::space(memory, error);
  if (!error && space.available >= kNeeded && access(memory.c_str(), W_OK | X_OK) == 0) {
    return memory;
  }
  return fs::temp_directory_path();
}

std::string lock_file(const fs::path& directory) {
  return (directory / "lock").string();
}

// Takes the lock of a folder. Returns -1 if its owner is still running.
int try_lock(const fs::path& directory, int flags) {
  const int file = open(lock_file(directory).c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  close(file);
  return -1;
}

void remove_abandoned(const fs::path& where) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(where, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const int lock = try_lock(entry.path(), O_RDWR);
    if (lock < 0) continue;  // in use, or owned by another user
    fs::remove_all(entry.path(), error);
    close(lock);
  }
}

}  // namespace

Session::Session() {
  const fs::path where = home();
  remove_abandoned(where);
  // Locks the folder before it gets its name; otherwise another flowrun might remove it.
  std::string made = (where / (std::string(kNewPrefix) + "XXXXXX")).string();
  if (mkdtemp(made.data()) == nullptr) {
    throw std::runtime_error("cannot create a folder in " + where.string());
  }
  lock_ = try_lock(made, O_RDWR | O_CREAT);
  path_ = (where / fs::path(made).filename().string().substr(1)).string();
  fs::rename(made, path_);
}

Session::~Session() {
  std::error_code error;  // there is nobody to report an error to
  fs::remove_all(path_, error);
  if (lock_ >= 0) close(lock_);
}

std::vector<std::pair<long, std::string>> read_records(const std::string& directory,
                                                       const std::string& kind) {
  std::vector<std::pair<long, std::string>> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kind + "_") || !name.ends_with(".json")) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    records.emplace_back(std::strtol(name.c_str() + kind.size() + 1, nullptr, 10), text.str());
  }
  return records;
}

bool has_failure(const std::string& directory) {
  for (const char* kind : {"failed", "node"}) {
    if (!read_records(directory, kind).empty()) return true;
  }
  for (const auto& [rank, content] : read_records(directory, "exit")) {
    if (content.find("\"good\":false") != std::string::npos) return true;
  }
  return false;
}

void write_record(const std::string& directory, const std::string& kind, long rank,
                  const std::string& content) {
  const fs::path path = fs::path(directory) / (kind + "_" + std::to_string(rank) + ".json");
  const fs::path scratch = path.string() + ".new";
  std::ofstream(scratch) << content;
  std::error_code error;  // if this fails, the exit code still tells
  fs::rename(scratch, path, error);
}

}  // namespace flowrun

#include "nn/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "core/signals.h"
#include "nn/folder_lock.h"

namespace flow::nn {

namespace {
[[noreturn]] void fail(const char* action, const std::string& path, int error) {
  throw IoError(str("[file] cannot ", action, " ", path, ": ", std::strerror(error),
                    error == ENOENT   ? "; check that the folder and file exist"
                    : error == ENOSPC ? "; free space on the disk"
                    : error == EACCES ? "; check the permissions"
                    : error == EMFILE ? "; raise the limit on open files (ulimit -n)"
                    : error == EFBIG  ? "; raise the limit on the size of files (ulimit -f)"
                                      : ""));
}

// Resolves symbolic links: a rename would replace the link and not its target.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  // An inaccessible path fails when the file is created, with a better reason.
  std::error_code error;
  std::filesystem::path target = path;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) break;
    target = target.parent_path() / next;  // `next` itself if it is absolute
  }
  return target.string();
}

// Throws IoError for a device or a pipe, which a rename would replace by a file.
const std::string& writable(const std::string& path) {
  // An inaccessible path fails when the file is created, with a better reason.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw IoError(
        str("[file] cannot write ", path, ": it is not a regular file; give the path of a file"));
  }
  return path;
}

// Creates a temporary file in the folder of `path` under a name that no other writer has: neither
// another rank of this process, nor a crashed process that had the same process id.
std::pair<std::string, int> create_temporary(const std::string& path) {
  static std::atomic<uint64_t> num_names{0};
  for (;;) {
    std::string name = str(path, ".tmp.", getpid(), '.', num_names.fetch_add(1));
    const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor >= 0) return {std::move(name), descriptor};
    if (errno != EEXIST) fail("create", name, errno);
  }
}

extern "C" void flow_leave_error_to_write(int /*signal*/) {}

// Without this, the system ends a process that writes beyond the limit on the size of files; then
// the write fails instead. Programs that this one starts would inherit SIG_IGN, but they do not
// inherit a handler.
void report_size_limit() {
  handle_if_default(SIGXFSZ, flow_leave_error_to_write, SA_RESTART);
}

std::atomic<internal::FileEventHook> event_hook{nullptr};

void before(const char* event) {
  const internal::FileEventHook hook = event_hook.load(std::memory_order_relaxed);
  if (hook != nullptr) hook(event);
}
}  // namespace

InputFile::InputFile(const std::string& path) : InputFile(path, path) {}

InputFile::InputFile(const std::string& path, std::string shown_path)
    : path_(std::move(shown_path)),
      // Without O_NONBLOCK, opening a pipe would wait for a writer before the pipe could be
      // refused.
      descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail("open", path_, errno);

  struct stat info {};

  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor_);
    throw IoError(str("[file] ", path_, " is not a regular file; give the path of a file"));
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() {
  close(descriptor_);
}

void InputFile::read(void* target, size_t bytes) {
  auto* at = static_cast<std::byte*>(target);
  while (bytes > 0) {
    const ssize_t count = ::read(descriptor_, at, std::min<size_t>(bytes, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path_, errno);
    if (count == 0) {
      throw BadFile(str("[file] ", path_, " is truncated: ", bytes, " bytes are missing (it has ",
                        size_, "); copy or write it again"));
    }
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

void InputFile::read_at(uint64_t offset, void* target, size_t bytes) {
  if (lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) fail("read", path_, errno);
  read(target, bytes);
}

OutputFile::OutputFile(const std::string& path) : path_(target_of(writable(path))) {
  static const bool reports_limit = (report_size_limit(), true);
  static_cast<void>(reports_limit);
  before("create");
  std::tie(temporary_, descriptor_) = create_temporary(path_);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(const void* source, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(source);
  before("write");
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor_, at, std::min<size_t>(bytes, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", path_, errno);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

void OutputFile::commit() {
  before("sync");
  if (fsync(descriptor_) != 0) fail("sync", path_, errno);
  if (close(std::exchange(descriptor_, -1)) != 0) fail("close", path_, errno);
  before("rename");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to", path_, errno);
  temporary_.clear();
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  sync_folder(folder.empty() ? "." : folder);
}

void sync_folder(const std::string& path) {
  before("sync folder");
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open the folder", path, errno);
  const int status = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  // Some file systems cannot sync folders. A rename is then as durable as the file system makes it.
  if (status != 0 && error != EINVAL) fail("sync the folder", path, error);
}

bool rename_in_two_steps(const std::string& temporary, const std::string& target) {
  if (rename(temporary.c_str(), target.c_str()) == 0) return true;
  if (errno != EEXIST && errno != ENOTEMPTY) fail("rename to", target, errno);
  const std::string old = temporary + "-old";
  if (rename(target.c_str(), old.c_str()) != 0) fail("rename", target, errno);
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    static_cast<void>(rename(old.c_str(), target.c_str()));
    fail("rename to", target, error);
  }
  if (rename(old.c_str(), temporary.c_str()) != 0) fail("rename to", temporary, errno);
  return false;
}

namespace {

// Puts a folder where another one may be. The two are exchanged in one step where the file system
// can.
bool rename_or_exchange(const std::string& temporary, const std::string& target) {
  const auto rename_with = [&](unsigned flags) {
    return renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), flags) == 0;
  };
  if (rename_with(RENAME_NOREPLACE)) return true;
  if (errno == EINVAL || errno == ENOSYS) return rename_in_two_steps(temporary, target);
  if (errno != EEXIST) fail("rename to", target, errno);
  if (rename_with(RENAME_EXCHANGE)) return false;
  if (errno == EINVAL || errno == ENOSYS) return rename_in_two_steps(temporary, target);
  fail("exchange", target, errno);
}

}  // namespace

void commit_folder(const std::string& temporary, const std::string& target) {
  sync_folder(temporary);
  before("rename");
  const bool is_new = rename_or_exchange(temporary, target);
  const std::string parent = std::filesystem::path(target).parent_path().string();
  sync_folder(parent.empty() ? "." : parent);
  before("remove");
  if (!is_new) remove_unread_folder(temporary);
}

FileLock::FileLock(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("create", path, errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(descriptor_);
  if (error != EWOULDBLOCK) fail("lock", path, error);
  throw IoError(str("[file] ", path, " is locked by another job; give each job its own folder"));
}

FileLock::~FileLock() {
  close(descriptor_);
}

std::string read_text(const std::string& path, uint64_t max_bytes, Site site) {
  const SiteScope scope(site);
  InputFile file(path);
  if (file.size() > max_bytes) {
    throw BadFile(str("[file] ", path, " has ", file.size(), " bytes, but at most ", max_bytes,
                      " are allowed; check that it is the right file"));
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(text.data(), text.size());
  return text;
}

namespace internal {
void set_file_event_hook(FileEventHook hook) {
  event_hook.store(hook, std::memory_order_relaxed);
}
}  // namespace internal

}  // namespace flow::nn

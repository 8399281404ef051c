#include "nn/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace flow::nn {

namespace {
[[noreturn]] void fail(const char* action, const std::string& path, int error) {
  throw IoError(str("[file] cannot ", action, " ", path, ": ", std::strerror(error),
                    error == ENOENT   ? "; check that the folder and file exist"
                    : error == ENOSPC ? "; free space on the disk"
                    : error == EACCES ? "; check the permissions"
                                      : ""));
}
}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail("open", path, errno);

  struct stat info {};

  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor_);
    throw IoError(str("[file] ", path, " is no regular file; give the path of a file"));
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
      throw IoError(str("[file] ", path_, " ends ", bytes, " bytes too early (it has ", size_,
                        "); it is truncated: copy or write it again"));
    }
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

OutputFile::OutputFile(const std::string& path)
    : path_(path),
      temporary_(str(path, ".tmp.", getpid())),
      descriptor_(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("create", temporary_, errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(const void* source, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(source);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor_, at, std::min<size_t>(bytes, size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", path_, errno);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

void OutputFile::commit() {
  if (fsync(descriptor_) != 0) fail("sync", path_, errno);
  if (close(std::exchange(descriptor_, -1)) != 0) fail("close", path_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to", path_, errno);
  temporary_.clear();
  std::string folder = std::filesystem::path(path_).parent_path().string();
  if (folder.empty()) folder = ".";
  const int folder_descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor < 0) fail("open the folder of", path_, errno);
  const int status = fsync(folder_descriptor);
  const int error = errno;
  close(folder_descriptor);
  // Some file systems cannot sync folders; the rename is then as durable as they make it.
  if (status != 0 && error != EINVAL) fail("sync the folder of", path_, error);
}

std::string read_text(const std::string& path) {
  InputFile file(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(text.data(), text.size());
  return text;
}

}  // namespace flow::nn

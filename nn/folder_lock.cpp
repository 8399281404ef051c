#include "nn/folder_lock.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace flow::nn {

namespace {

int open_folder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// A file system without such locks counts as unlocked, because then nobody can lock anything.
bool is_locked_by_another(int descriptor, int kind) {
  return flock(descriptor, kind | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

// The writer renames a folder, locks it exclusively and then removes it. So a folder that still has
// its name after it was locked here stays.
FolderReader::FolderReader(const std::string& path) : descriptor_(open_folder(path)) {
  if (descriptor_ < 0 && errno == ENOENT) return;
  if (descriptor_ < 0) {
    throw IoError(str("[file] cannot open the folder ", path, ": ", std::strerror(errno),
                      "; check the permissions"));
  }
  if (is_locked_by_another(descriptor_, LOCK_SH)) return;

  struct stat named {
  }, held{};

  is_kept_ = stat(path.c_str(), &named) == 0 && fstat(descriptor_, &held) == 0 &&
             named.st_ino == held.st_ino && named.st_dev == held.st_dev;
}

FolderReader::~FolderReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string FolderReader::path_of(const std::string& file) const {
  return str("/proc/self/fd/", descriptor_, '/', file);
}

bool remove_unread_folder(const std::string& path) {
  const int descriptor = open_folder(path);
  const bool is_read = descriptor >= 0 && is_locked_by_another(descriptor, LOCK_EX);
  if (!is_read) {
    std::error_code error;  // the next save removes what is left
    std::filesystem::remove_all(path, error);
  }
  if (descriptor >= 0) close(descriptor);
  return !is_read;
}

}  // namespace flow::nn

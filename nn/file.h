// Reading and writing files. Every failure is an IoError with the path and the reason. A file that
// is written appears complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/site.h"

namespace flow::nn {

// A regular file, opened for reading from its start.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  // Errors name `shown_path` instead of `path`.
  InputFile(const std::string& path, std::string shown_path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const { return size_; }

  // Reads exactly `bytes`. Throws IoError if the file ends before.
  void read(void* target, size_t bytes);
  // The same, starting at `offset`; the next read() continues after it.
  void read_at(uint64_t offset, void* target, size_t bytes);

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// Writes to a temporary file in the same folder and renames it to `path` at commit(), after syncing
// file and folder. Without a commit the temporary file is removed. Several writers of one path do
// not disturb each other: the last commit wins. If `path` is a symbolic link, its target is
// written.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* source, size_t bytes);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

// Returns the whole file as text. Throws IoError if it has more than `max_bytes`.
std::string read_text(const std::string& path, uint64_t max_bytes = uint64_t{1} << 34,
                      Site site = Site::here());

// Makes the entries of a folder durable.
void sync_folder(const std::string& path);
// Renames a folder to `target`, atomically and durably. A folder that `target` named before is
// exchanged with it, and then removed unless it is being read (nn/folder_lock.h).
void commit_folder(const std::string& temporary, const std::string& target);
// What it does on network file systems, whose rename has no flags. Returns whether the target is
// new; else `temporary` is the old folder afterwards. Between the two renames there is no target.
bool rename_in_two_steps(const std::string& temporary, const std::string& target);

// A lock file that one process can hold at a time. It does not wait for the lock.
class FileLock {
 public:
  // Throws IoError if another process holds the lock.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

namespace internal {
// If a hook is set, it is called before every step that changes the disk, so that a test can end
// the process at that point.
using FileEventHook = void (*)(const char* event);
void set_file_event_hook(FileEventHook hook);
}  // namespace internal

}  // namespace flow::nn

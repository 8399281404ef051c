// Files as the library reads and writes them: every failure is an IoError with path and reason, and
// a written file appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flow::nn {

// A file opened for reading from its start.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const { return size_; }

  // Exactly `bytes`; IoError when the file ends before.
  void read(void* target, size_t bytes);
  // The same from any place, from which the next read() goes on.
  void read_at(uint64_t offset, void* target, size_t bytes);

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// Writes beside `path` and renames at commit(), after syncing file and folder. Without a commit the
// temporary file is removed. Several may write one path at once: the last commit counts. Where
// `path` is a link, all this happens to the file it leads to.
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

// The whole file as text; IoError when it has more than `max_bytes`.
std::string read_text(const std::string& path, uint64_t max_bytes = uint64_t{1} << 34);

// Makes the names in a folder durable.
void sync_folder(const std::string& path);
// Renames a folder to `target`, durably and at once; what was there is exchanged and then removed.
void commit_folder(const std::string& temporary, const std::string& target);

// A file that one process at a time holds; waits for nobody.
class FileLock {
 public:
  // Throws IoError when another has it.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

namespace internal {
// Called, when set, before every step that changes the disk, so that a test can end the process
// there.
using FileEventHook = void (*)(const char* event);
void set_file_event_hook(FileEventHook hook);
}  // namespace internal

}  // namespace flow::nn

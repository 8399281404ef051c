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

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// Writes beside `path` and renames at commit(), after syncing file and folder. Without a commit the
// temporary file is removed.
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
  int descriptor_;
};

// The whole file as text.
std::string read_text(const std::string& path);

}  // namespace flow::nn

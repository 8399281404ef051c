// A folder for the files of a test.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace flow {

// A place for folders of many small files: in memory, where the system has one there.
inline std::string fast_parent() {
  const std::string memory = "/dev/shm";
  const bool has_memory = access(memory.c_str(), W_OK | X_OK) == 0;
  return has_memory ? memory : std::filesystem::temp_directory_path().string();
}

// A new folder with a name of its own, so that tests of several builds may run at the same time.
// The folder and all files in it are removed with the object, but not in a forked process that ends
// by _exit.
class TempFolder {
 public:
  explicit TempFolder(const std::string& parent = std::filesystem::temp_directory_path().string())
      : path_(parent + "/flow_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot create " + path_);
  }

  ~TempFolder() {
    std::error_code error;  // there is nobody to report an error to
    std::filesystem::remove_all(path_, error);
  }

  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  // The path of a file or folder in it.
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace flow

#include "tests/fuzz/formats.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

namespace flow::fuzz {

namespace {

struct Folder {
  std::string path;

  Folder() {
    const std::string memory = "/dev/shm";
    const bool has_memory = access(memory.c_str(), W_OK | X_OK) == 0;
    path = (has_memory ? memory : std::filesystem::temp_directory_path().string()) +
           "/flow_fuzz_XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot create " + path);
  }

  ~Folder() {
    std::error_code error;  // there is nobody to report an error to
    std::filesystem::remove_all(path, error);
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

std::vector<Format> all_formats() {
  std::vector<Format> formats;
  add_data_formats(formats);
  add_tensor_formats(formats);
  add_graph_formats(formats);
  add_conform_formats(formats);
  add_launcher_formats(formats);
  return formats;
}

const std::string& scratch_folder() {
  static const Folder folder;
  return folder.path;
}

std::string write_scratch(const std::string& name, const std::string& bytes) {
  std::string path = scratch_folder() + '/' + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace flow::fuzz

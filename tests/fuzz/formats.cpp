#include "tests/fuzz/formats.h"

#include <fstream>
#include <stdexcept>

#include "tests/support/temp_folder.h"

namespace flow::fuzz {

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
  static const TempFolder folder(fast_parent());
  return folder.path();
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

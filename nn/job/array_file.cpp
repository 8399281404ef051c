#include "nn/job/array_file.h"

#include <vector>

#include "nn/file.h"
#include "nn/safetensors_index.h"

namespace flow {

std::map<std::string, Array> load_arrays(const std::string& path) {
  std::map<std::string, Array> arrays;
  nn::InputFile file(path);
  std::vector<std::byte> bytes;
  for (const nn::SafetensorsEntry& entry : nn::read_safetensors_index(path)) {
    bytes.resize(static_cast<size_t>(entry.end - entry.begin));
    file.read_at(entry.begin, bytes.data(), bytes.size());
    arrays.emplace(entry.name, Array::copy_of(bytes.data(), entry.dtype, entry.shape));
  }
  return arrays;
}

void save_arrays(const std::string& path, const std::map<std::string, Array>& arrays) {
  std::vector<nn::SafetensorsData> entries;
  for (const auto& [name, array] : arrays)
    entries.push_back({name, array.dtype(), array.shape(), array.data()});
  nn::write_safetensors(path, entries, {});
}

}  // namespace flow

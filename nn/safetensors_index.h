// What a safetensors file holds and where, without reading the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "nn/safetensors.h"

namespace flow::nn {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the file
  uint64_t end = 0;
};

// In order of their place in the file; they fill it from the header to its end. Throws IoError as
// load_safetensors does.
std::vector<SafetensorsEntry> read_safetensors_index(const std::string& path,
                                                     Metadata* metadata = nullptr);

// What a file is to have.
struct SafetensorsData {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  const std::byte* data = nullptr;  // in row-major order
};

// In the order given. Throws as save_safetensors does.
void write_safetensors(const std::string& path, const std::vector<SafetensorsData>& entries,
                       const Metadata& metadata);

// "F32" and the like.
std::string_view safetensors_name(DType dtype);
std::optional<DType> dtype_of_safetensors(std::string_view name);

}  // namespace flow::nn

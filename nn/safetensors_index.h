// The index of a safetensors file: which tensors it has and where they are stored, without reading
// their data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "nn/file.h"
#include "nn/safetensors.h"

namespace flow::nn {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the file
  uint64_t end = 0;
};

// The entries in the order of their data, which fills the file from the header to its end; entries
// of dtypes that flow does not have are left out with a warning. Throws IoError as
// load_safetensors.
std::vector<SafetensorsEntry> read_safetensors_index(const std::string& path,
                                                     Metadata* metadata = nullptr);
// The same for an open file, whose path is for error texts.
std::vector<SafetensorsEntry> read_safetensors_index(InputFile& file, const std::string& path,
                                                     Metadata* metadata = nullptr);

// One tensor to write.
struct SafetensorsData {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  const std::byte* data = nullptr;  // in row-major order
};

// Writes tensors in the given order. Throws as save_safetensors.
void write_safetensors(const std::string& path, const std::vector<SafetensorsData>& entries,
                       const Metadata& metadata);

// The name of a dtype in the format, for example "F32".
std::string_view safetensors_name(DType dtype);
std::optional<DType> dtype_of_safetensors(std::string_view name);

}  // namespace flow::nn

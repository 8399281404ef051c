// The safetensors file format, interchangeable with the Python package: an 8-byte header length, a
// JSON header, the tensors' bytes.
#pragma once

#include <map>
#include <string>

#include "nn/module.h"

namespace flow::nn {

using Metadata = std::map<std::string, std::string>;

// Writes local or global tensors (gathered) of any dtype. The file appears whole or not at all: it
// is written beside its target, synced and renamed. Throws IoError with path and reason (a full
// disk, a missing folder) and removes what was written; InvalidArgument for names that the format
// does not have: __metadata__ and what is no UTF-8.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const Metadata& metadata = {});

// Reads all tensors as local CPU tensors. The file is not trusted: sizes, offsets, dtypes and the
// header are checked before memory is allocated. Throws IoError naming path and what is wrong.
StateDict load_safetensors(const std::string& path, Metadata* metadata = nullptr);

}  // namespace flow::nn

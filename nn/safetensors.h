// The safetensors file format, compatible with the Python package: an 8-byte header length, a JSON
// header, and the bytes of the tensors.
#pragma once

#include <map>
#include <string>

#include "nn/module.h"

namespace flow::nn {

using Metadata = std::map<std::string, std::string>;

// Writes tensors of any dtype, local or global (gathered; the call is then collective). The file
// appears complete or not at all: it is written to a temporary file in the same folder, synced and
// renamed. Throws IoError with path and reason (a full disk, a missing folder) and removes what was
// written; InvalidArgument for names that the format does not allow: __metadata__ and text that is
// not UTF-8.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const Metadata& metadata = {}, Site site = Site::here());

// Reads all tensors as local CPU tensors, and the metadata if `metadata` is not null. The file is
// not trusted: the header, sizes, offsets and dtypes are checked before memory is allocated.
// Tensors of the format's dtypes that flow does not have (C64, F8_E4M3, U16 and others) are left
// out, and a warning names them. Throws IoError, naming the path and the defect.
StateDict load_safetensors(const std::string& path, Metadata* metadata = nullptr,
                           Site site = Site::here());

}  // namespace flow::nn

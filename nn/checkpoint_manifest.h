// The manifest of a checkpoint: which tensors it has, and which bytes of which file hold each
// slice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/generator.h"
#include "core/tensor_meta.h"
#include "nn/safetensors.h"

namespace flow::nn {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// A row-major box of a logical tensor.
struct CheckpointSlice {
  Box box;
  uint64_t file = 0;    // index into Manifest::files
  uint64_t offset = 0;  // in bytes, from the start of the file
};

struct CheckpointTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<CheckpointSlice> slices;
};

struct CheckpointPart {
  std::string name;  // in the checkpoint's folder
  uint64_t bytes = 0;
  std::vector<uint32_t> checksums;  // CRC-32 of each chunk of kChunkBytes
};

struct Manifest {
  int64_t step = 0;
  std::string id;  // random id of this save; the files contain it as well
  int64_t world_size = 1;
  Metadata metadata;
  Generator::State generator;
  std::vector<CheckpointPart> files;
  std::map<std::string, CheckpointTensor> tensors;
};

// Formats a manifest as JSON with a checksum.
std::string to_text(const Manifest& manifest);
// Parses a manifest. The text is not trusted: every number is checked, the slices of a tensor must
// cover it without overlap, and file names must not contain a folder. Throws IoError, naming
// `path`.
Manifest parse_manifest(const std::string& text, const std::string& path);

// Formats the part of a manifest that one rank sends to another: the rank's file and the slices in
// it.
std::string part_to_text(const CheckpointPart& file,
                         const std::map<std::string, CheckpointTensor>& tensors);
// Adds such a part to `manifest`; parts are added in order of ranks. Throws InvalidArgument if its
// tensors have other names, shapes or dtypes than those of rank 0.
void add_part(Manifest& manifest, const std::string& text);

// The CRC-32 (as in gzip) of at most kChunkBytes bytes.
uint32_t chunk_checksum(const void* data, size_t bytes);

}  // namespace flow::nn

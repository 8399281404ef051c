// The manifest of a checkpoint: which tensors it has, and which bytes of which file each slice is.
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
  uint64_t offset = 0;  // bytes from the file's start
};

struct CheckpointTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<CheckpointSlice> slices;
};

struct CheckpointPart {
  std::string name;  // in the checkpoint's folder
  uint64_t bytes = 0;
  std::vector<uint32_t> checksums;  // CRC-32 of every kChunkBytes
};

struct Manifest {
  int64_t step = 0;
  std::string id;  // of this save; the files carry it as well
  int64_t world_size = 1;
  Metadata metadata;
  Generator::State generator;
  std::vector<CheckpointPart> files;
  std::map<std::string, CheckpointTensor> tensors;
};

// JSON with a checksum of its own.
std::string to_text(const Manifest& manifest);
// Not trusted: every number is checked, slices fill their tensors without overlap, names of files
// have no folder part. Throws IoError naming `path`.
Manifest parse_manifest(const std::string& text, const std::string& path);

// A part of a manifest, as one rank hands it to another: its file and that file's slices.
std::string part_to_text(const CheckpointPart& file,
                         const std::map<std::string, CheckpointTensor>& tensors);
// Adds it to `manifest`.
void add_part(Manifest& manifest, const std::string& text);

// CRC-32 (as in gzip) of up to kChunkBytes bytes.
uint32_t chunk_checksum(const void* data, size_t bytes);

}  // namespace flow::nn

#include "nn/checkpoint_manifest.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/error.h"
#include "nn/checked_json.h"
#include "nn/checkpoint_cover.h"
#include "nn/safetensors_index.h"

namespace flow::nn {

namespace {

using Json = nlohmann::json;

constexpr int64_t kFormat = 1;

std::vector<int64_t> list_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

Json json_of(const CheckpointPart& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"crc32", file.checksums}};
}

Json json_of(const std::map<std::string, CheckpointTensor>& tensors) {
  Json result = Json::object();
  for (const auto& [name, tensor] : tensors) {
    Json slices = Json::array();
    for (const CheckpointSlice& slice : tensor.slices) {
      slices.push_back({{"begin", list_of(slice.box.begin)},
                        {"size", list_of(slice.box.size)},
                        {"file", slice.file},
                        {"offset", slice.offset}});
    }
    result[name] = {{"dtype", safetensors_name(tensor.dtype)},
                    {"shape", list_of(tensor.shape)},
                    {"slices", std::move(slices)}};
  }
  return result;
}

// Reads the members of untrusted JSON.
class ManifestReader {
 public:
  explicit ManifestReader(std::string path) : path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw BadFile(str("[checkpoint] ", path_, " is not a valid manifest: ", why,
                      "; restore a copy or use an older step"));
  }

  const Json& member(const Json& object, const char* name, Json::value_t type) const {
    if (!object.is_object() || !object.contains(name)) fail(str(name, " is missing"));
    const Json& value = object[name];
    const bool is_number =
        type == Json::value_t::number_unsigned && value.is_number_integer() && value >= 0;
    if (value.type() != type && !is_number) fail(str(name, " has the wrong type"));
    return value;
  }

  uint64_t number(const Json& object, const char* name) const {
    return member(object, name, Json::value_t::number_unsigned).get<uint64_t>();
  }

  int64_t count(const Json& object, const char* name) const {
    const uint64_t value = number(object, name);
    if (value > uint64_t{1} << 62) fail(str(name, " is too large"));
    return static_cast<int64_t>(value);
  }

  std::string text(const Json& object, const char* name) const {
    return member(object, name, Json::value_t::string).get<std::string>();
  }

  Shape sizes(const Json& object, const char* name) const {
    Shape result;
    const Json& list = member(object, name, Json::value_t::array);
    if (list.size() > kMaxDims) fail(str(name, " has more than ", kMaxDims, " numbers"));
    for (const Json& size : list) {
      if (!size.is_number_integer() || size < 0 || size > (int64_t{1} << 62)) {
        fail(str(name, " contains a value that is not a size"));
      }
      result.push_back(size.get<int64_t>());
    }
    return result;
  }

  CheckpointPart part(const Json& json) const {
    CheckpointPart part{
        .name = text(json, "name"), .bytes = number(json, "bytes"), .checksums = {}};
    const bool is_plain =
        !part.name.empty() && part.name[0] != '.' &&
        std::all_of(part.name.begin(), part.name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        });
    if (!is_plain || part.name == kManifestName) fail("a file has a name that no save has written");
    for (const Json& checksum : member(json, "crc32", Json::value_t::array)) {
      if (!checksum.is_number_unsigned() || checksum > UINT32_MAX)
        fail("a checksum is not a 32-bit number");
      part.checksums.push_back(checksum.get<uint32_t>());
    }
    if (part.bytes > uint64_t{1} << 62 ||
        part.checksums.size() != (part.bytes + kChunkBytes - 1) / kChunkBytes) {
      fail(str(part.name, " does not have one checksum per chunk"));
    }
    return part;
  }

  CheckpointTensor tensor(const std::string& name, const Json& json, size_t num_files) const {
    CheckpointTensor tensor;
    const std::optional<DType> dtype = dtype_of_safetensors(text(json, "dtype"));
    if (!dtype) fail(str(name, " has an unknown dtype"));
    tensor.dtype = *dtype;
    tensor.shape = sizes(json, "shape");
    for (const Json& value : member(json, "slices", Json::value_t::array)) {
      CheckpointSlice slice{.box = {sizes(value, "begin"), sizes(value, "size")},
                            .file = number(value, "file"),
                            .offset = number(value, "offset")};
      const bool has_dims = slice.box.begin.size() == tensor.shape.size() &&
                            slice.box.size.size() == tensor.shape.size();
      if (!has_dims || slice.file >= num_files)
        fail(str(name, " has a slice with an invalid file or number of dims"));
      tensor.slices.push_back(std::move(slice));
    }
    return tensor;
  }

  // Checks that the slices are inside the tensor and inside their files, do not overlap, and cover
  // all elements.
  void check_cover(const std::string& name, const CheckpointTensor& tensor,
                   const std::vector<CheckpointPart>& files) const {
    uint64_t numel = 1;
    for (const int64_t size : tensor.shape) {
      if (__builtin_mul_overflow(numel, static_cast<uint64_t>(size), &numel) || numel > uint64_t{1}
                                                                                            << 58) {
        fail(str(name, " is too large"));
      }
    }
    uint64_t covered = 0;
    for (const CheckpointSlice& slice : tensor.slices) {
      uint64_t elements = 1;
      for (int64_t dim = 0; dim < tensor.shape.size(); ++dim) {
        if (slice.box.begin[dim] > tensor.shape[dim] ||
            slice.box.size[dim] > tensor.shape[dim] - slice.box.begin[dim]) {
          fail(str(name, " has a slice beyond its shape"));
        }
        elements *= static_cast<uint64_t>(slice.box.size[dim]);  // at most numel
      }
      const uint64_t bytes = elements * dtype_size(tensor.dtype);
      const uint64_t file_bytes = files[slice.file].bytes;
      if (slice.offset > file_bytes || bytes > file_bytes - slice.offset) {
        fail(str(name, " has a slice beyond the end of ", files[slice.file].name));
      }
      covered += elements;
    }
    if (covered != numel) fail(str("the slices of ", name, " do not cover it exactly once"));
    if (have_overlap(tensor.slices)) fail(str(name, " has slices that overlap"));
  }

 private:
  std::string path_;
};

}  // namespace

uint32_t chunk_checksum(const void* data, size_t bytes) {
  return static_cast<uint32_t>(
      crc32(0, static_cast<const unsigned char*>(data), static_cast<unsigned>(bytes)));
}

std::string to_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const CheckpointPart& file : manifest.files)
    files.push_back(json_of(file));
  const Json body = {{"format", kFormat},
                     {"step", manifest.step},
                     {"id", manifest.id},
                     {"world_size", manifest.world_size},
                     {"metadata", manifest.metadata},
                     {"seed", manifest.generator.seed},
                     {"next_stream", manifest.generator.next_stream},
                     {"files", std::move(files)},
                     {"tensors", json_of(manifest.tensors)}};
  const std::string text = body.dump();
  return Json{{"crc32", crc32(0, reinterpret_cast<const unsigned char*>(text.data()),
                              static_cast<unsigned>(text.size()))},
              {"manifest", body}}
      .dump();
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const ManifestReader reader(path);
  // The numbers of a slice are at depth 6.
  const Json json =
      parse_checked(text, {.max_depth = 7}, [&](const std::string& why) { reader.fail(why); });
  const Json& body = reader.member(json, "manifest", Json::value_t::object);
  const std::string body_text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (crc32(0, reinterpret_cast<const unsigned char*>(body_text.data()),
            static_cast<unsigned>(body_text.size())) != reader.number(json, "crc32")) {
    reader.fail("its checksum differs; the file is damaged");
  }
  if (reader.number(body, "format") != kFormat) {
    reader.fail(str("it has format ", reader.number(body, "format"),
                    ", but this version reads format ", kFormat));
  }
  Manifest manifest{.step = reader.count(body, "step"),
                    .id = reader.text(body, "id"),
                    .world_size = reader.count(body, "world_size"),
                    .metadata = {},
                    .generator = {.seed = reader.number(body, "seed"),
                                  .next_stream = reader.number(body, "next_stream")},
                    .files = {},
                    .tensors = {}};
  for (const auto& [key, value] : reader.member(body, "metadata", Json::value_t::object).items()) {
    if (!value.is_string()) reader.fail("metadata contains a value that is not text");
    manifest.metadata.emplace(key, value.get<std::string>());
  }
  for (const Json& file : reader.member(body, "files", Json::value_t::array))
    manifest.files.push_back(reader.part(file));
  for (const auto& [name, value] : reader.member(body, "tensors", Json::value_t::object).items()) {
    const CheckpointTensor tensor = reader.tensor(name, value, manifest.files.size());
    reader.check_cover(name, tensor, manifest.files);
    manifest.tensors.emplace(name, tensor);
  }
  return manifest;
}

namespace {

std::string text_of(const std::map<std::string, CheckpointTensor>& tensors,
                    const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? "does not have it"
                                : str("has ", found->second.shape, ' ', found->second.dtype);
}

// Throws InvalidArgument unless a rank describes the tensors as rank 0 does: a manifest has one
// shape and dtype for each name.
void check_agreement(const std::map<std::string, CheckpointTensor>& first,
                     const std::map<std::string, CheckpointTensor>& other, size_t rank) {
  for (const auto* tensors : {&first, &other}) {
    for (const auto& [name, tensor] : *tensors) {
      const std::string its = text_of(first, name), own = text_of(other, name);
      if (its == own) continue;
      throw InvalidArgument(str("[checkpoint] ranks disagree about the tensor ", name, ": rank 0 ",
                                its, ", rank ", rank, ' ', own,
                                "; save the same names, shapes and dtypes on all ranks"));
    }
  }
}

}  // namespace

std::string part_to_text(const CheckpointPart& file,
                         const std::map<std::string, CheckpointTensor>& tensors) {
  return Json{{"file", json_of(file)}, {"tensors", json_of(tensors)}}.dump();
}

void add_part(Manifest& manifest, const std::string& text) {
  const ManifestReader reader("a rank's part");
  const Json json = Json::parse(text);
  const size_t rank = manifest.files.size();
  manifest.files.push_back(reader.part(json["file"]));
  std::map<std::string, CheckpointTensor> parts;
  for (const auto& [name, value] : json["tensors"].items())
    parts.emplace(name, reader.tensor(name, value, manifest.files.size()));
  if (rank == 0) {
    manifest.tensors = std::move(parts);
    return;
  }
  check_agreement(manifest.tensors, parts, rank);
  for (auto& [name, part] : parts) {
    for (CheckpointSlice& slice : part.slices) {
      slice.file = rank;
      manifest.tensors[name].slices.push_back(std::move(slice));
    }
  }
}

}  // namespace flow::nn

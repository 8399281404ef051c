// Files of tensors, and the manifest of a checkpoint.
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/error.h"
#include "nn/checked_json.h"
#include "nn/checkpoint_manifest.h"
#include "nn/file.h"
#include "nn/npy.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "ops/shape/view.h"
#include "tests/fuzz/formats.h"

namespace flow::fuzz {

namespace {

// Arrays of NumPy may have elements that flow does not support.
template <class Load>
Format file_format(const std::string& name, std::vector<std::string> seeds, Load load) {
  return {.name = name, .seeds = std::move(seeds), .read = [name, load](const std::string& bytes) {
            const std::string path = write_scratch(name, bytes);
            return reads_or_refuses<BadFile, Unsupported>(path, [&] { load(path); });
          }};
}

nn::StateDict some_tensors() {
  return {{"a.weight", ones({2, 3})}, {"b", zeros({4}, {.dtype = int64})}};
}

Format safetensors() {
  const std::string good = scratch_folder() + "/good_safetensors";
  nn::save_safetensors(good, some_tensors(), {{"key", "value"}});
  return file_format("safetensors", {nn::read_text(good)},
                     [](const std::string& path) { nn::load_safetensors(path); });
}

Format npy() {
  const std::string good = scratch_folder() + "/good_npy";
  nn::save_npy(good, arange(6).reshape({2, 3}));
  return file_format("npy", {nn::read_text(good)},
                     [](const std::string& path) { nn::load_npy(path); });
}

Format npz() {
  const std::string good = scratch_folder() + "/good_npz";
  std::vector<std::string> seeds;
  for (const bool compressed : {false, true}) {
    nn::save_npz(good, some_tensors(), {.compressed = compressed});
    seeds.push_back(nn::read_text(good));
  }
  return file_format("npz", seeds, [](const std::string& path) { nn::load_npz(path); });
}

// The manifest with the checksum of its content, which a changed one lacks; other texts unchanged.
std::string sealed(const std::string& text) {
  struct NoJson {};

  nlohmann::json json;
  try {
    json = nn::parse_checked(text, {.max_depth = 100}, [](const std::string&) { throw NoJson(); });
  } catch (const NoJson&) {
    return text;
  }
  if (!json.is_object() || !json.contains("manifest")) return text;
  const std::string body =
      json["manifest"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  json["crc32"] = crc32(0, reinterpret_cast<const unsigned char*>(body.data()),
                        static_cast<unsigned>(body.size()));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Format manifest() {
  const nn::CheckpointTensor tensor{.dtype = float32,
                                    .shape = {4, 3},
                                    .slices = {{.box = {{0, 0}, {2, 3}}, .file = 0, .offset = 80},
                                               {.box = {{2, 0}, {2, 3}}, .file = 1, .offset = 80}}};
  const nn::Manifest manifest{
      .step = 7,
      .id = "0123",
      .world_size = 2,
      .metadata = {{"epoch", "1"}},
      .generator = {},
      .files = {{"rank-00000.safetensors", 104, {1}}, {"rank-00001.safetensors", 104, {2}}},
      .tensors = {{"w", tensor}}};
  return {
      .name = "manifest", .seeds = {nn::to_text(manifest)}, .read = [](const std::string& bytes) {
        const bool is_whole =
            reads_or_refuses<BadFile>("fuzzed", [&] { nn::parse_manifest(bytes, "fuzzed"); });
        if (is_whole) return true;
        return reads_or_refuses<BadFile>("fuzzed",
                                         [&] { nn::parse_manifest(sealed(bytes), "fuzzed"); });
      }};
}

}  // namespace

void add_tensor_formats(std::vector<Format>& formats) {
  formats.push_back(safetensors());
  formats.push_back(npy());
  formats.push_back(npz());
  formats.push_back(manifest());
}

}  // namespace flow::fuzz

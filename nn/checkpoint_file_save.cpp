// Saving a checkpoint: what each rank writes, and how all files become visible at once.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <set>

#include "boxing/comm/communicator.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "nn/checkpoint_file.h"
#include "nn/checkpoint_folder.h"
#include "nn/checkpoint_manifest.h"
#include "nn/file.h"
#include "nn/folder_lock.h"
#include "nn/safetensors_index.h"
#include "ops/creation/copy.h"

namespace flow::nn {

namespace {

namespace fs = std::filesystem;

// ---------------------------------------------------------------- ranks agree on each phase

// Exchanges texts between all ranks; the result is by rank. Collective over the world.
std::vector<std::string> gather_texts(const std::string& own, Site site) {
  RankContext& context = *thread_state().context;
  if (context.world_size() == 1) return {own};
  boxing::Communicator& world = boxing::world_communicator(context);
  const boxing::Fingerprint what{.op = "checkpoint", .site = site};
  const auto ranks = static_cast<size_t>(context.world_size());
  const auto own_size = static_cast<int64_t>(own.size());
  std::vector<int64_t> sizes(ranks);
  world.all_gather(&own_size, sizes.data(), std::vector<int64_t>(ranks, sizeof(own_size)), what);
  int64_t total = 0;
  for (const int64_t size : sizes)
    total += size;
  std::string all(static_cast<size_t>(total), '\0');
  world.all_gather(own.data(), all.data(), sizes, what);
  std::vector<std::string> texts;
  size_t at = 0;
  for (const int64_t size : sizes) {
    texts.push_back(all.substr(at, static_cast<size_t>(size)));
    at += static_cast<size_t>(size);
  }
  return texts;
}

// Runs `phase`, which returns a text, on this rank and returns the texts of all ranks. If it throws
// on any rank, all ranks throw IoError with the reason of the first such rank.
template <class Phase>
std::vector<std::string> in_agreement(Site site, const Phase& phase) {
  std::string own;
  try {
    own = "+" + phase();
  } catch (const Error& error) {
    own = "-" + error.message();  // the error that all ranks throw has the line
  } catch (const std::exception& error) {
    own = str("-", error.what());
  }
  std::vector<std::string> texts = gather_texts(own, site);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank][0] == '-') {
      throw IoError(str(texts[rank].substr(1), " (on rank ", rank, "); nothing was saved"));
    }
    texts[rank].erase(0, 1);
  }
  return texts;
}

// ---------------------------------------------------------------- what this rank writes

// The box of `tensor` that this rank writes: the box it holds, unless a rank at an earlier position
// holds the same.
std::optional<Box> own_box(const Tensor& tensor) {
  const TensorMeta& meta = tensor.meta();
  const int64_t rank = env::rank();
  if (meta.numel == 0) return std::nullopt;
  if (!meta.is_global()) {
    if (rank != 0) return std::nullopt;
    return Box{Shape::filled(meta.dim(), 0), meta.shape};
  }
  const int64_t position = meta.placement.position(rank);
  if (position < 0) return std::nullopt;
  const Box box = box_of(meta.shape, meta.placement, meta.nd_sbp, position);
  if (box.size.numel() == 0) return std::nullopt;
  for (int64_t other = 0; other < position; ++other) {
    if (box_of(meta.shape, meta.placement, meta.nd_sbp, other) == box) return std::nullopt;
  }
  return box;
}

void check_savable(int64_t step, const StateDict& tensors) {
  if (step < 0) {
    throw InvalidArgument(
        str("[checkpoint] step must not be negative; received ", step, "; count steps from 0"));
  }
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_global()) continue;
    const NdSbp& nd_sbp = tensor.sbp();
    if (nd_sbp.has_partial()) {
      throw InvalidArgument(str("[checkpoint] partial tensors cannot be saved; received ", name,
                                " with layout ", nd_sbp,
                                "; redistribute it to split or broadcast first"));
    }
  }
}

// The name of a slice, for example "fc.weight[0:2, 0:5]". A slice that is the whole tensor has the
// tensor's name.
std::string slice_name(const std::string& name, const Shape& shape, const Box& box) {
  if (box.size == shape) return name;
  std::string text = name + "[";
  for (int64_t dim = 0; dim < shape.size(); ++dim) {
    text += str(dim == 0 ? "" : ", ", box.begin[dim], ":", box.begin[dim] + box.size[dim]);
  }
  return text + "]";
}

std::vector<uint32_t> checksums_of(const std::string& path, uint64_t bytes) {
  InputFile file(path);
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(bytes, kChunkBytes)));
  std::vector<uint32_t> checksums;
  for (uint64_t at = 0; at < bytes; at += kChunkBytes) {
    const auto size = static_cast<size_t>(std::min(kChunkBytes, bytes - at));
    file.read(chunk.data(), size);
    checksums.push_back(chunk_checksum(chunk.data(), size));
  }
  return checksums;
}

// Writes this rank's slices and returns the rank's part of the manifest.
std::string write_part(const std::string& folder, const std::string& id, const StateDict& tensors) {
  const NoGradGuard no_grad;
  StateDict slices;
  std::map<std::string, CheckpointTensor> described;
  std::map<std::string, std::string> tensor_of;  // by the slice's name
  for (const auto& [name, tensor] : tensors) {
    const std::optional<Box> box = own_box(tensor);
    // Every rank describes every tensor, so that tensors without elements are known too.
    described[name] = {.dtype = tensor.dtype(), .shape = tensor.shape(), .slices = {}};
    if (!box) continue;
    const std::string key = slice_name(name, tensor.shape(), *box);
    if (!tensor_of.emplace(key, name).second) {
      throw InvalidArgument(str("[checkpoint] ", name, " and ", tensor_of.at(key),
                                " would both be stored as ", key, "; rename one of them"));
    }
    slices.emplace(key, tensor.to_local());
    described[name].slices.push_back({.box = *box});
  }
  char file_name[40];
  std::snprintf(file_name, sizeof(file_name), "rank-%05d.safetensors",
                static_cast<int>(env::rank()));
  const std::string path = str(folder, "/", file_name);
  save_safetensors(path, slices, {{"flow.checkpoint", id}});
  for (const SafetensorsEntry& entry : read_safetensors_index(path))
    described[tensor_of.at(entry.name)].slices[0].offset = entry.begin;
  const uint64_t bytes = InputFile(path).size();
  return part_to_text({.name = file_name, .bytes = bytes, .checksums = checksums_of(path, bytes)},
                      described);
}

// ---------------------------------------------------------------- the folder, on rank 0

std::string random_id() {
  std::random_device source;
  char text[33];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", source(), source(), source(), source());
  return text;
}

// Creates a folder and the folders above it, and makes each one durable.
void make_folders(const fs::path& path) {
  if (fs::exists(path)) return;
  const fs::path parent = fs::absolute(path).parent_path();
  make_folders(parent);
  fs::create_directory(path);
  sync_folder(parent.string());
}

// Removes what interrupted saves have left behind.
void remove_leftovers(const std::string& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().filename().string().starts_with(kTemporaryPrefix)) {
      remove_unread_folder(entry.path().string());
    }
  }
}

// `id` is that of the save: what an earlier save has hidden may still be read.
void remove_old(const std::string& path, const std::vector<int64_t>& steps, int64_t newest,
                const std::string& id, const CheckpointOptions& options) {
  if (options.keep_last == 0) return;
  const auto num_old = static_cast<int64_t>(steps.size()) - options.keep_last;
  std::vector<std::string> all_hidden;
  for (int64_t i = 0; i < num_old; ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    if (step == newest || (options.keep_every > 0 && step % options.keep_every == 0)) continue;
    all_hidden.push_back(str(path, "/", kTemporaryPrefix, "old-", step, "-", id));
    fs::rename(str(path, "/", step_name(step)), all_hidden.back());
  }
  if (all_hidden.empty()) return;
  // The renames are made durable first: a half-removed folder would look like a damaged checkpoint.
  sync_folder(path);
  for (const std::string& hidden : all_hidden)
    remove_unread_folder(hidden);  // a later save removes those that are being read
}

}  // namespace

void CheckpointFolder::save(int64_t step, const StateDict& tensors, const Metadata& metadata,
                            Site site) const {
  const SiteScope scope(site);
  check_savable(step, tensors);
  const bool leads = env::rank() == 0;
  std::optional<FileLock> lock;
  std::string temporary;
  const std::string id = in_agreement(site, [&] {
    if (!leads) return std::string();
    make_folders(path_);
    lock.emplace(path_ + "/.lock");
    remove_leftovers(path_);
    std::string new_id = random_id();
    fs::create_directory(str(path_, "/", kTemporaryPrefix, new_id));
    return new_id;
  })[0];
  temporary = str(path_, "/", kTemporaryPrefix, id);
  bool is_committed = false;
  try {
    const std::vector<std::string> parts =
        in_agreement(site, [&] { return write_part(temporary, id, tensors); });
    in_agreement(site, [&] {
      if (!leads) return std::string();
      Manifest manifest{.step = step,
                        .id = id,
                        .world_size = env::world_size(),
                        .metadata = metadata,
                        .generator = generator_state(),
                        .files = {},
                        .tensors = {}};
      for (const std::string& part : parts)
        add_part(manifest, part);
      const std::string text = to_text(manifest);
      OutputFile file(str(temporary, "/", kManifestName));
      file.write(text.data(), text.size());
      file.commit();
      commit_folder(temporary, str(path_, "/", step_name(step)));
      is_committed = true;
      try {
        remove_old(path_, steps(), step, id, options_);
      } catch (const std::exception& error) {  // the step is saved; the next save tries again
        log_warning(str("[checkpoint] old steps were not removed: ", error.what()));
      }
      return std::string();
    });
  } catch (...) {
    std::error_code ignored;  // the first error is reported
    // Once the step is committed, this may be the one before it, which a reader may have open.
    if (leads && !is_committed) fs::remove_all(temporary, ignored);
    throw;
  }
}

}  // namespace flow::nn

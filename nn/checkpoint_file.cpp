#include "nn/checkpoint_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>

#include "boxing/layout.h"
#include "boxing/run_route.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "nn/checkpoint_folder.h"
#include "nn/checkpoint_manifest.h"
#include "nn/file.h"
#include "nn/folder_lock.h"
#include "ops/creation/copy.h"

namespace flow::nn {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr int kMostTries = 1000;  // while another job saves and removes checkpoints

// Reads any range of a file and verifies it chunk by chunk against the checksums.
class CheckedFile {
 public:
  CheckedFile(const std::string& folder, const FolderReader& reader, const CheckpointPart& part)
      : part_(part), path_(str(folder, "/", part.name)), file_(reader.path_of(part.name), path_) {
    if (file_.size() != part.bytes) {
      throw BadFile(str("[checkpoint] ", path_, " has ", file_.size(),
                        " bytes, but the manifest says ", part.bytes,
                        "; restore a copy or use an older step"));
    }
  }

  void read(uint64_t offset, std::byte* target, uint64_t bytes) {
    while (bytes > 0) {
      load(offset / kChunkBytes);
      const uint64_t within = offset % kChunkBytes;
      const uint64_t count = std::min(bytes, chunk_.size() - within);
      std::copy_n(chunk_.begin() + static_cast<ptrdiff_t>(within), count, target);
      target += count;
      offset += count;
      bytes -= count;
    }
  }

  void check_start() {
    if (part_.bytes > 0) load(0);
  }

 private:
  void load(uint64_t index) {
    if (!chunk_.empty() && index == loaded_) return;
    const uint64_t begin = index * kChunkBytes;
    chunk_.resize(static_cast<size_t>(std::min(kChunkBytes, part_.bytes - begin)));
    loaded_ = index;
    file_.read_at(begin, chunk_.data(), chunk_.size());
    if (chunk_checksum(chunk_.data(), chunk_.size()) != part_.checksums[index]) {
      throw BadFile(str("[checkpoint] ", path_, " is damaged between bytes ", begin, " and ",
                        begin + chunk_.size(), "; restore a copy or use an older step"));
    }
  }

  const CheckpointPart& part_;
  std::string path_;
  InputFile file_;
  std::vector<std::byte> chunk_;
  uint64_t loaded_ = 0;
};

// The offset of the first element of `box` within the row-major box `outer`.
int64_t offset_in(const Box& outer, const Box& box) {
  const Strides strides = contiguous_strides(outer.size);
  int64_t offset = 0;
  for (int64_t dim = 0; dim < box.size.size(); ++dim)
    offset += (box.begin[dim] - outer.begin[dim]) * strides[dim];
  return offset;
}

}  // namespace

StateDict joined(const std::vector<std::pair<std::string, StateDict>>& parts) {
  StateDict all;
  for (const auto& [part, state] : parts) {
    for (const auto& [name, tensor] : state)
      all.emplace(str(part, ".", name), tensor);
  }
  return all;
}

// ---------------------------------------------------------------- Checkpoint

Checkpoint::Checkpoint(std::string folder, std::shared_ptr<const FolderReader> reader,
                       std::shared_ptr<const Manifest> manifest)
    : folder_(std::move(folder)), reader_(std::move(reader)), manifest_(std::move(manifest)) {}

int64_t Checkpoint::step() const {
  return manifest_->step;
}

const Metadata& Checkpoint::metadata() const {
  return manifest_->metadata;
}

int64_t Checkpoint::world_size() const {
  return manifest_->world_size;
}

Generator::State Checkpoint::generator() const {
  return manifest_->generator;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest_->tensors)
    names.push_back(name);
  return names;
}

bool Checkpoint::contains(const std::string& name) const {
  return manifest_->tensors.contains(name);
}

namespace {
const CheckpointTensor& find(const Manifest& manifest, const std::string& name) {
  const auto found = manifest.tensors.find(name);
  if (found == manifest.tensors.end()) {
    throw InvalidArgument(str("[checkpoint] step ", manifest.step, " has no tensor ", name,
                              "; use one of the names that names() lists"));
  }
  return found->second;
}
}  // namespace

Shape Checkpoint::shape(const std::string& name, Site site) const {
  const SiteScope scope(site);
  return find(*manifest_, name).shape;
}

void Checkpoint::read_box(const std::string& name, const Shape& begin, const Shape& size,
                          std::byte* target) const {
  const CheckpointTensor& tensor = find(*manifest_, name);
  const Box wanted{begin, size};
  const auto element = static_cast<int64_t>(dtype_size(tensor.dtype));
  std::vector<std::byte> buffer;
  for (const CheckpointSlice& slice : tensor.slices) {
    const Box both = boxing::intersection(slice.box, wanted);
    if (both.size.numel() == 0) continue;
    CheckedFile file(folder_, *reader_, manifest_->files[slice.file]);
    const auto bytes = static_cast<size_t>(slice.box.size.numel() * element);
    if (slice.box == wanted) {
      file.read(slice.offset, target, bytes);
      return;
    }
    buffer.resize(bytes);
    file.read(slice.offset, buffer.data(), bytes);
    boxing::copy_box(both.size, contiguous_strides(slice.box.size),
                     buffer.data() + offset_in(slice.box, both) * element,
                     contiguous_strides(wanted.size), target + offset_in(wanted, both) * element,
                     static_cast<size_t>(element));
  }
}

namespace {
// Each rank would read the whole value, and the parts would add up to a multiple of it.
void refuse_partial(const std::string& name, const NdSbp& nd_sbp) {
  if (!nd_sbp.has_partial()) return;
  throw InvalidArgument(str("[checkpoint] a saved tensor cannot be read as partial; received ",
                            name, " with layout ", nd_sbp,
                            "; read it as split or broadcast and redistribute it"));
}
}  // namespace

Tensor Checkpoint::read(const std::string& name, const TensorOptions& layout, Site site) const {
  const SiteScope scope(site);
  const CheckpointTensor& saved = find(*manifest_, name);
  if (layout.dtype || !layout.device.empty() || layout.requires_grad ||
      (!layout.placement.defined() && !layout.sbp.empty())) {
    throw InvalidArgument(str("[checkpoint] ", name,
                              " is read in its saved dtype, and whole on the CPU or in the layout "
                              "of a placement; received other options: give a placement and its "
                              "sbp, and convert the result"));
  }
  MetaPtr meta = nullptr;
  if (layout.placement.defined()) {
    refuse_partial(name, layout.sbp);
    boxing::check_layout({layout.placement, layout.sbp}, saved.shape, env::world_size(),
                         "checkpoint");
    meta = global_meta(saved.shape, saved.dtype, layout.placement, layout.sbp, env::rank());
  } else {
    meta = local_meta(saved.shape, saved.dtype, DeviceType::kCpu);
  }
  Ref<Storage> storage = Storage::allocate(thread_state().context->allocator(),
                                           meta->is_held ? meta->local_bytes() : 0);
  if (meta->is_held && meta->local_numel > 0) {
    const Shape begin =
        meta->is_global() ? meta->local_begin : Shape::filled(saved.shape.size(), 0);
    read_box(name, begin, meta->local_shape, storage->data());
  }
  if (meta->device != DeviceType::kCpu) {
    RankContext& rank = *thread_state().context;
    const Ref<Storage> host = std::move(storage);
    storage = allocate_storage(rank, meta->device, host->bytes());
    copy_bytes(rank, storage->data(), meta->device, host->data(), DeviceType::kCpu, host->bytes());
  }
  return Tensor::make(meta, std::move(storage));
}

StateDict Checkpoint::read_all(const std::string& prefix, Site site) const {
  const SiteScope scope(site);
  StateDict all;
  for (const auto& [name, tensor] : manifest_->tensors) {
    if (name.starts_with(prefix)) all.emplace(name.substr(prefix.size()), read(name));
  }
  return all;
}

void Checkpoint::read_into(const StateDict& targets, const std::string& prefix, Site site) const {
  const SiteScope scope(site);
  std::string problems;
  for (const auto& [name, target] : targets) {
    const auto found = manifest_->tensors.find(prefix + name);
    if (found == manifest_->tensors.end()) {
      problems += str("\n  missing: ", prefix, name);
    } else if (!(found->second.shape == target.shape())) {
      problems += str("\n  shape of ", prefix, name, ": saved ", found->second.shape, ", target ",
                      target.shape());
    }
  }
  for (const auto& [name, tensor] : manifest_->tensors) {
    if (name.starts_with(prefix) && !targets.contains(name.substr(prefix.size())))
      problems += str("\n  unexpected: ", name);
  }
  if (!problems.empty()) {
    throw InvalidArgument(str("[checkpoint] step ", step(),
                              " does not match the targets:", problems,
                              "\nnothing was read; use the checkpoint of the same model"));
  }
  for (const auto& [name, target] : targets) {
    if (target.is_global()) refuse_partial(prefix + name, target.sbp());
  }
  const NoGradGuard no_grad;
  for (const auto& [name, target] : targets) {
    TensorOptions layout;
    if (target.is_global()) {
      layout.placement = target.placement();
      layout.sbp = target.sbp();
    }
    target.copy_(read(prefix + name, layout));
  }
}

// ---------------------------------------------------------------- CheckpointFolder

CheckpointFolder::CheckpointFolder(std::string path, const CheckpointOptions& options, Site site)
    : path_(std::move(path)), options_(options) {
  const SiteScope scope(site);
  if (options.keep_last < 0 || options.keep_every < 0) {
    throw InvalidArgument(
        str("[checkpoint] keep_last and keep_every must not be negative; received ",
            options.keep_last, " and ", options.keep_every, "; use 0 to disable one"));
  }
}

std::vector<int64_t> CheckpointFolder::steps(Site site) const {
  const SiteScope scope(site);
  std::vector<int64_t> steps;
  std::error_code error;
  const fs::directory_iterator entries(path_, error);
  // A run that cannot read its checkpoints must not start from the beginning.
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError(str("[checkpoint] cannot list the folder ", path_, ": ", error.message(),
                      "; give a folder that this user may read"));
  }
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    int64_t step = 0;
    if (!name.starts_with(kStepPrefix)) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kStepPrefix.size(), end, step);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == end && step >= 0;
    if (is_number && name == step_name(step)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

namespace {

// Thrown if a checkpoint lacks its manifest or a file that the manifest lists.
class IncompleteCheckpoint : public IoError {
 public:
  using IoError::IoError;
};

void check_exists(const FolderReader& reader, const std::string& folder, const std::string& name) {
  std::error_code error;  // a file that cannot be examined fails when it is read
  const fs::file_status status = fs::symlink_status(reader.path_of(name), error);
  if (status.type() != fs::file_type::not_found) return;
  throw IncompleteCheckpoint(str("[checkpoint] cannot open ", folder, "/", name,
                                 ": it is missing, so the checkpoint is incomplete; restore a copy "
                                 "or use an older step"));
}

Manifest read_manifest(const FolderReader& reader, const std::string& folder) {
  check_exists(reader, folder, kManifestName);
  const std::string path = str(folder, "/", kManifestName);
  InputFile file(reader.path_of(kManifestName), path);
  if (file.size() > kMaxManifestBytes) {
    throw BadFile(str("[checkpoint] ", path, " has ", file.size(), " bytes, but at most ",
                      kMaxManifestBytes, " are allowed; check that it is the right file"));
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(text.data(), text.size());
  return parse_manifest(text, path);
}

void check_files(const FolderReader& reader, const std::string& folder, const Manifest& manifest) {
  std::set<std::string> expected{kManifestName};
  for (const CheckpointPart& part : manifest.files)
    expected.insert(part.name);
  for (const auto& entry : fs::directory_iterator(reader.path_of("."))) {
    const std::string name = entry.path().filename().string();
    if (!expected.contains(name) || entry.is_symlink()) {
      throw IoError(str("[checkpoint] ", folder, "/", name,
                        " does not belong to the checkpoint; move it elsewhere"));
    }
  }
  for (const CheckpointPart& part : manifest.files)
    check_exists(reader, folder, part.name);
  for (const CheckpointPart& part : manifest.files)
    CheckedFile(folder, reader, part).check_start();
}

}  // namespace

// Empty if there is no such checkpoint, for example because a save has just removed it.
std::optional<Checkpoint> CheckpointFolder::open_if_there(int64_t step) const {
  const std::string folder = str(path_, "/", step_name(step));
  const auto reader = std::make_shared<const FolderReader>(folder);
  if (!reader->is_kept()) return std::nullopt;
  auto manifest = std::make_shared<const Manifest>(read_manifest(*reader, folder));
  if (manifest->step != step) {
    throw IoError(str("[checkpoint] ", folder, "/", kManifestName, " belongs to step ",
                      manifest->step, "; restore the original names of the folders"));
  }
  check_files(*reader, folder, *manifest);
  return Checkpoint(folder, reader, std::move(manifest));
}

Checkpoint CheckpointFolder::open(int64_t step, Site site) const {
  const SiteScope scope(site);
  // A save may replace the checkpoint by one of the same step.
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (auto checkpoint = open_if_there(step)) return *std::move(checkpoint);
  }
  throw IoError(str("[checkpoint] cannot open step ", step, " in ", path_,
                    ": there is no such checkpoint; use one of the steps that steps() lists"));
}

std::optional<Checkpoint> CheckpointFolder::newest(Site site) const {
  const SiteScope scope(site);
  std::string passed_over;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::vector<int64_t> all = steps();
    bool has_vanished = false;
    passed_over.clear();
    for (auto step = all.rbegin(); step != all.rend() && !has_vanished; ++step) {
      try {
        if (auto checkpoint = open_if_there(*step)) {
          if (!passed_over.empty()) {
            log_warning(str("[checkpoint] step ", *step, " is the newest complete checkpoint in ",
                            path_, "; passed over:", passed_over));
          }
          return checkpoint;
        }
        has_vanished = true;  // a save is removing old checkpoints, so there is a newer one
      } catch (const IncompleteCheckpoint& error) {
        passed_over += str("\n  ", error.message());
      }
    }
    if (has_vanished) continue;
    if (passed_over.empty()) return std::nullopt;
    break;
  }
  throw IoError(str("[checkpoint] ", path_, " has no complete checkpoint:", passed_over,
                    "\nrestore a copy, or remove the folders to start from the beginning"));
}

}  // namespace flow::nn

#include "nn/checkpoint_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>

#include "boxing/layout.h"
#include "boxing/run_route.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/checkpoint_folder.h"
#include "nn/checkpoint_manifest.h"
#include "nn/file.h"
#include "ops/creation/copy.h"

namespace flow::nn {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr std::string_view kStepPrefix = "step-";

// Reads any range of a file and verifies it chunk by chunk against the checksums.
class CheckedFile {
 public:
  CheckedFile(const std::string& folder, const CheckpointPart& part)
      : part_(part), path_(str(folder, "/", part.name)), file_(path_) {
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

std::string step_name(int64_t step) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%09lld", static_cast<long long>(step));
  return str(kStepPrefix, digits);
}

StateDict joined(const std::vector<std::pair<std::string, StateDict>>& parts) {
  StateDict all;
  for (const auto& [part, state] : parts) {
    for (const auto& [name, tensor] : state)
      all.emplace(str(part, ".", name), tensor);
  }
  return all;
}

// ---------------------------------------------------------------- Checkpoint

Checkpoint::Checkpoint(std::string folder, std::shared_ptr<const Manifest> manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

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

Shape Checkpoint::shape(const std::string& name) const {
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
    CheckedFile file(folder_, manifest_->files[slice.file]);
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

Tensor Checkpoint::read(const std::string& name, const TensorOptions& layout) const {
  const CheckpointTensor& saved = find(*manifest_, name);
  MetaPtr meta = nullptr;
  if (layout.placement.defined()) {
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

StateDict Checkpoint::read_all(const std::string& prefix) const {
  StateDict all;
  for (const auto& [name, tensor] : manifest_->tensors) {
    if (name.starts_with(prefix)) all.emplace(name.substr(prefix.size()), read(name));
  }
  return all;
}

void Checkpoint::read_into(const StateDict& targets, const std::string& prefix) const {
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

CheckpointFolder::CheckpointFolder(std::string path, const CheckpointOptions& options)
    : path_(std::move(path)), options_(options) {
  if (options.keep_last < 0 || options.keep_every < 0) {
    throw InvalidArgument(
        str("[checkpoint] keep_last and keep_every must not be negative; received ",
            options.keep_last, " and ", options.keep_every, "; use 0 to disable one"));
  }
}

std::vector<int64_t> CheckpointFolder::steps() const {
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

Checkpoint CheckpointFolder::open(int64_t step) const {
  const std::string folder = str(path_, "/", step_name(step));
  const std::string path = str(folder, "/", kManifestName);
  auto manifest =
      std::make_shared<const Manifest>(parse_manifest(read_text(path, kMaxManifestBytes), path));
  if (manifest->step != step) {
    throw IoError(str("[checkpoint] ", path, " belongs to step ", manifest->step,
                      "; restore the original names of the folders"));
  }
  std::set<std::string> expected{kManifestName};
  for (const CheckpointPart& part : manifest->files)
    expected.insert(part.name);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!expected.contains(entry.path().filename().string()) || entry.is_symlink()) {
      throw IoError(str("[checkpoint] ", entry.path().string(),
                        " does not belong to the checkpoint; move it elsewhere"));
    }
  }
  for (const CheckpointPart& part : manifest->files)
    CheckedFile(folder, part).check_start();
  return {folder, std::move(manifest)};
}

std::optional<Checkpoint> CheckpointFolder::newest() const {
  const std::vector<int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  return open(all.back());
}

}  // namespace flow::nn

// Checkpoints written by any number of ranks. A checkpoint is a folder with one safetensors file
// per rank, and a manifest that says where each slice of each logical tensor is stored. A
// checkpoint that was saved under one layout can be loaded under any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/generator.h"
#include "core/site.h"
#include "core/tensor.h"
#include "nn/safetensors.h"

namespace flow::nn {

class FolderReader;
struct Manifest;

// A committed checkpoint, opened for reading. Reading is not collective: each rank reads the slices
// that it needs. Every byte that is read is verified against its checksum. A save that removes old
// checkpoints leaves the files of an opened one until a save after it is closed.
class Checkpoint {
 public:
  int64_t step() const;
  const Metadata& metadata() const;
  // The number of ranks that wrote it.
  int64_t world_size() const;
  // The names of all logical tensors.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  Shape shape(const std::string& name, Site site = Site::here()) const;
  // The generator state of rank 0 at the time of the save.
  Generator::State generator() const;

  // Reads a tensor in its saved dtype: the whole tensor as a local one, or, if `layout` has a
  // placement, a global tensor of which this rank reads its part. Throws IoError if a file is
  // missing, too short or damaged; InvalidArgument if there is no such tensor, for a partial
  // layout, and for options other than a placement with its sbp.
  Tensor read(const std::string& name, const TensorOptions& layout = {},
              Site site = Site::here()) const;
  // Reads all tensors whose names begin with `prefix`, as local tensors. The names in the result
  // lack the prefix.
  StateDict read_all(const std::string& prefix = "", Site site = Site::here()) const;
  // Fills each target, of any layout, with the saved tensor named prefix + name; each rank reads
  // only its part. Throws InvalidArgument, before anything is written, if names with that prefix or
  // shapes differ, where the message lists all differences, and for partial targets.
  void read_into(const StateDict& targets, const std::string& prefix = "",
                 Site site = Site::here()) const;

 private:
  friend class CheckpointFolder;
  Checkpoint(std::string folder, std::shared_ptr<const FolderReader> reader,
             std::shared_ptr<const Manifest> manifest);
  void read_box(const std::string& name, const Shape& begin, const Shape& size,
                std::byte* target) const;

  std::string folder_;  // as it was named when it was opened; for messages
  std::shared_ptr<const FolderReader> reader_;
  std::shared_ptr<const Manifest> manifest_;
};

struct CheckpointOptions {
  int64_t keep_last = 3;   // number of newest checkpoints to keep; 0: keep all
  int64_t keep_every = 0;  // steps divisible by it are kept as well; 0: none
};

// The checkpoints of one run, in the sub-folders step-000000100, ….
//
//   nn::CheckpointFolder folder("run1");
//   folder.save(step, nn::joined({{"model", model.state_dict()},
//                                 {"optimizer", optimizer.state_dict()}}));
//   …
//   if (auto checkpoint = folder.newest()) {
//     model.load_state_dict(checkpoint->read_all("model."));
//     optimizer.load_state_dict(checkpoint->read_all("optimizer."));
//   }
class CheckpointFolder {
 public:
  // The first save creates the folder. Throws InvalidArgument for negative options.
  explicit CheckpointFolder(std::string path, const CheckpointOptions& options = {},
                            Site site = Site::here());

  // Saves `tensors`. Collective over the world. Each rank writes the slices that no rank before it
  // holds; local tensors are written by rank 0. Everything is written to a temporary folder,
  // synced, and committed by one rename, so after a crash at any point either the old state or the
  // new one exists. An existing checkpoint of the same step is replaced. Throws IoError on every
  // rank if one of them fails (nothing is left behind), if another job is saving into the folder,
  // or if names, shapes or dtypes differ between ranks; InvalidArgument for a negative step and for
  // partial tensors.
  void save(int64_t step, const StateDict& tensors, const Metadata& metadata = {},
            Site site = Site::here()) const;

  // The steps of the committed checkpoints in ascending order. Like the functions below, it is not
  // collective. Throws IoError if the folder exists and cannot be read.
  std::vector<int64_t> steps(Site site = Site::here()) const;
  // Opens the checkpoint of a step. Throws IoError if there is none, if it is damaged, or if files
  // are missing or do not belong to it.
  Checkpoint open(int64_t step, Site site = Site::here()) const;
  // Opens the complete checkpoint with the greatest step; empty if nothing has been committed. A
  // checkpoint is complete if it has its manifest and all files that the manifest lists; an
  // interrupted copy of a folder is not. Incomplete ones are passed over with a warning that names
  // them. Throws IoError if there are only incomplete ones, or if the newest complete one is
  // damaged. Works next to a job that saves and removes old checkpoints.
  std::optional<Checkpoint> newest(Site site = Site::here()) const;

 private:
  std::optional<Checkpoint> open_if_there(int64_t step) const;

  std::string path_;
  CheckpointOptions options_;
};

// Joins several state dicts into one; names become "part.name".
StateDict joined(const std::vector<std::pair<std::string, StateDict>>& parts);

}  // namespace flow::nn

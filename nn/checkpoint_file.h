// Checkpoints of any number of ranks: a folder of safetensors files, one per rank, and a manifest
// that says which slice of which logical tensor lies where. What is saved under one layout loads
// under any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "nn/safetensors.h"

namespace flow::nn {

struct Manifest;

// A committed checkpoint, opened for reading. Reading is not collective: each rank reads the slices
// it needs. Every byte read is compared with its checksum.
class Checkpoint {
 public:
  int64_t step() const;
  const Metadata& metadata() const;
  // How many ranks wrote it.
  int64_t world_size() const;
  // Of all logical tensors.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  Shape shape(const std::string& name) const;
  // The random state of rank 0 at the save.
  Generator::State generator() const;

  // The whole tensor as a local one, or, with a placement, a global one of which this rank reads
  // its part. The dtype is the saved one. Throws IoError where a file is missing, short or damaged,
  // InvalidArgument where there is no such tensor.
  Tensor read(const std::string& name, const TensorOptions& layout = {}) const;
  // All tensors whose names begin with `prefix`, without it, as local ones.
  StateDict read_all(const std::string& prefix = "") const;
  // Fills tensors of any layout, of which each rank reads its part alone, with the saved values of
  // prefix + name. Throws InvalidArgument, before anything is written, where names (of that prefix)
  // or shapes differ; all are listed.
  void read_into(const StateDict& targets, const std::string& prefix = "") const;

 private:
  friend class CheckpointFolder;
  Checkpoint(std::string folder, std::shared_ptr<const Manifest> manifest);
  void read_box(const std::string& name, const Shape& begin, const Shape& size,
                std::byte* target) const;

  std::string folder_;
  std::shared_ptr<const Manifest> manifest_;
};

struct CheckpointOptions {
  int64_t keep_last = 3;   // newest ones kept; 0: all
  int64_t keep_every = 0;  // steps divisible by it are kept as well; 0: none
};

// The checkpoints of one run: sub-folders step-000000100, ….
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
  // The folder is made at the first save.
  explicit CheckpointFolder(std::string path, const CheckpointOptions& options = {});

  // Collective over the world. Each rank writes the slices that no rank before it holds; of local
  // tensors rank 0's count. All is written to a temporary folder, synced, and committed by one
  // rename: after a crash at any point there is the old state or the new. An existing checkpoint
  // of the same step is replaced. Throws IoError on every rank when one of them fails (nothing is
  // left behind), or when another job is saving into the folder; InvalidArgument for partial
  // tensors.
  void save(int64_t step, const StateDict& tensors, const Metadata& metadata = {}) const;

  // Of committed checkpoints, ascending. Not collective, as all below. IoError when the folder is
  // there and cannot be read.
  std::vector<int64_t> steps() const;
  // Throws IoError when there is none of that step, or it is damaged, or a file is missing or
  // superfluous.
  Checkpoint open(int64_t step) const;
  // The one of the greatest step; none where nothing has been committed.
  std::optional<Checkpoint> newest() const;

 private:
  std::string path_;
  CheckpointOptions options_;
};

// One dict of several: names become "part.name".
StateDict joined(const std::vector<std::pair<std::string, StateDict>>& parts);

}  // namespace flow::nn

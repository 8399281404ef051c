// One region of recompute(): the values that it would have saved, once they are computed again.
#pragma once

#include <functional>
#include <vector>

#include "autograd/saved_tensor.h"
#include "core/context.h"
#include "core/generator.h"

namespace flow::autograd {

// In the first run, saved tensors are replaced by indices in the region. The first one that
// backward unpacks starts the second run, which computes all values. Each value is freed after its
// node has used it.
class RecomputeRegion final : public RefCounted<RecomputeRegion> {
 public:
  // The state, in addition to the inputs, on which the results of the calls depend.
  struct Surroundings {
    Generator::State generator;
    bool grad_enabled;
    const Autocaster* autocast;
    Placement default_placement;
    NdSbp default_sbp;
    Site scope_site;
    const std::string* module_path;
    int64_t stage;

    static Surroundings current();
    void enter() const;
  };

  RecomputeRegion(const std::vector<Tensor>& inputs,
                  std::function<void(const std::vector<Tensor>&)> run);

  int64_t id() const { return id_; }

  bool is_filling() const { return state_ == State::kFilling; }

  // In the first run, returns the index of the next saved tensor. In the second run, stores its
  // value.
  size_t add(const Tensor& tensor);
  // Ends the first run.
  void close();
  // Returns a saved value; the first call runs the region again. `owner` is for messages.
  const SavedTensor& value(size_t index, const Node& owner);
  // Frees a value that is no longer needed.
  void drop(size_t index);

 private:
  enum class State { kFirstRun, kClosed, kFilling, kFilled };

  void fill(const Node& owner);

  int64_t id_;
  State state_ = State::kFirstRun;
  std::vector<SavedTensor> inputs_;
  std::vector<bool> inputs_track_grad_;
  std::function<void(const std::vector<Tensor>&)> run_;
  Surroundings surroundings_;
  size_t num_values_ = 0;
  std::vector<SavedTensor> values_;
  std::vector<size_t> dropped_;  // values dropped before the second run
};

// Returns a second handle at the same place in the graph, so that a leaf is not a leaf inside the
// region.
Tensor with_history(const Tensor& tensor, const Ref<Node>& node, uint32_t index);

// The region that is running on this thread; null outside a region.
inline constinit thread_local RecomputeRegion* active_region = nullptr;

}  // namespace flow::autograd

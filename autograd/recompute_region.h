// One region of recompute(): what it would have saved, as far as it has been computed again.
#pragma once

#include <functional>
#include <vector>

#include "autograd/saved_tensor.h"
#include "core/context.h"
#include "core/generator.h"

namespace flow::autograd {

// In the first run saved tensors become numbers of the region; the first of them that backward
// unpacks starts the second run, which fills in all values. Each is freed when its node has used
// it.
class RecomputeRegion final : public RefCounted<RecomputeRegion> {
 public:
  // What the result of the calls depends on beside the inputs.
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

  // First run: the number of the next saved tensor. Second run: keeps its value.
  size_t add(const Tensor& tensor);
  // The end of the first run.
  void close();
  // Runs the region again at the first call; `owner` is for messages.
  const SavedTensor& value(size_t index, const Node& owner);
  // The value is used up.
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
  std::vector<size_t> dropped_;  // before the second run
};

// The region whose run is going on; null outside.
inline constinit thread_local RecomputeRegion* active_region = nullptr;

}  // namespace flow::autograd

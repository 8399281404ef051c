#include "autograd/recompute_region.h"

#include <atomic>
#include <utility>

#include "autograd/tensor_autograd.h"
#include "core/error.h"
#include "core/traced.h"

namespace flow::autograd {

namespace {

// Represents the op that made an input of the second run; the graph of that run is never executed.
// Like the inputs of the first run, those of the second run are not leaves.
class InputNode final : public Node {
 public:
  explicit InputNode(const Block& block) : Node(block, NodeScope()) {}

  const char* name() const override { return "recompute input"; }

  void apply(const Tensor* /*dy*/, Tensor* /*dx*/) override {}

  void free_saved() override {}
};

int64_t next_region_id() {
  static std::atomic<int64_t> last{-1};
  return ++last;
}

// Restores the state of the first run for the second run, and afterwards the caller's state.
class SecondRun {
 public:
  SecondRun(RecomputeRegion* region, const RecomputeRegion::Surroundings& first)
      : outer_(std::exchange(active_region, region)),
        caller_(RecomputeRegion::Surroundings::current()) {
    first.enter();
  }

  ~SecondRun() {
    caller_.enter();
    active_region = outer_;
  }

  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  RecomputeRegion* outer_;
  RecomputeRegion::Surroundings caller_;
};

}  // namespace

Tensor with_history(const Tensor& tensor, const Ref<Node>& node, uint32_t index) {
  Tensor handle = alias_of(tensor);
  set_history(handle.impl(), node, index);
  return handle;
}

RecomputeRegion::Surroundings RecomputeRegion::Surroundings::current() {
  const ThreadState& state = thread_state();
  return {generator_state(), state.grad_enabled, state.autocast,    state.default_placement,
          state.default_sbp, state.scope_site,   state.module_path, state.stage};
}

void RecomputeRegion::Surroundings::enter() const {
  ThreadState& state = thread_state();
  set_generator_state(generator);
  state.grad_enabled = grad_enabled;
  state.autocast = autocast;
  state.default_placement = default_placement;
  state.default_sbp = default_sbp;
  state.scope_site = scope_site;
  state.module_path = module_path;
  state.stage = stage;
}

RecomputeRegion::RecomputeRegion(const std::vector<Tensor>& inputs,
                                 std::function<void(const std::vector<Tensor>&)> run)
    : id_(next_region_id()), run_(std::move(run)), surroundings_(Surroundings::current()) {
  for (const Tensor& input : inputs) {
    inputs_.emplace_back(input);
    inputs_track_grad_.push_back(input.defined() && input.requires_grad());
  }
}

size_t RecomputeRegion::add(const Tensor& tensor) {
  if (is_filling()) {
    RecomputeRegion* const self = std::exchange(active_region, nullptr);
    values_.emplace_back(tensor);
    active_region = self;
    return values_.size() - 1;
  }
  return num_values_++;
}

void RecomputeRegion::close() {
  state_ = State::kClosed;
}

void RecomputeRegion::fill(const Node& owner) {
  if (state_ != State::kClosed) {
    throw Unsupported(
        "[recompute] backward was called inside the region through which it runs; call it after "
        "recompute() has returned");
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Tensor input = inputs_[i].unpack(owner, "recompute() input", static_cast<int>(i), nullptr, 0);
    if (inputs_track_grad_[i]) input = with_history(input, make_node<InputNode>(0, 1, 0), 0);
    inputs.push_back(std::move(input));
  }
  values_.reserve(num_values_);
  state_ = State::kFilling;
  try {
    {
      const SecondRun second_run(this, surroundings_);
      run_(inputs);
    }
    if (values_.size() != num_values_) {
      throw InvalidArgument(str(
          "[recompute] the function behaved differently in the second run: the first run saved ",
          num_values_, " tensors for backward, the second ", values_.size(),
          "; it must depend on its inputs and random draws only"));
    }
  } catch (...) {
    state_ = State::kClosed;
    values_.clear();
    throw;
  }
  state_ = State::kFilled;
  for (const size_t index : std::exchange(dropped_, {}))
    values_[index].reset();
}

const SavedTensor& RecomputeRegion::value(size_t index, const Node& owner) {
  if (state_ != State::kFilled) fill(owner);
  return values_[index];
}

void RecomputeRegion::drop(size_t index) {
  if (state_ == State::kFilled) {
    values_[index].reset();
  } else {
    dropped_.push_back(index);
  }
}

}  // namespace flow::autograd

#include "nn/optim/optimizer.h"

#include "autograd/grad_mode.h"
#include "core/context.h"
#include "core/error.h"
#include "ops/creation.h"

namespace flow::optim {

namespace {
// Nodes traced during a step are those of the update.
class UpdatePhase {
 public:
  UpdatePhase() : outer_(std::exchange(thread_state().phase, Phase::kUpdate)) {}

  ~UpdatePhase() { thread_state().phase = outer_; }

  UpdatePhase(const UpdatePhase&) = delete;
  UpdatePhase& operator=(const UpdatePhase&) = delete;

 private:
  Phase outer_;
};

Tensor scalar(double value) {
  return full({}, value, {.dtype = float64});
}
}  // namespace

void Optimizer::zero_grad() {
  for_each_param([](const Tensor& parameter, size_t) { parameter.set_grad(Tensor()); });
}

void Optimizer::step() {
  const NoGradGuard no_grad;
  const UpdatePhase phase;
  for_each_param([this](const Tensor& parameter, size_t number) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) return;  // its step count does not advance
    if (states_.size() <= number) states_.resize(number + 1);
    ParamState& state = states_[number];
    ++state.step;
    update(parameter, grad, number, state);
  });
}

nn::StateDict Optimizer::state_dict() const {
  nn::StateDict dict;
  const std::vector<std::string> names = buffer_names();
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].step == 0) continue;
    dict.emplace(str(i, ".step"), scalar(static_cast<double>(states_[i].step)));
    for (size_t j = 0; j < states_[i].buffers.size(); ++j) {
      if (states_[i].buffers[j].defined()) {
        dict.emplace(str(i, '.', names[j]), states_[i].buffers[j]);
      }
    }
  }
  for (int64_t g = 0; g < num_groups(); ++g)
    dict.emplace(str("group.", g, ".lr"), scalar(lr(g)));
  return dict;
}

void Optimizer::load_state_dict(const nn::StateDict& state) {
  std::vector<ParamState> loaded;
  const std::vector<std::string> names = buffer_names();
  size_t num_read = 0;
  for_each_param([&](const Tensor& parameter, size_t number) {
    ParamState& own = loaded.emplace_back();
    const auto step = state.find(str(number, ".step"));
    if (step == state.end()) return;
    ++num_read;
    own.step = static_cast<int64_t>(step->second.item<double>());
    own.buffers.resize(names.size());
    for (size_t j = 0; j < names.size(); ++j) {
      const auto buffer = state.find(str(number, '.', names[j]));
      if (buffer == state.end()) continue;
      ++num_read;
      if (!(buffer->second.shape() == parameter.shape())) {
        throw InvalidArgument(str("[optimizer] ", buffer->first, " has shape ",
                                  buffer->second.shape(), ", its parameter ", parameter.shape(),
                                  "; nothing was loaded"));
      }
      own.buffers[j] = buffer->second.clone();
    }
  });
  for (int64_t g = 0; g < num_groups(); ++g)
    num_read += state.contains(str("group.", g, ".lr"));
  if (num_read != state.size()) {
    throw InvalidArgument(str("[optimizer] ", state.size() - num_read, " of ", state.size(),
                              " names do not belong to this optimizer's parameters; nothing was "
                              "loaded; use the state of the same optimizer and model"));
  }
  states_ = std::move(loaded);
  for (int64_t g = 0; g < num_groups(); ++g) {
    const auto found = state.find(str("group.", g, ".lr"));
    if (found != state.end()) set_group_lr(g, found->second.item<double>());
  }
}

}  // namespace flow::optim

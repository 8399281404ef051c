#include "nn/optim/moving_average.h"

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/layout.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"

namespace flow::optim {

MovingAverage::MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options, Site site)
    : tensors_(std::move(tensors)), options_(options) {
  if (options_.decay && !(*options_.decay >= 0 && *options_.decay <= 1)) {
    throw InvalidArgument(
        str("[MovingAverage] decay must be from 0 to 1; received ", *options_.decay), site);
  }
}

void MovingAverage::update(Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  const int64_t count = num_updates_ + 1;
  const double weight = options_.decay ? 1 - *options_.decay : 1 / static_cast<double>(count);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (i == averages_.size()) {
      averages_.push_back(tensor.detach().clone());
    } else if (is_floating(tensor.dtype())) {
      averages_[i].add_(tensor - averages_[i], {.alpha = weight});
    } else {
      averages_[i].copy_(tensor);
    }
  }
  num_updates_ = count;
}

void MovingAverage::copy_to_tensors(Site site) const {
  const SiteScope scope(site);
  if (num_updates_ == 0) {
    throw InvalidArgument("[MovingAverage] no average has been computed yet; call update() first");
  }
  const NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].copy_(averages_[i]);
}

MovingAverage::Scope::Scope(const MovingAverage& average, Site site) : average_(average) {
  for (const Tensor& tensor : average.tensors_)
    kept_.push_back(tensor.detach().clone());
  average.copy_to_tensors(site);
}

MovingAverage::Scope::~Scope() {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < kept_.size(); ++i)
    average_.tensors_[i].copy_(kept_[i]);
}

nn::StateDict MovingAverage::state_dict() const {
  nn::StateDict state;
  state.emplace("num_updates", full({}, static_cast<double>(num_updates_), {.dtype = float64}));
  for (size_t i = 0; i < averages_.size(); ++i)
    state.emplace(std::to_string(i), averages_[i]);
  return state;
}

void MovingAverage::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  const auto count = state.find("num_updates");
  std::vector<Tensor> loaded;
  for (size_t i = 0; i < tensors_.size() && state.size() > 1; ++i) {
    const auto found = state.find(std::to_string(i));
    if (found == state.end() || !(found->second.shape() == tensors_[i].shape())) break;
    const Tensor& own = tensors_[i];
    loaded.push_back(empty_like(own).copy_(nn::with_layout_of(found->second, own, Site::here())));
  }
  const auto num_updates = count == state.end() ? -1 : count->second.item<int64_t>();
  const size_t num_wanted = num_updates == 0 ? 0 : tensors_.size();
  if (num_updates < 0 || loaded.size() != num_wanted || loaded.size() + 1 != state.size()) {
    throw InvalidArgument(
        str("[MovingAverage] the state does not fit the tensors: it has matching averages for ",
            loaded.size(), " of ", tensors_.size(),
            " tensors; nothing was loaded; use the state of the same model"));
  }
  averages_ = std::move(loaded);
  num_updates_ = num_updates;
}

}  // namespace flow::optim

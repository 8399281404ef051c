#include "nn/job/optimizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "nn/job/rank_job.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"

namespace flow::job {

PiecewiseConstant::PiecewiseConstant(std::vector<int64_t> boundaries, std::vector<double> values)
    : boundaries_(std::move(boundaries)), values_(std::move(values)) {
  const bool ascend = std::adjacent_find(boundaries_.begin(), boundaries_.end(),
                                         std::greater_equal<>()) == boundaries_.end();
  if (!ascend || values_.size() != boundaries_.size() + 1) {
    throw InvalidArgument(str(
        "[PiecewiseConstant] boundaries must ascend, and there must be one more value; received ",
        boundaries_.size(), ascend ? "" : " non-ascending", " boundaries and ", values_.size(),
        " values"));
  }
}

double PiecewiseConstant::operator()(int64_t step) const {
  const auto next = std::upper_bound(boundaries_.begin(), boundaries_.end(), step);
  return values_[static_cast<size_t>(next - boundaries_.begin())];
}

namespace optimizer {

namespace {

// The rate of the optimizer; the schedule multiplies it.
constexpr double kBaseRate = 1;

void check_schedule(const LrScheduler& lr, const char* optimizer) {
  if (!lr) {
    throw InvalidArgument(
        str("[", optimizer,
            "] no learning rate was given; give {.lr_scheduler = PiecewiseConstant({}, {0.1})}"));
  }
}

}  // namespace

SGD::SGD(const SGDOptions& options) : options_(options) {
  check_schedule(options.lr_scheduler, "SGD");
}

void SGD::minimize(const TensorArg& loss) const {
  const optim::SGDOptions rule{.lr = kBaseRate, .momentum = options_.momentum};
  const auto make = [rule](const std::vector<Tensor>& variables) {
    return std::make_unique<optim::SGD>(variables, rule);
  };
  RankJob::in_function("minimize", loss.site()).minimize(loss, {make, options_.lr_scheduler});
}

Adam::Adam(const AdamOptions& options) : options_(options) {
  check_schedule(options.lr_scheduler, "Adam");
}

void Adam::minimize(const TensorArg& loss) const {
  const optim::AdamOptions rule{
      .lr = kBaseRate, .betas = {options_.beta1, options_.beta2}, .eps = options_.epsilon};
  const auto make = [rule](const std::vector<Tensor>& variables) {
    return std::make_unique<optim::Adam>(variables, rule);
  };
  RankJob::in_function("minimize", loss.site()).minimize(loss, {make, options_.lr_scheduler});
}

Rule::Rule(Make make, LrScheduler lr_scheduler)
    : make_(std::move(make)), lr_scheduler_(std::move(lr_scheduler)) {
  if (!make_) {
    throw InvalidArgument(
        "[Rule] the function that makes the optimizer is empty; give one that returns an "
        "optimizer");
  }
}

void Rule::minimize(const TensorArg& loss) const {
  RankJob::in_function("minimize", loss.site()).minimize(loss, {make_, lr_scheduler_});
}

}  // namespace optimizer
}  // namespace flow::job

#include "nn/optim/lr_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/calls/site_scope.h"
#include "core/error.h"

namespace flow::optim::lr_scheduler {

namespace {
std::vector<LrLambda> lambdas_of(const char* scheduler, const LambdaLROptions& options,
                                 const Optimizer& optimizer, Site site) {
  const SiteScope scope(site);
  const auto num_groups = static_cast<size_t>(optimizer.num_groups());
  std::vector<LrLambda> lambdas = options.lr_lambdas;
  if (lambdas.empty()) lambdas.assign(num_groups, options.lr_lambda);
  if (lambdas.size() != num_groups) {
    throw InvalidArgument(str("[", scheduler, "] the number of lr_lambdas does not fit; received ",
                              lambdas.size(), " for ", num_groups,
                              " parameter groups; give lr_lambda, or one lambda for each group"));
  }
  for (const LrLambda& lambda : lambdas) {
    if (!lambda)
      throw InvalidArgument(str("[", scheduler, "] lr_lambda is empty; give a function"));
  }
  return lambdas;
}

void check_positive(const char* scheduler, const char* name, int64_t value) {
  if (value > 0) return;
  throw InvalidArgument(str("[", scheduler, "] ", name, " must be positive; received ", value));
}

double to_double(int64_t value) {
  return static_cast<double>(value);
}
}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, const LambdaLROptions& options, Site site)
    : GroupScheduler(optimizer), lambdas_(lambdas_of("LambdaLR", options, optimizer, site)) {
  const SiteScope scope(site);
  begin();
}

double LambdaLR::next_lr(int64_t group) const {
  return base_lr(group) * lambdas_[static_cast<size_t>(group)](last_epoch());
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, const LambdaLROptions& options, Site site)
    : GroupScheduler(optimizer),
      lambdas_(lambdas_of("MultiplicativeLR", options, optimizer, site)) {
  const SiteScope scope(site);
  begin();
}

double MultiplicativeLR::next_lr(int64_t group) const {
  if (is_initial()) return group_lr(group);
  return group_lr(group) * lambdas_[static_cast<size_t>(group)](last_epoch());
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  check_positive("StepLR", "step_size", options.step_size);
  begin();
}

double StepLR::next_lr(int64_t group) const {
  if (last_epoch() == 0 || last_epoch() % options_.step_size != 0) return group_lr(group);
  return group_lr(group) * options_.gamma;
}

double StepLR::closed_lr(int64_t group) const {
  return base_lr(group) * std::pow(options_.gamma, to_double(last_epoch() / options_.step_size));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, MultiStepLROptions options, Site site)
    : GroupScheduler(optimizer), options_(std::move(options)) {
  const SiteScope scope(site);
  begin();
}

double MultiStepLR::next_lr(int64_t group) const {
  const auto& milestones = options_.milestones;
  const auto times = std::count(milestones.begin(), milestones.end(), last_epoch());
  return times == 0 ? group_lr(group)
                    : group_lr(group) * std::pow(options_.gamma, to_double(times));
}

double MultiStepLR::closed_lr(int64_t group) const {
  const auto times = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                   [&](int64_t milestone) { return milestone <= last_epoch(); });
  return base_lr(group) * std::pow(options_.gamma, to_double(times));
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  if (!(options.factor >= 0 && options.factor <= 1)) {
    throw InvalidArgument(
        str("[ConstantLR] factor must be from 0 to 1; received ", options.factor));
  }
  begin();
}

double ConstantLR::next_lr(int64_t group) const {
  if (last_epoch() == 0) return group_lr(group) * options_.factor;
  if (last_epoch() != options_.total_iters) return group_lr(group);
  // The previous rate is 0 and cannot be scaled back.
  if (options_.factor == 0) return base_lr(group);
  return group_lr(group) * (1.0 / options_.factor);
}

double ConstantLR::closed_lr(int64_t group) const {
  const double is_over = last_epoch() >= options_.total_iters ? 1 : 0;
  return base_lr(group) * (options_.factor + is_over * (1 - options_.factor));
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  if (!(options.start_factor > 0 && options.start_factor <= 1) ||
      !(options.end_factor >= 0 && options.end_factor <= 1)) {
    throw InvalidArgument(
        str("[LinearLR] start_factor must be in (0, 1] and end_factor in [0, 1]; "
            "received ",
            options.start_factor, " and ", options.end_factor));
  }
  check_positive("LinearLR", "total_iters", options.total_iters);
  begin();
}

double LinearLR::next_lr(int64_t group) const {
  if (last_epoch() == 0) return group_lr(group) * options_.start_factor;
  if (is_initial() || last_epoch() > options_.total_iters) return group_lr(group);
  const double rise = options_.end_factor - options_.start_factor;
  const double before =
      to_double(options_.total_iters) * options_.start_factor + to_double(last_epoch() - 1) * rise;
  return group_lr(group) * (1.0 + rise / before);
}

double LinearLR::closed_lr(int64_t group) const {
  const double rise = options_.end_factor - options_.start_factor;
  const double done = to_double(std::min(options_.total_iters, last_epoch()));
  return base_lr(group) * (options_.start_factor + rise * done / to_double(options_.total_iters));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  begin();
}

double ExponentialLR::next_lr(int64_t group) const {
  return is_initial() ? group_lr(group) : group_lr(group) * options_.gamma;
}

double ExponentialLR::closed_lr(int64_t group) const {
  return base_lr(group) * std::pow(options_.gamma, to_double(last_epoch()));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  check_positive("PolynomialLR", "total_iters", options.total_iters);
  begin();
}

double PolynomialLR::next_lr(int64_t group) const {
  if (is_initial() || last_epoch() > options_.total_iters) return group_lr(group);
  const double total = to_double(options_.total_iters);
  const double factor = std::pow(
      (1.0 - to_double(last_epoch()) / total) / (1.0 - to_double(last_epoch() - 1) / total),
      options_.power);
  return group_lr(group) * factor;
}

double PolynomialLR::closed_lr(int64_t group) const {
  const double done = to_double(std::min(options_.total_iters, last_epoch()));
  return base_lr(group) * std::pow(1.0 - done / to_double(options_.total_iters), options_.power);
}

CosineDecayLR::CosineDecayLR(Optimizer& optimizer, const CosineDecayLROptions& options, Site site)
    : GroupScheduler(optimizer), options_(options) {
  const SiteScope scope(site);
  check_positive("CosineDecayLR", "decay_steps", options.decay_steps);
  begin();
}

double CosineDecayLR::next_lr(int64_t group) const {
  const double done = to_double(std::min(options_.decay_steps, last_epoch()));
  const double cosine =
      0.5 * (1 + std::cos(std::numbers::pi * done / to_double(options_.decay_steps)));
  return base_lr(group) * ((1 - options_.alpha) * cosine + options_.alpha);
}

}  // namespace flow::optim::lr_scheduler

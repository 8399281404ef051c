#include "nn/layers/adaptive_softmax.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/selection.h"
#include "ops/norm/softmax.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::nn {

namespace {

std::vector<int64_t> checked_cutoffs(std::vector<int64_t> cutoffs, int64_t in_features,
                                     int64_t n_classes, Site site) {
  internal::check_sizes("AdaptiveLogSoftmaxWithLoss", {{"in_features", in_features}}, site);
  bool is_valid = !cutoffs.empty() && cutoffs.front() > 0 && cutoffs.back() < n_classes;
  for (size_t i = 1; i < cutoffs.size(); ++i)
    is_valid = is_valid && cutoffs[i - 1] < cutoffs[i];
  if (!is_valid) {
    throw InvalidArgument(
        str("[AdaptiveLogSoftmaxWithLoss] cutoffs must be ascending numbers from 1 "
            "to n_classes - 1, at least one; received ",
            Shape(cutoffs), " for ", n_classes, " classes"),
        site);
  }
  cutoffs.push_back(n_classes);
  return cutoffs;
}

// Entry index[n] of each row n.
Tensor entry_of(const Tensor& rows, const Tensor& index) {
  return squeeze(gather(rows, 1, unsqueeze(index, 1)), 1);
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       AdaptiveLogSoftmaxOptions options, Site site)
    : AdaptiveLogSoftmaxWithLoss(in_features,
                                 checked_cutoffs(std::move(cutoffs), in_features, n_classes, site),
                                 options, site) {}

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features,
                                                       std::vector<int64_t> cutoffs,
                                                       AdaptiveLogSoftmaxOptions options, Site site)
    : head(register_module(
          "head", Linear(in_features, cutoffs[0] + static_cast<int64_t>(cutoffs.size()) - 1,
                         {.bias = options.head_bias}))),
      tail(register_module("tail", ModuleList<Sequential>())),
      cutoffs_(std::move(cutoffs)) {
  const SiteScope scope(site);
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const auto features =
        static_cast<int64_t>(std::floor(static_cast<double>(in_features) /
                                        std::pow(options.div_value, static_cast<double>(i + 1))));
    if (features < 1) {
      throw InvalidArgument(str("[AdaptiveLogSoftmaxWithLoss] cluster ", i, " projects ",
                                in_features, " features to none, with div_value ",
                                options.div_value,
                                "; make div_value or the number of cutoffs "
                                "smaller"));
    }
    tail.push_back(Sequential(Linear(in_features, features, {.bias = false}),
                              Linear(features, cutoffs_[i + 1] - cutoffs_[i], {.bias = false})));
  }
}

Tensor AdaptiveLogSoftmaxWithLoss::cluster(size_t i, const Tensor& rows) {
  return log_softmax(tail[static_cast<int64_t>(i)](rows), 1);
}

AdaptiveLogSoftmaxResult AdaptiveLogSoftmaxWithLoss::forward(const Tensor& input,
                                                             const Tensor& target) {
  if (target.dim() > 1 || input.dim() != target.dim() + 1 ||
      (target.dim() == 1 && input.size(0) != target.size(0))) {
    throw InvalidArgument(
        str("[AdaptiveLogSoftmaxWithLoss] takes input (N, in_features) and target "
            "(N), or (in_features) and (); received ",
            input.meta(), " and ", target.meta()));
  }
  if (target.dim() == 0) {
    const AdaptiveLogSoftmaxResult rows = forward(unsqueeze(input, 0), unsqueeze(target, 0));
    return {squeeze(rows.output, 0), rows.loss};
  }
  // The rows of a cluster are their own tensor where their number may depend on the values.
  const bool picks_rows = thread_state().trace == nullptr && !input.is_global();
  const int64_t shortlist = cutoffs_[0];
  Tensor in_head = target, tails = zeros_like(input.select(1, 0));
  int64_t num_in_clusters = 0;
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor is_in = (target >= cutoffs_[i]) & (target < cutoffs_[i + 1]);
    const Tensor own = target - cutoffs_[i];
    in_head = masked_fill(in_head, is_in, shortlist + static_cast<int64_t>(i));
    if (!picks_rows) {
      const Tensor any = clamp(own, {.min = 0, .max = cutoffs_[i + 1] - cutoffs_[i] - 1});
      tails = tails + masked_fill(entry_of(cluster(i, input), any), logical_not(is_in), 0);
      continue;
    }
    const Tensor rows = squeeze(nonzero(is_in), 1);
    num_in_clusters += rows.numel();
    if (rows.numel() == 0) continue;
    const Tensor terms =
        entry_of(cluster(i, index_select(input, 0, rows)), index_select(own, 0, rows));
    tails = index_add(tails, 0, rows, terms);
  }
  if (picks_rows) {
    const auto num_in_head = ((target >= 0) & (target < shortlist)).sum().item<int64_t>();
    if (num_in_head + num_in_clusters != target.numel()) {
      throw InvalidArgument(str("[AdaptiveLogSoftmaxWithLoss] targets must be from 0 to ",
                                cutoffs_.back() - 1, "; received values from ",
                                target.min().item<int64_t>(), " to ",
                                target.max().item<int64_t>()));
    }
  }
  const Tensor output = entry_of(log_softmax(head(input), 1), in_head) + tails;
  return {output, neg(output.mean())};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) {
  const Tensor all = log_softmax(head(input), 1);
  std::vector<Tensor> parts{all.narrow(1, 0, cutoffs_[0])};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i)
    parts.push_back(cluster(i, input) + all.narrow(1, cutoffs_[0] + static_cast<int64_t>(i), 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) {
  return log_prob(input).argmax(1);
}

}  // namespace flow::nn

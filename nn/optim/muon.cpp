#include "nn/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/statistics.h"

namespace flow::optim {

namespace {

double rate_factor(const std::string& rule, double rows, double columns) {
  if (rule == "match_rms_adamw") return 0.2 * std::sqrt(std::max(rows, columns));
  const double ratio = rows / columns;
  return std::sqrt(rule == "original" ? std::max(1.0, ratio) : ratio);
}

Tensor orthogonalised(const Tensor& update, const MuonOptions& o) {
  const bool is_tall = update.size(0) > update.size(1);
  const auto [a, b, c] = o.ns_coefficients;
  Tensor x = cast(update, bfloat16);
  if (is_tall) x = x.transpose(0, 1);
  x = x / clamp_min(norm(x), o.eps);
  for (int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(x, x.transpose(0, 1));
    const Tensor factor = addmm(gram, gram, gram, {.beta = b, .alpha = c});
    x = addmm(x, factor, x, {.beta = a});
  }
  return is_tall ? x.transpose(0, 1) : x;
}

}  // namespace

void check_options(const MuonOptions& o) {
  if (o.lr < 0 || o.weight_decay < 0 || o.momentum < 0 || o.ns_steps < 0 || o.ns_steps >= 100) {
    throw InvalidArgument(
        str("[Muon] lr, weight_decay and momentum must not be negative, and "
            "ns_steps must be below 100; received ",
            o.lr, ", ", o.weight_decay, ", ", o.momentum, ", ", o.ns_steps));
  }
  if (o.adjust_lr_fn != "original" && o.adjust_lr_fn != "match_rms_adamw" &&
      o.adjust_lr_fn != "spectral_unclamped") {
    throw InvalidArgument(str("[Muon] adjust_lr_fn is unknown; received '", o.adjust_lr_fn,
                              "'; give original, match_rms_adamw or spectral_unclamped"));
  }
}

void Muon::update(const Tensor& parameter, const Tensor& grad, size_t number, ParamState& state) {
  const MuonOptions& o = options_of(number);
  if (parameter.dim() != 2) {
    throw InvalidArgument(str("[Muon] parameters must be matrices; received ", parameter.meta(),
                              "; give the others to another optimizer, such as AdamW"));
  }
  const Tensor& average = buffer(state, 0, parameter);
  const double factor = rate_factor(o.adjust_lr_fn, static_cast<double>(parameter.size(0)),
                                    static_cast<double>(parameter.size(1)));
  const bool is_traced = state.rate(0).defined();
  const auto mixed = [&](const Tensor& from, const Tensor& to, bool to_momentum) {
    if (!is_traced) return lerp(from, to, to_momentum ? o.momentum : 1 - o.momentum);
    const Tensor weight = cast(state.rate(2), from.dtype());
    return from + (to - from) * (to_momentum ? weight : 1 - weight);
  };
  average.copy_(mixed(average, grad, false));
  const Tensor step = o.nesterov ? mixed(grad, average, true) : average;
  const Tensor direction = cast(orthogonalised(step, o), parameter.dtype());
  if (is_traced) {
    parameter.mul_(1 - state.rate(0) * o.weight_decay);
    parameter.sub_(direction * (state.rate(0) * factor));
  } else {
    parameter.mul_(1 - o.lr * o.weight_decay);
    parameter.sub_(direction * (o.lr * factor));
  }
}

}  // namespace flow::optim

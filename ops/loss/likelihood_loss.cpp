#include "ops/loss/likelihood_loss.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/loss/loss_op.h"
#include "ops/named_errors.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using ops::loss_operand;
using ops::parse_reduction;
using ops::reduced;

}  // namespace

Tensor poisson_nll_loss(const TensorArg& input, const TensorArg& target,
                        const PoissonNllOptions& options) {
  return ops::named("poisson_nll_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "poisson_nll_loss");
    ops::warn_of_broadcast("poisson_nll_loss", input, target);
    const Tensor x = loss_operand(input);
    const Tensor expected = options.log_input ? exp({x, site}) : x;
    const Tensor rate = options.log_input ? x : log({add({x, site}, options.eps), site});
    Tensor losses = sub({expected, site}, mul({rate, site}, target));
    if (options.full) {
      // t log(t) - t + log(2 π t) / 2 where t > 1; taken of 1 elsewhere, as log(0) has no gradient.
      const Tensor is_small = le(target, 1);
      const Tensor t = masked_fill(target, {is_small, site}, 1);
      const Tensor logs = log({t, site});
      const Tensor spread = mul({add({logs, site}, std::log(2 * std::numbers::pi)), site}, 0.5);
      const Tensor stirling = add({sub({mul({t, site}, logs), site}, t), site}, spread);
      losses = add({losses, site}, masked_fill({stirling, site}, {is_small, site}, 0));
    }
    return reduced(losses, reduction, site);
  });
}

Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, const TensorArg& var,
                         const GaussianNllOptions& options) {
  return ops::named("gaussian_nll_loss", input.site(), [&]() -> Tensor {
    const Site site = input.site();
    const auto reduction = parse_reduction(options.reduction, "gaussian_nll_loss");
    ops::warn_of_broadcast("gaussian_nll_loss", input, target);
    Tensor variance = loss_operand(var);
    if (variance.shape() != input->shape()) {
      Shape without = input->shape();
      if (!without.empty()) without.erase(without.size() - 1);
      int64_t differing = 0;  // the sum of the sizes that are not the input's
      for (int64_t i = 0; variance.dim() == input->dim() && i < input->dim(); ++i) {
        if (variance.shape()[i] != input->shape()[i]) differing += variance.shape()[i];
      }
      if (variance.shape() == without && !input->shape().empty()) {
        variance = unsqueeze({variance, site}, -1);
      } else if (differing != 1) {
        throw InvalidArgument(
            str("[gaussian_nll_loss] takes a variance of the input's shape, or with one dim 1; "
                "received ",
                input->meta(), " and ", var->meta(), "; reshape them"),
            site);
      }
    }
    const Tensor raise =
        clamp({options.eps - TensorArg(variance.detach(), site), site}, {.min = 0});
    variance = add({variance, site}, raise);
    const Tensor error = square({sub({loss_operand(input), site}, target), site});
    Tensor losses =
        mul({add({log({variance, site}), site}, div({error, site}, variance)), site}, 0.5);
    if (options.full) losses = add({losses, site}, 0.5 * std::log(2 * std::numbers::pi));
    return reduced(losses, reduction, site);
  });
}

Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, double var,
                         const GaussianNllOptions& options) {
  if (!(var >= 0)) {
    throw InvalidArgument(str("[gaussian_nll_loss] var is ", var, "; give 0 or more"),
                          input.site());
  }
  return gaussian_nll_loss(input, target, {full_like(input, var), input.site()}, options);
}

}  // namespace flow

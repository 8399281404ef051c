#include "support/run_checks.h"

#include <cmath>

#include "core/error.h"
#include "support/report.h"

namespace examples {

void check_first_loss(double loss, double of_one_rank) {
  if (std::abs(loss - of_one_rank) <= 1e-5 * std::abs(of_one_rank)) return;  // false for NaN
  throw flow::Error(flow::str(
      "[check] the ranks do not compute what one rank computes: the first loss is ", shortest(loss),
      ", on one rank ", shortest(of_one_rank), "; give all ranks the same text, seed and weights"));
}

void check_resumed_losses(std::span<const double> again, std::span<const double> losses) {
  if (again.size() > losses.size()) {
    throw flow::Error(flow::str("[check] ", again.size(),
                                " steps ran again after a checkpoint; only ", losses.size(),
                                " ran before"));
  }
  const size_t first = losses.size() - again.size();
  for (size_t i = 0; i < again.size(); ++i) {
    if (again[i] == losses[first + i]) continue;
    if (std::isnan(again[i]) && std::isnan(losses[first + i])) {
      throw flow::Error(flow::str("[check] the loss of step ", i + 1, " of ", again.size(),
                                  " after a checkpoint is NaN, before and when it ran again; train "
                                  "with a lower rate"));
    }
    throw flow::Error(
        flow::str("[check] the steps after a checkpoint differ when they run again: step ", i + 1,
                  " of ", again.size(), " has the loss ", shortest(again[i]), ", before ",
                  shortest(losses[first + i]),
                  "; the checkpoint does not hold everything that a step reads"));
  }
}

}  // namespace examples

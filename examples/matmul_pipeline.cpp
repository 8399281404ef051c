// Two matrix products as stages on different ranks; the value between them moves.
//
//   flowrun -n 2 build/release/bin/matmul_pipeline      or: mpirun -n 2 …
#include <flow/flow.h>

#include "support/arguments.h"
#include "support/training.h"

namespace sbp = flow::sbp;
using flow::Tensor;

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Multiplies three matrices in two stages.",
                                        examples::kSeedOnly);
    flow::manual_seed(arguments.seed);
    const flow::Placement first(arguments.device, {0}), second(arguments.device, {1});
    const Tensor x = flow::randn({4, 5}, {.placement = first, .sbp = sbp::broadcast});
    const Tensor w0 = flow::randn({5, 8}, {.placement = first, .sbp = sbp::broadcast});
    const Tensor w1 = flow::randn({8, 3}, {.placement = second, .sbp = sbp::broadcast});
    const Tensor h = flow::matmul(x, w0);
    const Tensor z = flow::matmul(h.to_global({.placement = second, .sbp = sbp::broadcast}), w1);
    flow::print(h.shape(), h.placement(), z.shape(), z.placement());  // known on every rank
  });
}

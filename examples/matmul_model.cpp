// One matrix product, model parallel: w is split over two ranks, by its columns or by its rows.
//
//   flowrun -n 2 build/release/bin/matmul_model      or: mpirun -n 2 …
#include <flow/flow.h>

#include "support/arguments.h"
#include "support/training.h"

namespace sbp = flow::sbp;
using flow::Tensor;

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Multiplies two matrices, model parallel.",
                                        examples::kSeedOnly);
    flow::manual_seed(arguments.seed);
    const flow::Placement both(arguments.device, {0, 1});

    // Each rank has all of x and some columns of the result.
    const Tensor x = flow::randn({4, 5}, {.placement = both, .sbp = sbp::broadcast});
    const Tensor columns = flow::randn({5, 8}, {.placement = both, .sbp = sbp::split(1)});
    const Tensor y = flow::matmul(x, columns);
    flow::print(y.shape(), y.sbp(), y.to_local().shape());  // (4, 8) S(1) (4, 4)

    // The sum over the dim of size 5 is split, so each rank has an addend of the result.
    const Tensor parts = flow::randn({4, 5}, {.placement = both, .sbp = sbp::split(1)});
    const Tensor rows = flow::randn({5, 8}, {.placement = both, .sbp = sbp::split(0)});
    const Tensor partial = flow::matmul(parts, rows);
    const Tensor sum = partial.to_global({.sbp = sbp::broadcast});
    flow::print(partial.shape(), partial.sbp(), sum.sbp(),
                sum.to_local().shape());  // (4, 8) P B (4, 8)
  });
}

// One matrix product, data parallel: the rows of x are split over two ranks, and each rank has all
// of w.
//
//   flowrun -n 2 build/release/bin/matmul_data      or: mpirun -n 2 …
#include <flow/flow.h>

#include "support/arguments.h"
#include "support/training.h"

namespace sbp = flow::sbp;

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Multiplies two matrices, data parallel.",
                                        examples::kSeedOnly);
    flow::manual_seed(arguments.seed);
    const flow::Placement both(arguments.device, {0, 1});
    const flow::Tensor x = flow::randn({4, 5}, {.placement = both, .sbp = sbp::split(0)});
    const flow::Tensor w = flow::randn({5, 8}, {.placement = both, .sbp = sbp::broadcast});
    const flow::Tensor y = flow::matmul(x, w);
    flow::print(y.shape(), y.sbp(), y.to_local().shape());  // (4, 8) S(0) (2, 8)
  });
}

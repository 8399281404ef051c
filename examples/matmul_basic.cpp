// One matrix product on one rank.
//
//   build/release/bin/matmul_basic
#include <flow/flow.h>

#include "support/arguments.h"
#include "support/training.h"

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Multiplies two matrices.",
                                        examples::kSeedOnly);
    flow::manual_seed(arguments.seed);
    const flow::Tensor x = flow::randn({4, 5}, {.device = arguments.device});
    const flow::Tensor w = flow::randn({5, 8}, {.device = arguments.device});
    flow::print(flow::matmul(x, w).shape());  // (4, 8)
  });
}

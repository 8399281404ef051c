// One matrix product on one rank.
//
//   build/release/bin/matmul_basic
#include <flow/flow.h>

int main() {
  const flow::Tensor x = flow::randn({4, 5}), w = flow::randn({5, 8});
  flow::print(flow::matmul(x, w).shape());  // (4, 8)
}

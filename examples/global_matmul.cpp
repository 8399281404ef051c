// One matrix product under four placements: data parallel, model parallel, contraction split, and
// two stages on ranks of their own.
//
//   flowrun -n 2 build/release/bin/global_matmul      or: mpirun -n 2 …
#include <flow/flow.h>

namespace sbp = flow::sbp;
using flow::Tensor;

namespace {

// Draws global tensors; every layout shows the same logical values.
Tensor draw(const flow::Shape& shape, const flow::Placement& placement, flow::Sbp entry) {
  return flow::randn(shape, {.placement = placement, .sbp = entry});
}

// Each rank prints the logical shape, the layout, and what it holds.
void show(const char* name, const Tensor& y) {
  flow::print(name, y.shape(), y.sbp(), "here", y.to_local().shape());
}

}  // namespace

int main() {
  flow::print("local", flow::matmul(flow::randn({4, 5}), flow::randn({5, 8})).shape());  // (4, 8)

  const flow::Placement both("cpu", {0, 1}), p0("cpu", {0}), p1("cpu", {1});

  show("data parallel", flow::matmul(draw({4, 5}, both, sbp::split(0)),
                                     draw({5, 8}, both, sbp::broadcast)));  // S(0)
  show("model parallel", flow::matmul(draw({4, 5}, both, sbp::broadcast),
                                      draw({5, 8}, both, sbp::split(1))));  // S(1)

  const Tensor partial =
      flow::matmul(draw({4, 5}, both, sbp::split(1)), draw({5, 8}, both, sbp::split(0)));
  show("contraction split", partial);  // P: each rank has an addend
  show("  summed", partial.to_global({.sbp = sbp::broadcast}));

  const Tensor h = flow::matmul(draw({4, 5}, p0, sbp::broadcast), draw({5, 8}, p0, sbp::broadcast));
  const Tensor z = flow::matmul(h.to_global({.placement = p1, .sbp = sbp::broadcast}),
                                draw({8, 3}, p1, sbp::broadcast));
  flow::print("two stages", z.shape(), "on", z.placement());  // known on every rank
}

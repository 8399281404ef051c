// An op of the user's own with shape rule, layouts, gradient and kernel: y = x^2 + c.
#include "tests/first_hour/expect.h"

namespace sbp = flow::sbp;

struct SquarePlusAttrs {
  double c = 0;

  static constexpr auto fields() { return std::tuple(flow::key_field("c", &SquarePlusAttrs::c)); }
};

void infer(flow::InferContext& ctx) {
  ctx.check(flow::is_floating(ctx.input(0).dtype), "x must be floating; received ", ctx.input(0));
  ctx.add_output_like(0);
}

// Every dim may be split, as each element depends on one element.
void signatures(flow::SbpContext& ctx) {
  for (int64_t dim = 0; dim < ctx.input(0).shape.size(); ++dim)
    ctx.add({sbp::split(dim)}, {sbp::split(dim)});
}

void gradient(flow::GradContext& ctx) {
  ctx.set(0, ctx.dy() * 2 * ctx.input(0));
}

template <class T>
void square_plus(const flow::KernelContext& ctx) {
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  const T c = static_cast<T>(ctx.attrs_as<SquarePlusAttrs>().c);
  for (int64_t i = 0; i < ctx.out(0).numel(); ++i)
    y[i] = x[i] * x[i] + c;
}

flow::KernelChoice select(const flow::KernelQuery& query) {
  if (!query.input(0).is_contiguous) return {};
  if (query.input(0).dtype == flow::float32) return {square_plus<float>};
  if (query.input(0).dtype == flow::float64) return {square_plus<double>};
  return {};
}

const flow::OpDef kSquarePlus{.name = "square_plus",
                              .attrs = flow::attrs_def<SquarePlusAttrs>(),
                              .infer = infer,
                              .sbp = signatures,
                              .grad = gradient,
                              .saved_inputs = 1};

flow::Tensor square_plus(const flow::TensorArg& x, double c) {
  const flow::Tensor packed = x->contiguous();  // views have other strides
  return flow::dispatch(kSquarePlus, {&packed}, SquarePlusAttrs{c}, x.site());
}

// Before main: the ranks may be threads, which share the table of ops.
const bool kIsRegistered = [] {
  flow::register_op(kSquarePlus);
  flow::register_kernel(kSquarePlus, flow::DeviceType::kCpu, {"reference", select});
  return true;
}();

struct Step : flow::nn::Graph<Step> {
  flow::Tensor build(const flow::Tensor& x) { return square_plus(x, 1).sum(); }
};

int main() {
  expect(kIsRegistered, "the op is in the table");
  const flow::Tensor x = flow::tensor({1.f, 2.f, 3.f}, {.requires_grad = true});
  const flow::Tensor y = square_plus(x, 0.5);
  expect_near(y, {1.5, 4.5, 9.5}, "x^2 + c");
  y.sum().backward();
  expect_near(x.grad(), {2, 4, 6}, "2 x");

  expect_near(square_plus(flow::tensor({{1.f, 2.f}, {3.f, 4.f}}).t(), 0), {1, 9, 4, 16},
              "a transposed view");

  const flow::Placement both("cpu", {0, 1});
  const flow::Tensor global =
      flow::arange(4, {.dtype = flow::float32, .placement = both, .sbp = sbp::split(0)});
  const flow::Tensor squared = square_plus(global, 1);
  expect(squared.sbp() == sbp::split(0), "split rows stay split");
  expect_near(squared, {1, 2, 5, 10}, "the same on two ranks");
  expect_near(Step()(global).item(), 18, "and in a graph");

  const flow::Tensor z = flow::full({2}, 3., {.dtype = flow::float64, .requires_grad = true});
  expect(flow::gradcheck([](const auto& in) { return std::vector{square_plus(in[0], 1)}; }, {z}),
         "gradcheck agrees");
}

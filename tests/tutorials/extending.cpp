// Functions and modules of the user's own, hooks, and parametrizations.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;
namespace parametrize = flow::nn::utils::parametrize;

namespace {

// The third Legendre polynomial, (5 x³ - 3 x) / 2, with its derivative.
struct LegendrePolynomial3 : flow::Function<LegendrePolynomial3> {
  static flow::Tensor forward(flow::FunctionContext& ctx, const flow::Tensor& input) {
    ctx.save_for_backward({input});
    return 0.5 * (5 * input.pow(3) - 3 * input);
  }

  static std::vector<flow::Tensor> backward(flow::FunctionContext& ctx,
                                            const std::vector<flow::Tensor>& grad_output) {
    const flow::Tensor input = ctx.saved()[0];
    return {grad_output[0] * 1.5 * (5 * input.pow(2) - 1)};
  }
};

void custom_function() {
  const flow::Tensor x = flow::linspace(-3.14159265, 3.14159265, 500);
  const flow::Tensor y = flow::sin(x);
  std::vector<flow::Tensor> p;
  for (const double value : {0.0, -1.0, 0.0, 0.3})
    p.push_back(flow::full({}, value, {.requires_grad = true}));
  double loss_value = 0;
  for (int t = 0; t < 2000; ++t) {
    const flow::Tensor y_pred = p[0] + p[1] * LegendrePolynomial3::apply(p[2] + p[3] * x);
    const flow::Tensor loss = (y_pred - y).pow(2).sum();
    loss.backward();
    loss_value = loss.item();
    const flow::NoGradGuard no_grad;
    for (const flow::Tensor& parameter : p) {
      parameter.sub_(1e-5 * parameter.grad());
      parameter.set_grad(flow::Tensor());
    }
  }
  flow::print("loss", loss_value);
  // By least squares the best cubic has the loss 2.23; the start has 116.
  expect(loss_value < 5, "the polynomial fits");
  expect(
      flow::gradcheck([](const auto& in) { return std::vector{LegendrePolynomial3::apply(in[0])}; },
                      {flow::randn({5}, {.dtype = flow::float64, .requires_grad = true})}),
      "the derivative is right");
}

// y = a + b x + c x² + d x³, and a random number of higher terms that share e.
struct DynamicNet : nn::Module<DynamicNet> {
  flow::Tensor a{register_parameter("a", flow::randn({}))};
  flow::Tensor b{register_parameter("b", flow::randn({}))};
  flow::Tensor e{register_parameter("e", flow::randn({}))};

  flow::Tensor forward(const flow::Tensor& x, int64_t num_terms) {
    flow::Tensor y = a + b * x;
    for (int64_t power = 2; power < 2 + num_terms; ++power)
      y = y + e * x.pow(power);
    return y;
  }
};

void control_flow_and_weight_sharing() {
  DynamicNet model;
  const flow::Tensor x = flow::tensor({1.f, 2.f});
  for (int64_t terms = 0; terms < 3; ++terms) {
    model.zero_grad();
    model(x, terms).sum().backward();
    const double wanted[] = {0, 1 + 4, 1 + 4 + 1 + 8};
    if (terms == 0) {
      expect(!model.e.grad().defined(), "an unused parameter has no gradient");
    } else {
      expect_near(model.e.grad().item(), wanted[terms], "the gradient of the shared parameter");
    }
  }
}

void hooks() {
  nn::Sequential model(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  std::map<std::string, flow::Tensor> activation, gradient;
  nn::ModuleBase layer = model.get_submodule("1");
  const int64_t forward_hook =
      layer.register_forward_hook([&](nn::ModuleBase&, const flow::Tensor&, const flow::Tensor& y) {
        activation["tanh"] = y.detach();
        return flow::Tensor();
      });
  layer.register_full_backward_hook(
      [&](nn::ModuleBase&, const flow::Tensor& grad_input, const flow::Tensor& grad_output) {
        gradient["in"] = grad_input;
        gradient["out"] = grad_output;
        return flow::Tensor();
      });
  const flow::Tensor x = flow::randn({5, 3});
  model(x).sum().backward();
  const flow::Tensor y = activation.at("tanh");
  expect(y.shape() == flow::Shape{5, 4}, "the activation is kept");
  expect(flow::allclose(gradient.at("in"), gradient.at("out") * (1 - y * y)),
         "the gradient passes through tanh");
  layer.remove_hook(forward_hook);
  activation.clear();
  model(x);
  expect(activation.empty(), "the hook is gone");

  // A hook of a tensor changes its gradient.
  const flow::Tensor w = flow::ones({2}, {.requires_grad = true});
  w.register_hook([](const flow::Tensor& grad) { return grad * 2; });
  (w * 3).sum().backward();
  expect_near(w.grad(), {6, 6}, "the doubled gradient");
}

struct Symmetric : nn::Module<Symmetric> {
  flow::Tensor forward(const flow::Tensor& x) { return x.triu() + x.triu(1).transpose(-1, -2); }
};

struct Skew : nn::Module<Skew> {
  flow::Tensor forward(const flow::Tensor& x) { return x.triu(1) - x.triu(1).transpose(-1, -2); }
};

// (1 + A)(1 - A)⁻¹ is orthogonal for a skew A; the inverse as a series.
struct CayleyMap : nn::Module<CayleyMap> {
  flow::Tensor forward(const flow::Tensor& a) {
    const flow::Tensor one = flow::eye(a.size(0));
    flow::Tensor power = one, inverse = one;
    for (int i = 0; i < 40; ++i) {
      power = power.matmul(a);
      inverse = inverse + power;
    }
    return (one + a).matmul(inverse);
  }
};

void parametrizations() {
  nn::Linear layer(3, 3);
  parametrize::register_parametrization(layer, "weight", Symmetric());
  layer(flow::randn({1, 3})).sum().backward();
  expect(flow::equal(layer.weight, layer.weight.t()), "the weight is symmetric");
  expect(layer.get_parameter("parametrizations.weight.original").grad().defined(),
         "the original is trained");

  nn::Linear orthogonal(4, 4);
  {
    const flow::NoGradGuard no_grad;
    orthogonal.weight.mul_(0.3);
  }
  parametrize::register_parametrization(orthogonal, "weight", Skew());
  parametrize::register_parametrization(orthogonal, "weight", CayleyMap());
  expect(flow::allclose(orthogonal.weight.matmul(orthogonal.weight.t()), flow::eye(4),
                        {.rtol = 1e-4, .atol = 1e-5}),
         "two parametrizations make the weight orthogonal");
  expect(parametrize::is_parametrized(orthogonal), "the layer knows");
  parametrize::remove_parametrizations(orthogonal, "weight");
  expect(!parametrize::is_parametrized(orthogonal) && orthogonal.weight.requires_grad(),
         "the weight is a parameter again");
}

void custom_initialisation() {
  nn::Sequential model(nn::Linear(100, 50), nn::ReLU(), nn::Linear(50, 10));
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (parameter.dim() > 1) {
      nn::init::kaiming_normal_(parameter, {.nonlinearity = "relu"});
    } else {
      nn::init::zeros_(parameter);
    }
  }
  expect_near(model.get_parameter("0.weight").std().item(), std::sqrt(2.0 / 100), "the deviation",
              0.01);
  expect_near(model.get_parameter("2.bias").abs().sum().item(), 0, "the biases");
}

}  // namespace

int main() {
  return run_tutorials({{"custom_function", custom_function},
                        {"control_flow_and_weight_sharing", control_flow_and_weight_sharing},
                        {"hooks", hooks},
                        {"parametrizations", parametrizations},
                        {"custom_initialisation", custom_initialisation}});
}

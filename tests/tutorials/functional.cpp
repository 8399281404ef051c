// Transforms of functions: Jacobians, forward-mode products, Hessians, gradients of single samples,
// ensembles, meta-learning and tangent kernels.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;

namespace {

nn::StateDict as_dict(const nn::NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

void jacobians() {
  const flow::Tensor weight = flow::randn({4, 3}), bias = flow::randn({4});
  const auto predict = [&](const flow::Tensor& x) {
    return flow::tanh(flow::linear(x, weight, bias));
  };
  const flow::Tensor x = flow::randn({3});
  const flow::Tensor jacobian = flow::jacobian(predict, x);
  const flow::Tensor slope = 1 - predict(x).square();
  expect(flow::allclose(jacobian, slope.unsqueeze(1) * weight), "the Jacobian by hand");

  const flow::Tensor v = flow::randn({3}), u = flow::randn({4});
  expect(flow::allclose(flow::jvp(predict, x, v).second, flow::matmul(jacobian, v)),
         "forward mode: J v");
  expect(flow::allclose(flow::vjp(predict, x, u).second, flow::matmul(u, jacobian)),
         "reverse mode: u J");
  const flow::Tensor xs = flow::randn({5, 3});
  const auto each = [&](const flow::Tensor& row) { return flow::jacobian(predict, row); };
  expect(flow::vmap(each)(xs).shape() == flow::Shape{5, 4, 3}, "a Jacobian for each row");
}

void hessians() {
  const flow::Tensor x = flow::tensor({0.5, 1.5});
  const flow::Tensor hessian =
      flow::hessian([](const flow::Tensor& v) { return (v[0].pow(3) * v[1]).sum(); }, x);
  expect_near(hessian, {6 * 0.5 * 1.5, 3 * 0.25, 3 * 0.25, 0}, "the Hessian of a³ b");

  // Newton's method reaches the minimum of a quadratic in one step.
  const flow::Tensor a = flow::tensor({{3.0, 1.0}, {1.0, 2.0}}), b = flow::tensor({1.0, -1.0});
  const auto loss = [&](const flow::Tensor& v) {
    return 0.5 * flow::matmul(v, flow::matmul(a, v)) - flow::matmul(b, v);
  };
  const flow::Tensor start = flow::tensor({5.0, 7.0});
  const flow::Tensor gradient = flow::vjp(loss, start).second;
  const auto h = flow::hessian(loss, start).to_vector<double>();
  const auto g = gradient.to_vector<double>();
  const double det = h[0] * h[3] - h[1] * h[2];
  const flow::Tensor step =
      flow::tensor({(h[3] * g[0] - h[1] * g[1]) / det, (h[0] * g[1] - h[2] * g[0]) / det});
  expect_near(flow::matmul(a, start - step), {1, -1}, "A x = b at the minimum", 1e-4);
}

void per_sample_gradients() {
  nn::Sequential model(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 3));
  const flow::Tensor data = flow::randn({6, 4});
  const flow::Tensor targets = flow::randint(3, {6}, {.dtype = flow::int64});
  const flow::Tensor weight = model.get_parameter("0.weight");
  const auto gradient_of = [&](int64_t i) {
    const auto loss = [&](const flow::Tensor& w) {
      const flow::Tensor y = nn::functional_call(model, {{"0.weight", w}}, data.narrow(0, i, 1));
      return flow::cross_entropy(y, targets.narrow(0, i, 1));
    };
    return flow::vjp(loss, weight.detach()).second;
  };
  std::vector<flow::Tensor> each;
  for (int64_t i = 0; i < 6; ++i)
    each.push_back(gradient_of(i));
  flow::cross_entropy(model(data), targets).backward();
  expect(flow::allclose(flow::stack(each).mean({0}), weight.grad(), {.rtol = 1e-4, .atol = 1e-6}),
         "the mean of the samples' gradients is that of the batch");
}

void model_ensembling() {
  // One structure, the weights of several models.
  nn::Sequential base(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  std::vector<nn::Sequential> models;
  for (int i = 0; i < 3; ++i)
    models.emplace_back(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  const flow::Tensor x = flow::randn({5, 4});
  std::vector<flow::Tensor> predictions;
  for (nn::Sequential& model : models) {
    const flow::Tensor y = nn::functional_call(base, as_dict(model.named_parameters()), x);
    expect(flow::equal(y, model(x)), "the base computes as the model whose weights it is given");
    predictions.push_back(y);
  }
  expect(flow::stack(predictions).mean({0}).shape() == flow::Shape{5, 2}, "the ensemble's mean");

  // The stacked weights of all models at once, through vmap over their position.
  std::vector<flow::Tensor> weights;
  for (nn::Sequential& model : models)
    weights.push_back(model.get_parameter("2.weight"));
  const flow::Tensor outputs = flow::vmap([&](const flow::Tensor& w) {
    return nn::functional_call(base, {{"2.weight", w}}, x);
  })(flow::stack(weights));
  expect(outputs.shape() == flow::Shape{3, 5, 2}, "a result for each model");
}

void meta_learning() {
  // MAML on y = s x with a slope s for each task: one step of the inner loop, differentiated.
  nn::Linear model(1, 1);
  flow::optim::Adam optimizer(model.parameters(), {.lr = 0.05});
  double loss_value = 0;
  for (int step = 0; step < 100; ++step) {
    flow::Tensor total;
    for (const double slope : {1.0, 2.0, 3.0}) {
      const flow::Tensor x = flow::randn({20, 1}), y = x * slope;
      const flow::Tensor loss = flow::mse_loss(model(x), y);
      const auto grads = flow::grad({loss}, {model.weight, model.bias}, {.create_graph = true});
      const nn::StateDict adapted = {{"weight", model.weight - 0.3 * grads[0]},
                                     {"bias", model.bias - 0.3 * grads[1]}};
      const flow::Tensor after = flow::mse_loss(nn::functional_call(model, adapted, x), y);
      total = total.defined() ? total + after : after;
    }
    optimizer.zero_grad();
    total.backward();
    optimizer.step();
    loss_value = total.item() / 3;
  }
  flow::print("weight", model.weight.item(), "loss after adaption", loss_value);
  expect_near(model.weight.item(), 2, "the start from which all tasks are near", 0.25);
  expect(loss_value < 0.15, "one step adapts to a task");
}

void neural_tangent_kernel() {
  nn::Sequential model(nn::Linear(3, 16), nn::Tanh(), nn::Linear(16, 1));
  const flow::Tensor x = flow::randn({4, 3});
  // The Jacobian by all parameters of each sample; the kernel is its Gram matrix.
  const auto parameters = model.named_parameters();
  std::vector<flow::Tensor> values;
  for (const auto& [name, parameter] : parameters)
    values.push_back(parameter.detach());
  const auto predict = [&](const std::vector<flow::Tensor>& given) {
    nn::StateDict state;
    for (size_t i = 0; i < given.size(); ++i)
      state.emplace(parameters[i].first, given[i]);
    return nn::functional_call(model, state, x).squeeze(1);
  };
  flow::Tensor kernel = flow::zeros({4, 4});
  for (const flow::Tensor& part : flow::jacobian(predict, values)) {
    const flow::Tensor flat = part.reshape({4, -1});
    kernel = kernel + flat.matmul(flat.t());
  }
  expect(flow::allclose(kernel, kernel.t()), "the kernel is symmetric");
  // Its first entry is the squared norm of the gradient of the first output.
  model(x)[0].sum().backward();
  double wanted = 0;
  for (const auto& [name, parameter] : parameters)
    wanted += parameter.grad().square().sum().item();
  expect_near(kernel.index({0, 0}).item(), wanted, "the first entry", 1e-4);
}

}  // namespace

int main() {
  return run_tutorials({{"jacobians", jacobians},
                        {"hessians", hessians},
                        {"per_sample_gradients", per_sample_gradients},
                        {"model_ensembling", model_ensembling},
                        {"meta_learning", meta_learning},
                        {"neural_tangent_kernel", neural_tangent_kernel}});
}

// Training of a classifier of digits, shared by train_mlp and train_lenet.
#pragma once

#include <cstdio>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/report.h"
#include "support/training.h"

namespace examples {

// MNIST from --data, or generated digits.
inline std::pair<flow::data::Mnist, flow::data::Mnist> load_digits(const Arguments& arguments) {
  if (!arguments.data.empty()) {
    const std::string& root = arguments.data.front();
    return {flow::data::Mnist(root, {.train = true}), flow::data::Mnist(root, {.train = false})};
  }
  std::printf("--data DIR is not given: using generated digits\n");
  return {flow::data::Mnist(flow::data::generate_digits(8000, 1)),
          flow::data::Mnist(flow::data::generate_digits(2000, 2))};
}

// The share of samples whose largest logit is that of the label.
template <class Model>
double accuracy(Model& model, const flow::data::Mnist& set, const std::string& device) {
  const flow::NoGradGuard no_grad;
  model.eval();
  int64_t right = 0;
  flow::data::DataLoader<flow::data::Mnist> loader(set, {.batch_size = 500});
  for (auto [x, y] : loader) {
    const flow::Tensor classes = flow::argmax(model(x.to(device)), 1);
    const flow::Tensor hits = flow::eq(classes, y.to(device)).sum();
    right += hits.item<int64_t>();
  }
  model.train();
  return static_cast<double>(right) / static_cast<double>(set.size());
}

// Cross entropy, SGD with momentum 0.9, batches of 64; prints the accuracy on the test set.
template <class Model>
void train_on_digits(Model model, const Arguments& arguments, int64_t default_steps, double lr) {
  const auto [train, test] = load_digits(arguments);
  if (!arguments.init.empty()) model.load_state_dict(flow::nn::load_safetensors(arguments.init));
  model.to(arguments.device);
  constexpr int64_t kBatch = 64;
  const int64_t steps = arguments.steps > 0 ? arguments.steps : default_steps;
  flow::nn::CrossEntropyLoss loss_fn;
  flow::optim::SGD optimizer(model.parameters(), {.lr = lr, .momentum = 0.9});
  flow::data::DataLoader<flow::data::Mnist> loader(
      train, {.batch_size = kBatch, .shuffle = true, .drop_last = true});
  Progress progress(steps, "samples");
  StepLog log(arguments.log);
  int64_t step = 0;
  while (step < steps) {
    for (auto [x, y] : loader) {
      const auto start = std::chrono::steady_clock::now();
      const flow::Tensor loss = loss_fn(model(x.to(arguments.device)), y.to(arguments.device));
      optimizer.zero_grad();
      loss.backward();
      if (!arguments.log.empty()) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        log.write(step, loss.template item<double>(), gradient_norm(model.parameters()),
                  optimizer.lr(), kBatch / took.count());
      }
      // The last tenth of the steps has a tenth of the learning rate.
      if (step == steps * 9 / 10) optimizer.set_lr(lr / 10);
      optimizer.step();
      progress.update(step, loss.template item<double>(), kBatch);
      if (++step == steps) break;
    }
  }
  progress.finish();
  std::printf("test accuracy %.2f %%\n", 100 * accuracy(model, test, arguments.device));
  if (!arguments.save.empty()) {
    flow::nn::save_safetensors(arguments.save, model.state_dict());
    std::printf("weights written to %s\n", arguments.save.c_str());
  }
}

}  // namespace examples

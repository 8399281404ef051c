// Trains MobileNetV2 on CIFAR-10 (the binary version, in the folder --data), or on coloured digits
// of the same shape without --data. Under a launcher it is data parallel on all ranks. Batches,
// dropout and the statistics of batch norm are those of one rank.
//
//   flowrun -n 2 build/release/bin/data_parallel_mobilenet --data DIR
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/report.h"
#include "support/training.h"

namespace {

namespace data = flow::data;
using flow::Tensor;

constexpr int64_t kBatch = 32;

bool leads() {
  return flow::env::rank() == 0;
}

// All ranks. Undefined, so that tensors are local, if there is only one rank and it uses the CPU.
flow::Placement all_ranks(const std::string& device) {
  if (flow::env::world_size() == 1 && device == "cpu") return {};
  std::vector<int64_t> ranks(static_cast<size_t>(flow::env::world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {flow::parse_device_type(device), {flow::env::world_size()}, ranks};
}

// Global batches are split by rows, and each rank reads its own rows.
data::DataLoaderOptions placed(const flow::Placement& placement, data::DataLoaderOptions options) {
  options.placement = placement;
  if (options.placement.defined()) options.sbp = flow::sbp::split(0);
  return options;
}

// Generated digits in the shape of CIFAR-10: (count, 3, 32, 32), with different strengths of the
// channels.
data::TensorDataset<2> coloured_digits(int64_t count, uint64_t seed) {
  const data::Mnist digits(data::generate_digits(count, seed));
  const Tensor grey = flow::pad(digits.images(), {2, 2, 2, 2});
  return data::TensorDataset(flow::cat({grey, grey * 0.7, grey * 0.4}, 1), digits.labels());
}

template <class Dataset>
double accuracy(flow::models::MobileNetV2& model, const Dataset& set,
                const flow::Placement& placement, int64_t at_most) {
  const flow::NoGradGuard no_grad;
  model.eval();
  int64_t right = 0, seen = 0;
  for (data::DataLoader loader(set, placed(placement, {.batch_size = 100})); auto [x, y] : loader) {
    right += flow::eq(flow::argmax(model((x - 0.5) * 2.0), 1), y).sum().template item<int64_t>();
    seen += y.size(0);
    if (seen >= at_most) break;
  }
  model.train();
  return static_cast<double>(right) / static_cast<double>(seen);
}

template <class Dataset>
void train(const Dataset& train_set, const Dataset& test_set,
           const examples::Arguments& arguments) {
  const int64_t steps = arguments.steps > 0 ? arguments.steps : 400;
  flow::models::MobileNetV2 model = flow::models::mobilenet_v2({.num_classes = 10});
  model.replace_module(
      "classifier",
      flow::nn::Sequential(flow::nn::Dropout(0.2), flow::nn::Linear(model.last_channel(), 10)));
  if (!arguments.init.empty()) model.load_state_dict(flow::nn::load_safetensors(arguments.init));
  const flow::Placement placement = all_ranks(arguments.device);
  if (placement.defined()) {
    model.to_global({.placement = placement, .sbp = flow::sbp::broadcast});
  }
  flow::nn::CrossEntropyLoss loss_fn;
  flow::optim::SGD optimizer(model.parameters(),
                             {.lr = 0.05, .momentum = 0.9, .weight_decay = 4e-5});
  flow::optim::lr_scheduler::CosineAnnealingLR rate(optimizer, {.T_max = steps});
  data::DataLoader loader(
      train_set,
      placed(placement,
             {.batch_size = kBatch, .shuffle = true, .num_workers = 1, .drop_last = true}));
  if (leads()) {
    std::printf("model: %lld parameters\n", static_cast<long long>(model.num_parameters()));
  }
  examples::Progress progress(steps, "images");
  examples::StepLog log(arguments.log);
  int64_t step = 0;
  while (step < steps) {
    for (auto [x, y] : loader) {
      const auto start = std::chrono::steady_clock::now();
      const Tensor loss = loss_fn(model((x - 0.5) * 2.0), y);
      optimizer.zero_grad();
      loss.backward();
      const double norm = arguments.log.empty() ? 0 : examples::gradient_norm(model.parameters());
      const double lr = optimizer.lr();
      optimizer.step();
      rate.step();
      const double value = loss.template item<double>();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      log.write(step, value, norm, lr, kBatch / took.count());
      progress.update(step, value, kBatch);
      if (++step == steps) break;
    }
  }
  progress.finish();
  const double share = accuracy(model, test_set, placement, 1000);
  if (leads()) std::printf("accuracy on test images: %.1f %%\n", 100 * share);
  if (!arguments.save.empty()) flow::nn::save_safetensors(arguments.save, model.state_dict());
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Trains MobileNetV2 on CIFAR-10.");
    flow::manual_seed(arguments.seed);
    if (arguments.data.empty()) {
      if (leads()) std::printf("--data DIR is not given: using generated digits\n");
      train(coloured_digits(4000, 1), coloured_digits(1000, 2), arguments);
    } else {
      const std::string& root = arguments.data.front();
      train(data::Cifar10(root, {.train = true}), data::Cifar10(root, {.train = false}), arguments);
    }
  });
}

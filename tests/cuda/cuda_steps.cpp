// cuda_steps [--steps N] [--batch B] [--layers L] [--width D] [--length T] [--compiled] [--ddp]
// [--cuda-graphs] [--no-overlap] [--device D] Trains a small GPT on random tokens on device cuda
// and prints its losses and a hash of its weights:
//
//   {"losses": [5.5452, 5.5391], "weights": "4f1d0c6e9f2b7a10", "device": "NVIDIA H100"}
//
// Two runs must print the same line. On several ranks, which share the device or have one each, the
// samples are divided, and the losses are those of one rank up to rounding: the weights are global
// tensors, or with --ddp each rank has a copy and DistributedDataParallel averages the gradients.
// With --no-overlap, no transfer of a compiled step runs in the background; the bits are the same.
// tools/gpu_check compares them.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/cuda.h"
#include "nn/flow.h"

namespace {

using flow::Tensor;
namespace nn = flow::nn;

struct Options {
  int64_t steps = 5;
  int64_t batch = 8;
  int64_t layers = 2;
  int64_t width = 128;
  int64_t length = 64;
  bool compiled = false;
  bool cuda_graphs = false;  // of compiled steps
  bool overlaps = true;      // transfers of compiled steps with their work
  bool ddp = false;
  std::string device = "cuda";
};

constexpr int64_t kVocabulary = 256;

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--no-overlap") {
      options.overlaps = false;
      continue;
    }
    if (name == "--compiled" || name == "--ddp" || name == "--cuda-graphs") {
      (name == "--ddp" ? options.ddp : options.compiled) = true;
      options.cuda_graphs |= name == "--cuda-graphs";
      continue;
    }
    if (i + 1 == argc) {
      throw flow::InvalidArgument(flow::str("[cuda_steps] ", name, " needs a value"));
    }
    const char* value = argv[++i];
    if (name == "--device") {
      options.device = value;
    } else {
      int64_t* number = name == "--steps"    ? &options.steps
                        : name == "--batch"  ? &options.batch
                        : name == "--layers" ? &options.layers
                        : name == "--width"  ? &options.width
                        : name == "--length" ? &options.length
                                             : nullptr;
      if (number == nullptr) {
        throw flow::InvalidArgument(flow::str("[cuda_steps] unknown option ", name,
                                              "; the options are at the top of the source"));
      }
      *number = std::strtoll(value, nullptr, 10);
    }
  }
  if (options.ddp && (options.compiled || options.batch % flow::env::world_size() != 0)) {
    throw flow::InvalidArgument(
        "[cuda_steps] --ddp is for eager steps and equal parts of the batch");
  }
  return options;
}

struct Step : nn::Graph<Step> {
  flow::models::Gpt model;

  Step(flow::models::Gpt m, flow::optim::Optimizer& optimizer, const Options& options)
      : model(register_module("model", m)) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact).set_cuda_graphs(options.cuda_graphs);
    config().set_overlap({.enabled = options.overlaps});
  }

  Tensor build(const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = flow::cross_entropy(model(tokens).flatten(0, 1), targets.flatten());
    loss.backward();
    return loss;
  }
};

// FNV-1a (Fowler, Noll and Vo 1991) over the bits of all weights.
uint64_t hash_of_weights(const flow::models::Gpt& model) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Tensor& weight : model.parameters()) {
    const Tensor whole = weight.is_global() ? weight.full() : weight;
    for (const float x : whole.to_vector<float>()) {
      hash ^= std::bit_cast<uint32_t>(x);
      hash *= 0x100000001b3;
    }
  }
  return hash;
}

void run(const Options& options) {
  flow::manual_seed(1);
  flow::models::Gpt model({.vocab_size = kVocabulary,
                           .block_size = options.length,
                           .n_layer = options.layers,
                           .n_head = 4,
                           .n_embd = options.width});
  const int64_t ranks = flow::env::world_size();
  flow::TensorOptions rows{.device = options.device};
  if (ranks > 1) {
    std::vector<int64_t> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    const flow::Placement placement(options.device, all);
    if (!options.ddp) model.to_global(placement, flow::sbp::broadcast);
    rows = {.placement = placement, .sbp = flow::sbp::split(0)};
  }
  if (ranks == 1 || options.ddp) model.to(options.device);
  using Ddp = nn::parallel::DistributedDataParallel<flow::models::Gpt>;
  std::optional<Ddp> ddp;
  if (options.ddp) ddp.emplace(model);
  const auto own = [&](const Tensor& x) { return options.ddp && x.is_global() ? x.to_local() : x; };
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  Step graph(model, optimizer, options);
  std::vector<double> losses;
  for (int64_t i = 0; i < options.steps; ++i) {
    const flow::Shape shape{options.batch, options.length};
    const Tensor tokens = own(flow::randint(0, kVocabulary, shape, rows));
    const Tensor targets = own(flow::randint(0, kVocabulary, shape, rows));
    if (options.compiled) {
      losses.push_back(graph(tokens, targets).item());
      continue;
    }
    const Tensor scores = ddp ? (*ddp)(tokens) : model(tokens);
    const Tensor loss = flow::cross_entropy(scores.flatten(0, 1), targets.flatten());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    losses.push_back(ddp ? flow::comm::all_reduce(loss.detach()).item() / static_cast<double>(ranks)
                         : loss.item());
  }
  const uint64_t hash = hash_of_weights(model);
  if (flow::env::rank() != 0) return;
  std::string text = "{\"losses\": [";
  for (size_t i = 0; i < losses.size(); ++i)
    text += flow::str(i == 0 ? "" : ", ", losses[i]);
  const std::string device =
      options.device == "cuda" ? flow::cuda::device_name(flow::cuda::current_device()) : "cpu";
  std::printf("%s], \"weights\": \"%016" PRIx64 "\", \"device\": \"%s\"}\n", text.c_str(), hash,
              device.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  run(parse(argc, argv));
  return 0;
}

#include "benchmarks/train_models.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "flow/flow.h"

namespace flow::bench {

namespace {

constexpr double kFlopsPerMultiplyAdd = 2;
constexpr double kFloatBytes = 4;

// The multiply-adds of a step. `first` is the layer that reads the model's input, whose gradient is
// not needed.
double step_flops(double first, double others) {
  return kFlopsPerMultiplyAdd * (2 * first + 3 * others);
}

// The products of a linear layer that the model has `count` times.
void add_linear(std::vector<StepProduct>& products, int64_t rows, int64_t in, int64_t out,
                bool is_first, int64_t count = 1) {
  products.push_back({false, true, rows, out, in, count});
  products.push_back({true, false, out, in, rows, count});
  if (!is_first) products.push_back({false, false, rows, in, out, count});
}

template <class Model, class Optimizer>
struct CompiledArtifact : nn::Graph<CompiledArtifact<Model, Optimizer>> {
  Model model;
  Optimizer optimizer;

  CompiledArtifact(Model m, Optimizer o) : model(std::move(m)), optimizer(std::move(o)) {
    this->add_optimizer(*optimizer);
  }

  Tensor build(const Tensor& input, const Tensor& target) {
    const Tensor output = model(input);
    Tensor loss =
        cross_entropy(output.reshape({target.numel(), output.size(-1)}), target.flatten());
    loss.backward();
    return loss;
  }
};

// A step of compiled training.
template <class Model, class Optimizer>
std::function<void()> make_compiled_step(const Model& model, Optimizer make_optimizer,
                                         const Tensor& input, const Tensor& target) {
  auto optimizer = make_optimizer(model.parameters());
  auto graph = std::make_shared<CompiledArtifact<Model, decltype(optimizer)>>(model, optimizer);
  return [graph, input, target] { (*graph)(input, target); };
}

template <class Model, class Optimizer>
std::function<void()> make_step(Copies copies, Model model, Optimizer make_optimizer,
                                const Tensor& input, const Tensor& target) {
  struct State {
    Model model;
    decltype(make_optimizer(model.parameters())) optimizer;
    std::optional<nn::parallel::DistributedDataParallel<Model>> ddp = {};
  };

  if (copies == Copies::kCompiled) return make_compiled_step(model, make_optimizer, input, target);
  if (copies == Copies::kCompiledAveraged) {
    return make_compiled_step(nn::parallel::DistributedDataParallel<Model>(model), make_optimizer,
                              input, target);
  }
  auto state = std::make_shared<State>(State{model, make_optimizer(model.parameters())});
  if (copies == Copies::kAveraged) state->ddp.emplace(model);
  return [state, input, target] {
    const Tensor output = state->ddp ? (*state->ddp)(input) : state->model(input);
    cross_entropy(output.reshape({target.numel(), output.size(-1)}), target.flatten()).backward();
    state->optimizer->step();
    state->optimizer->zero_grad();
  };
}

auto momentum_sgd(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
}

auto adamw(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-3});
}

Tensor labels(int64_t classes, const Shape& shape) {
  return randint(0, classes, shape);
}

TrainModel mlp(int64_t batch) {
  constexpr int64_t kIn = 784, kHidden = 512, kOut = 10;
  const double flops =
      static_cast<double>(batch) * step_flops(kIn * kHidden, kHidden * kHidden + kHidden * kOut);
  TrainModel model{.name = str("mlp", batch), .flops = flops, .make_step = [batch](Copies copies) {
                     return make_step(copies, models::Mlp({kIn, kHidden, kHidden, kOut}),
                                      momentum_sgd, randn({batch, kIn}), labels(kOut, {batch}));
                   }};
  add_linear(model.products, batch, kIn, kHidden, true);
  add_linear(model.products, batch, kHidden, kHidden, false);
  add_linear(model.products, batch, kHidden, kOut, false);
  return model;
}

// The pairs of output and input positions along one dim that a kernel connects, without padding.
int64_t count_taps(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  int64_t taps = 0;
  for (int64_t start = -padding; start + kernel <= size + padding; start += stride)
    taps += std::min(start + kernel, size) - std::max<int64_t>(start, 0);
  return taps;
}

// The multiply-adds of one image. `channel_pairs`: the pairs of input and output channels.
double conv_work(int64_t size, int64_t kernel, int64_t stride, int64_t channel_pairs) {
  const int64_t taps = count_taps(size, kernel, stride, (kernel - 1) / 2);
  return static_cast<double>(taps * taps * channel_pairs);
}

TrainModel lenet() {
  constexpr int64_t kBatch = 64, kSize = 28, kKernel = 5, kOut = 10;
  const double first = conv_work(kSize, kKernel, 1, 32);
  const double others =
      conv_work(kSize / 2, kKernel, 1, int64_t{32} * 64) + 3136 * 512 + 512 * kOut;
  return {
      .name = "lenet", .flops = kBatch * step_flops(first, others), .make_step = [](Copies copies) {
        return make_step(copies, models::Lenet(), momentum_sgd, randn({kBatch, 1, kSize, kSize}),
                         labels(kOut, {kBatch}));
      }};
}

TrainModel mobilenet() {
  constexpr int64_t kBatch = 32, kSize = 32, kOut = 10;
  const models::MobileNetV2Options options{.num_classes = kOut};
  int64_t channels = options.input_channel;
  int64_t size = kSize / 2;
  const double first = conv_work(kSize, 3, 2, 3 * channels);
  double others = 0;
  for (const auto& [expansion, width, blocks, stage_stride] : options.inverted_residual_setting) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t stride = block == 0 ? stage_stride : 1;
      const int64_t hidden = channels * expansion;
      if (expansion != 1) others += conv_work(size, 1, 1, channels * hidden);
      others += conv_work(size, 3, stride, hidden);
      size = (size + stride - 1) / stride;
      others += conv_work(size, 1, 1, hidden * width);
      channels = width;
    }
  }
  others += conv_work(size, 1, 1, channels * options.last_channel);
  others += static_cast<double>(options.last_channel * kOut);
  return {.name = "mbv2",
          .flops = kBatch * step_flops(first, others),
          .make_step = [options](Copies copies) {
            return make_step(copies, models::MobileNetV2(options), momentum_sgd,
                             randn({kBatch, 3, kSize, kSize}), labels(kOut, {kBatch}));
          }};
}

// Keeps only the inputs of blocks, and computes the rest of each block again.
struct RecomputedGpt : nn::Module<RecomputedGpt> {
  models::Gpt gpt;

  explicit RecomputedGpt(models::Gpt model) : gpt(register_module("gpt", std::move(model))) {}

  Tensor forward(const Tensor& tokens) {
    Tensor x = gpt.wte(tokens) + narrow(gpt.wpe.weight, 0, 0, tokens.size(1));
    for (models::GptBlock& block : gpt.blocks)
      x = recompute([block](const std::vector<Tensor>& in) mutable { return block(in[0]); }, {x});
    return linear(gpt.ln_f(x), gpt.lm_head);
  }
};

std::function<void()> make_gpt_step(Copies copies, int64_t batch,
                                    const models::GptOptions& options) {
  const Shape shape{batch, options.block_size};
  models::Gpt model(options);
  const Tensor input = labels(options.vocab_size, shape);
  const Tensor target = labels(options.vocab_size, shape);
  if (copies == Copies::kRecomputed) {
    return make_step(Copies::kAlone, RecomputedGpt(model), adamw, input, target);
  }
  if (copies == Copies::kCompiledRecomputed) {
    for (models::GptBlock& block : model.blocks)
      nn::graph_module(block).set_activation_checkpointing();
    copies = Copies::kCompiled;
  }
  return make_step(copies, model, adamw, input, target);
}

TrainModel gpt(const std::string& name, int64_t batch, const models::GptOptions& options) {
  const auto layers = static_cast<double>(options.n_layer);
  const auto width = static_cast<double>(options.n_embd);
  const auto vocab = static_cast<double>(options.vocab_size);
  const auto length = static_cast<double>(options.block_size);
  const double tokens = static_cast<double>(batch) * length;
  const double linear_weights = layers * 12 * width * width + width * vocab;
  const double attention = layers * length * width;  // scores and values, the causal half of each
  const double weights = linear_weights + width * (vocab + length);
  // Of a block: x of both norms; the inputs of q, k, v and of the projection; q, k and v; the
  // inputs of the feed-forward layers, 1 and 4 wide; that of gelu.
  const auto held_floats = [&](double blocks, double inputs) {
    return weights + tokens * (blocks * 16 * width + inputs * width + vocab);
  };
  TrainModel model{.name = name,
                   .flops = tokens * step_flops(0, linear_weights + attention),
                   .held_bytes = kFloatBytes * held_floats(layers, 0),
                   .recompute_held_bytes = kFloatBytes * held_floats(1, layers - 1),
                   .make_step = [batch, options](Copies copies) {
                     return make_gpt_step(copies, batch, options);
                   }};
  const int64_t rows = batch * options.block_size;
  const int64_t width_in = options.n_embd;
  add_linear(model.products, rows, width_in, width_in, false, 4 * options.n_layer);
  add_linear(model.products, rows, width_in, 4 * width_in, false, options.n_layer);
  add_linear(model.products, rows, 4 * width_in, width_in, false, options.n_layer);
  add_linear(model.products, rows, width_in, options.vocab_size, false);
  return model;
}

}  // namespace

models::GptOptions gpt_char_options() {
  return {.vocab_size = 256,
          .block_size = 128,
          .n_layer = 4,
          .n_head = 4,
          .n_embd = 128,
          .tied = false,
          .gelu = "none"};
}

std::vector<TrainModel> train_models() {
  return {mlp(64),
          mlp(512),
          lenet(),
          mobilenet(),
          gpt("gpt-char", kGptCharBatch, gpt_char_options()),
          gpt("gpt-small", 8,
              {.vocab_size = 256,
               .block_size = 256,
               .n_layer = 6,
               .n_head = 6,
               .n_embd = 384,
               .tied = false,
               .gelu = "none"})};
}

}  // namespace flow::bench

#include "benchmarks/cuda_rows.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "nn/flow.h"

namespace flow::bench {

namespace {

using Call = std::function<void()>;

constexpr int64_t kTokens = 8192;       // 8 sequences of 1,024
constexpr int64_t kWidth = 768;         // of GPT-2 124M
constexpr int64_t kVocabulary = 50304;  // 50,257, rounded up to a multiple of 128

const TensorOptions kOnDevice{.device = "cuda"};

Tensor normal(const Shape& shape, DType dtype) {
  return cast(randn(shape, kOnDevice), dtype);
}

double size_of(DType dtype) {
  return static_cast<double>(dtype_size(dtype));
}

double count(const Shape& shape) {
  return static_cast<double>(shape.numel());
}

// A row that calls f(x) for one input; it moves `moves` times the bytes of the input.
CudaRow unary_row(const std::string& name, DType dtype, const Shape& shape, double moves,
                  Tensor (*f)(const Tensor& x)) {
  return {str(name, "/", dtype_name(dtype)), CudaWork::kBytes,
          moves * count(shape) * size_of(dtype), [=]() -> Call {
            const Tensor x = normal(shape, dtype);
            return [=] { f(x); };
          }};
}

// The same with the gradients of x, for a given gradient of the result.
CudaRow backward_row(const std::string& name, DType dtype, const Shape& shape, double moves,
                     Tensor (*f)(const Tensor& x)) {
  return {str(name, "/", dtype_name(dtype), "/bwd"), CudaWork::kBytes,
          moves * count(shape) * size_of(dtype), [=]() -> Call {
            const Tensor x = normal(shape, dtype).requires_grad_();
            const Tensor dy = normal(f(x).shape(), dtype);
            return [=] { grad({f(x)}, {x}, {.grad_outputs = {dy}}); };
          }};
}

CudaRow gemm_row(DType dtype, int64_t m, int64_t k, int64_t n) {
  return {str("gemm/", dtype_name(dtype), "/", m, "x", k, "x", n), CudaWork::kFlops,
          2 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
          [=]() -> Call {
            const Tensor a = normal({m, k}, dtype), b = normal({k, n}, dtype);
            return [=] { matmul(a, b); };
          }};
}

// The causal half of scores and values, and 2.5 times as much in backward.
CudaRow attention_row(bool backward) {
  constexpr int64_t kBatch = 8, kHeads = 12, kLength = 1024, kDepth = kWidth / kHeads;
  const double forward = 2.0 * kBatch * kHeads * kLength * kLength * kDepth;
  return {backward ? "attention/bfloat16/bwd" : "attention/bfloat16", CudaWork::kFlops,
          backward ? 3.5 * forward : forward, [=]() -> Call {
            const Shape shape{kBatch, kHeads, kLength, kDepth};
            std::vector<Tensor> in;
            for (int i = 0; i < 3; ++i)
              in.push_back(normal(shape, bfloat16).requires_grad_(backward));
            const Tensor dy = normal(shape, bfloat16);
            return [=] {
              const Tensor y =
                  scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
              if (backward) grad({y}, in, {.grad_outputs = {dy}});
            };
          }};
}

// Logits are read, and their gradient is written.
CudaRow cross_entropy_row() {
  return {"cross_entropy/bfloat16/bwd", CudaWork::kBytes, 2.0 * kTokens * kVocabulary * 2,
          []() -> Call {
            const Tensor x = normal({kTokens, kVocabulary}, bfloat16).requires_grad_();
            const Tensor target = randint(0, kVocabulary, {kTokens}, kOnDevice);
            return [=] { grad({cross_entropy(x, target)}, {x}); };
          }};
}

CudaRow embedding_row() {
  // Rows are read and written; backward reads the gradients and writes the whole table.
  const double moved = 4.0 * kWidth * (3.0 * kTokens + kVocabulary);
  return {"embedding/float32/bwd", CudaWork::kBytes, moved, []() -> Call {
            const Tensor weight = normal({kVocabulary, kWidth}, float32).requires_grad_();
            const Tensor tokens = randint(0, kVocabulary, {kTokens}, kOnDevice);
            const Tensor dy = normal({kTokens, kWidth}, float32);
            return [=] { grad({embedding(tokens, weight)}, {weight}, {.grad_outputs = {dy}}); };
          }};
}

// The parameters of GPT-2 124M, with gradients.
std::vector<Tensor> gpt2_parameters() {
  models::Gpt model;
  model.to("cuda");
  for (const Tensor& p : model.parameters())
    p.set_grad(normal(p.shape(), float32));
  return model.parameters();
}

// Reads 4 and writes 3 floats for each parameter.
CudaRow adamw_row() {
  return {"adamw/float32", CudaWork::kBytes, 7 * 4 * 124.4e6, []() -> Call {
            const auto optimizer =
                std::make_shared<optim::AdamW>(gpt2_parameters(), optim::AdamWOptions{.lr = 1e-4});
            return [=] { optimizer->step(); };
          }};
}

// Reads each gradient for the norm, then reads and writes it.
CudaRow clip_row() {
  return {"clip/float32", CudaWork::kBytes, 3 * 4 * 124.4e6, []() -> Call {
            return
                [parameters = gpt2_parameters()] { nn::utils::clip_grad_norm_(parameters, 1e-3); };
          }};
}

models::GptOptions gpt2_options() {
  return {.vocab_size = kVocabulary};
}

// kEpilogues: compiled; products sum gradients of biases and compute gelu.
enum class StepForm { kEager, kCompiled, kEpilogues, kCudaGraphs };

struct GptGraph : nn::Graph<GptGraph> {
  models::Gpt model;

  GptGraph(models::Gpt m, optim::Optimizer& optimizer, StepForm form)
      : model(register_module("model", m)) {
    add_optimizer(optimizer);
    config().enable_amp(bfloat16).set_cuda_graphs(form == StepForm::kCudaGraphs);
    for (const char* pass : {"join_bias_gradients", "fuse_gelu_products"})
      config().enable_pass(pass, form == StepForm::kEpilogues);
  }

  Tensor build(const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = cross_entropy(model(tokens).flatten(0, 1), targets.flatten());
    loss.backward();
    return loss;
  }
};

const char* gpt2_name(StepForm form) {
  switch (form) {
    case StepForm::kEager:
      return "train/gpt2";
    case StepForm::kCompiled:
      return "train/gpt2/graph";
    case StepForm::kEpilogues:
      return "train/gpt2/epilogues";
    case StepForm::kCudaGraphs:
      return "train/gpt2/cuda_graphs";
  }
  return "";
}

// A training step of GPT-2 124M in mixed precision on 8 sequences of 1,024 tokens.
CudaRow gpt2_row(StepForm form) {
  return {gpt2_name(form), CudaWork::kTokens, kTokens, [=]() -> Call {
            models::Gpt model(gpt2_options());
            model.to("cuda");
            const auto optimizer =
                std::make_shared<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = 1e-4});
            const Tensor tokens = randint(0, kVocabulary, {8, kTokens / 8}, kOnDevice);
            const Tensor targets = randint(0, kVocabulary, {8, kTokens / 8}, kOnDevice);
            if (form != StepForm::kEager) {
              const auto graph = std::make_shared<GptGraph>(model, *optimizer, form);
              return [=] {
                static_cast<void>(optimizer);  // outlives the graph
                (*graph)(tokens, targets);
              };
            }
            return [=]() mutable {
              Tensor loss;
              {
                const AutocastGuard autocast(bfloat16);
                loss = cross_entropy(model(tokens).flatten(0, 1), targets.flatten());
              }
              optimizer->zero_grad();
              loss.backward();
              optimizer->step();
            };
          }};
}

CudaRow mlp_row() {
  return {"train/mlp", CudaWork::kCalls, 1, []() -> Call {
            models::Mlp model({784, 512, 10});
            model.to("cuda");
            const auto optimizer = std::make_shared<optim::SGD>(
                model.parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
            const Tensor x = normal({512, 784}, float32);
            const Tensor target = randint(0, 10, {512}, kOnDevice);
            return [=]() mutable {
              const Tensor loss = cross_entropy(model(x), target);
              optimizer->zero_grad();
              loss.backward();
              optimizer->step();
            };
          }};
}

CudaRow copy_row(const std::string& name, const char* from, const char* to) {
  constexpr int64_t kFloats = 1 << 24;
  return {name, CudaWork::kBytes, 4.0 * kFloats, [=]() -> Call {
            const Tensor x = ones({kFloats}, {.device = from});
            return [=] { x.to(to); };
          }};
}

}  // namespace

std::vector<CudaRow> cuda_rows() {
  const Shape large{8192, 8192};
  const Shape hidden{kTokens, kWidth};
  const Shape wide{kTokens, 4 * kWidth};
  std::vector<CudaRow> rows = {
      unary_row("copy", float32, large, 2, [](const Tensor& x) { return x.clone(); }),
      gemm_row(bfloat16, 8192, 8192, 8192),
      gemm_row(bfloat16, kTokens, kWidth, 4 * kWidth),
      gemm_row(bfloat16, kTokens, kWidth, kVocabulary),
      gemm_row(float32, 4096, 4096, 4096),
  };
  for (const DType dtype : {float32, bfloat16}) {
    rows.push_back(unary_row("add", dtype, large, 3, [](const Tensor& x) { return x + x; }));
    rows.back().amount *= 2.0 / 3;  // one tensor is both operands
    rows.push_back(unary_row("gelu", dtype, large, 2,
                             [](const Tensor& x) { return gelu(x, {.approximate = "tanh"}); }));
    rows.push_back(unary_row("sum", dtype, large, 1, [](const Tensor& x) { return x.sum(); }));
    rows.push_back(
        unary_row("softmax", dtype, large, 2, [](const Tensor& x) { return softmax(x, -1); }));
    rows.push_back(unary_row("layer_norm", dtype, wide, 2,
                             [](const Tensor& x) { return layer_norm(x, {4 * kWidth}); }));
    rows.push_back(backward_row("layer_norm", dtype, hidden, 5,
                                [](const Tensor& x) { return layer_norm(x, {kWidth}); }));
    rows.push_back(
        unary_row("transpose", dtype, large, 2, [](const Tensor& x) { return x.t().clone(); }));
  }
  rows.push_back(cross_entropy_row());
  rows.push_back(embedding_row());
  rows.push_back(attention_row(false));
  rows.push_back(attention_row(true));
  rows.push_back(adamw_row());
  rows.push_back(clip_row());
  rows.push_back(copy_row("to_device", "cpu", "cuda"));
  rows.push_back(copy_row("to_host", "cuda", "cpu"));
  rows.push_back({"call/add4x4", CudaWork::kCalls, 1, []() -> Call {
                    const Tensor x = normal({4, 4}, float32);
                    return [=] { add(x, x); };
                  }});
  rows.push_back(mlp_row());
  for (const StepForm form :
       {StepForm::kEager, StepForm::kCompiled, StepForm::kEpilogues, StepForm::kCudaGraphs}) {
    rows.push_back(gpt2_row(form));
  }
  return rows;
}

}  // namespace flow::bench

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow::models {
namespace {

std::vector<std::string> names_of(const nn::StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state)
    names.push_back(name);
  return names;
}

TEST(Gpt, FilesShowTheNamesOfGpt2) {
  const GptOptions options{
      .vocab_size = 5, .block_size = 4, .n_layer = 1, .n_head = 2, .n_embd = 8};
  const Gpt tied(options);
  EXPECT_EQ(
      names_of(tied.state_dict()),
      (std::vector<std::string>{
          "h.0.attn.c_attn.bias", "h.0.attn.c_attn.weight", "h.0.attn.c_proj.bias",
          "h.0.attn.c_proj.weight", "h.0.ln_1.bias", "h.0.ln_1.weight", "h.0.ln_2.bias",
          "h.0.ln_2.weight", "h.0.mlp.c_fc.bias", "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.bias",
          "h.0.mlp.c_proj.weight", "ln_f.bias", "ln_f.weight", "wpe.weight", "wte.weight"}));
  EXPECT_EQ(tied.state_dict().at("h.0.attn.c_attn.weight").shape(), (Shape{24, 8}));
  EXPECT_EQ(tied.get_parameter("h.0.attn.c_q.weight").shape(), (Shape{8, 8}));
  GptOptions untied = options;
  untied.tied = false;
  EXPECT_TRUE(Gpt(untied).state_dict().contains("lm_head.weight"));
}

TEST(Gpt, APositionSeesNoLaterToken) {
  manual_seed(1);
  Gpt model({.vocab_size = 5, .block_size = 4, .n_layer = 2, .n_head = 2, .n_embd = 8});
  const Tensor a = tensor({{1, 2, 3, 4}}, {.dtype = int64});
  const Tensor b = tensor({{1, 2, 0, 1}}, {.dtype = int64});
  const auto first = [&](const Tensor& x) { return narrow(model(x), 1, 0, 2).to_vector<float>(); };
  EXPECT_EQ(first(a), first(b));
  EXPECT_THROW(model(zeros({1, 5}, {.dtype = int64})), InvalidArgument);
}

TEST(Gpt, TheCacheChangesNothing) {
  manual_seed(1);
  Gpt model({.vocab_size = 7, .block_size = 6, .n_layer = 2, .n_head = 2, .n_embd = 8});
  model.to(float64);
  const NoGradGuard no_grad;
  const Tensor tokens = tensor({{1, 6, 3, 4, 0, 2}}, {.dtype = int64});
  const auto whole = model(tokens).to_vector<double>();
  GptCache cache;
  std::vector<double> parts;
  for (const auto& [from, count] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}, {5, 1}}) {
    for (const double v : model(narrow(tokens, 1, from, count), &cache).to_vector<double>())
      parts.push_back(v);
  }
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(parts[i], whole[i], 1e-13);
  EXPECT_THROW(model(narrow(tokens, 1, 0, 1), &cache), InvalidArgument);
}

TEST(Gpt, GeneratesBeyondItsBlock) {
  manual_seed(1);
  Gpt model({.vocab_size = 7, .block_size = 6, .n_layer = 1, .n_head = 2, .n_embd = 8});
  const Tensor start = tensor({{1, 2}}, {.dtype = int64});
  const Tensor greedy = generate(model, start, {.max_new_tokens = 20, .temperature = 0});
  EXPECT_EQ(greedy.shape(), (Shape{1, 22}));
  EXPECT_EQ(greedy.to_vector<int64_t>()[2], argmax(model(start), -1).to_vector<int64_t>()[1]);
  const Tensor only = generate(model, start, {.max_new_tokens = 20, .top_k = 1});
  EXPECT_EQ(only.to_vector<int64_t>(), greedy.to_vector<int64_t>());
  EXPECT_TRUE(model.is_training());
  EXPECT_THROW(generate(model, zeros({2, 2}, {.dtype = int64})), InvalidArgument);
}

TEST(Gpt, AnErrorWhileItGeneratesLeavesItsMode) {
  models::Gpt model({.vocab_size = 5, .block_size = 8, .n_layer = 1, .n_head = 1, .n_embd = 4});
  EXPECT_THROW(models::generate(model, full({1, 2}, 7.0, {.dtype = int64})), Error);
  EXPECT_TRUE(model.is_training());
}

TEST(MobileNetV2, HasTorchvisionsSizeAndNames) {
  MobileNetV2 model = mobilenet_v2();
  EXPECT_EQ(model.num_parameters(), 3504872);
  EXPECT_EQ(model.last_channel(), 1280);
  for (const char* name :
       {"features.0.0.weight", "features.1.conv.0.0.weight", "features.1.conv.1.weight",
        "features.2.conv.2.weight", "features.17.conv.3.weight", "features.18.1.bias",
        "classifier.1.weight"}) {
    EXPECT_TRUE(model.get_parameter(name).defined()) << name;
  }
  EXPECT_EQ(model.state_dict().at("features.18.1.num_batches_tracked").dtype(), int64);
  EXPECT_EQ(mobilenet_v2({.width_mult = 0.5}).get_parameter("features.0.0.weight").size(0), 16);
  EXPECT_EQ(mobilenet_v2({.width_mult = 1.4}).last_channel(), 1792);
}

TEST(MobileNetV2, ItsClassifierCanBeReplaced) {
  MobileNetV2 model({.inverted_residual_setting = {{{1, 8, 1, 1}, {6, 8, 1, 2}}},
                     .input_channel = 8,
                     .last_channel = 16});
  model.replace_module("classifier",
                       nn::Sequential(nn::Dropout(0.2), nn::Linear(model.last_channel(), 10)));
  EXPECT_EQ(model(randn({2, 3, 8, 8})).shape(), (Shape{2, 10}));
}

}  // namespace
}  // namespace flow::models

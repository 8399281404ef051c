// What constructors and functions of the front ends refuse names the user's line, the component,
// and what was received.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/data/idx.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

namespace schedules = optim::lr_scheduler;

// A call that is refused: what() is "FILE:LINE: [component] …" and contains `received`.
struct Refusal {
  const char* component;
  const char* received;
  std::function<void()> call;
};

// The calls stand in the order of the list on lines of their own.
void expect_refused(const std::vector<Refusal>& refusals) {
  uint32_t last_line = 0;
  for (const Refusal& refusal : refusals) {
    try {
      refusal.call();
    } catch (const Error& error) {
      const std::string what = error.what();
      const uint32_t line = error.site().line();
      const std::string start = str(__FILE__, ':', line, ": [", refusal.component, "] ");
      EXPECT_EQ(what.substr(0, start.size()), start) << what;
      EXPECT_GT(line, last_line) << what << " has the line of the row before";
      EXPECT_NE(what.find(refusal.received), std::string::npos)
          << what << " does not contain " << refusal.received;
      last_line = std::max(last_line, line);
      continue;
    }
    ADD_FAILURE() << refusal.component << " (" << refusal.received << ") was not refused";
  }
}

TEST(ConstructorErrors, OfOptimizers) {
  const Tensor w = ones({2}).requires_grad_();
  optim::SGD sgd({w}, {.lr = 1});
  optim::Adagrad adagrad({w}, {.lr = 1});
  optim::LBFGS lbfgs({w});

  expect_refused({
      {"SGD", "received -1", [&] { optim::SGD({w}, {.lr = -1}); }},
      {"LBFGS", "received -1", [&] { optim::LBFGS({w}, {.lr = -1}); }},
      {"LBFGS", "closure", [&] { lbfgs.step(); }},
      {"optimizer", "group 9", [&] { sgd.lr(9); }},
      {"optimizer", "group 4", [&] { sgd.set_group_lr(4, 1); }},
      {"optimizer", "group 4", [&] { sgd.initial_lr(4); }},
      {"optimizer", "group 4", [&] { sgd.set_initial_lr(4, 1); }},
      {"optimizer", "group 5", [&] { sgd.momentum(5); }},
      {"optimizer", "momentum", [&] { adagrad.set_group_momentum(0, 0.5); }},
      {"optimizer", "1 of 1 names",
       [&] {
         sgd.load_state_dict({{"x", ones({1})}});
       }},
      {"MovingAverage", "received 3", [&] { optim::MovingAverage({w}, {.decay = 3}); }},
      {"MovingAverage", "no average", [&] { optim::MovingAverage({w}).copy_to_tensors(); }},
      {"MovingAverage", "0 of 1", [&] { optim::MovingAverage({w}).load_state_dict({}); }},
  });

  sgd.add_param_group({{ones({2}).requires_grad_()}, {.lr = 1}});
  optim::Optimizer& base = sgd;
  expect_refused({{"optimizer", "group 2", [&] { base.set_group_lr(2, 1); }}});
}

TEST(ConstructorErrors, OfSchedules) {
  const Tensor w = ones({2}).requires_grad_();
  optim::SGD sgd({w}, {.lr = 1});
  optim::SGD other({w}, {.lr = 1});
  schedules::StepLR step(sgd, {.step_size = 1});
  schedules::StepLR other_step(other, {.step_size = 1});
  schedules::OneCycleLR cycle(other, {.max_lr = 1, .total_steps = 1, .cycle_momentum = false});
  schedules::ReduceLROnPlateau plateau(sgd);

  expect_refused({
      {"LambdaLR", "empty", [&] { schedules::LambdaLR(sgd, {}); }},
      {"MultiplicativeLR", "empty", [&] { schedules::MultiplicativeLR(sgd, {}); }},
      {"StepLR", "received 0", [&] { schedules::StepLR(sgd, {.step_size = 0}); }},
      {"ConstantLR", "received 2", [&] { schedules::ConstantLR(sgd, {.factor = 2}); }},
      {"LinearLR", "received -1", [&] { schedules::LinearLR(sgd, {.start_factor = -1}); }},
      {"PolynomialLR", "received 0", [&] { schedules::PolynomialLR(sgd, {.total_iters = 0}); }},
      {"CosineDecayLR", "received 0", [&] { schedules::CosineDecayLR(sgd, {.decay_steps = 0}); }},
      {"CosineAnnealingLR", "received 0", [&] { schedules::CosineAnnealingLR(sgd, {.T_max = 0}); }},
      {"CosineAnnealingWarmRestarts", "received 0 and 1",
       [&] { schedules::CosineAnnealingWarmRestarts(sgd, {.T_0 = 0}); }},
      {"CyclicLR", "received 0 values", [&] { schedules::CyclicLR(sgd, {}); }},
      {"CyclicLR", "'x'",
       [&] { schedules::CyclicLR(sgd, {.base_lr = 1, .max_lr = 2, .mode = "x"}); }},
      {"OneCycleLR", "received 0", [&] { schedules::OneCycleLR(sgd, {.max_lr = 1}); }},
      {"OneCycleLR", "step 2", [&] { cycle.step(), cycle.step(); }},
      {"ReduceLROnPlateau", "received 1",
       [&] { schedules::ReduceLROnPlateau(sgd, {.factor = 1}); }},
      {"ReduceLROnPlateau", "received 0 names", [&] { plateau.load_state_dict({}); }},
      {"ChainedScheduler", "empty", [&] { schedules::ChainedScheduler({}); }},
      {"ChainedScheduler", "different optimizers",
       [&] {
         schedules::ChainedScheduler({&step, &other_step});
       }},
      {"SequentialLR", "received 1 schedules and 1",
       [&] { schedules::SequentialLR(sgd, {&step}, {.milestones = {1}}); }},
      {"lr_scheduler", "0 names", [&] { step.load_state_dict({}); }},
  });
}

TEST(ConstructorErrors, OfTheGradScaler) {
  const Tensor weight = ones({2}).requires_grad_();
  weight.sum().backward();
  optim::SGD sgd({weight}, {.lr = 1});
  optim::GradScaler scaler;

  expect_refused({
      {"GradScaler", "received -1", [&] { optim::GradScaler({.init_scale = -1}); }},
      {"GradScaler", "0.5", [&] { scaler.set_growth_factor(0.5); }},
      {"GradScaler", "1.5", [&] { scaler.set_backoff_factor(1.5); }},
      {"GradScaler", ", 0", [&] { scaler.set_growth_interval(0); }},
      {"GradScaler", "no optimizer has stepped", [&] { scaler.update(); }},
      {"GradScaler", "received -2", [&] { scaler.update(-2); }},
      {"GradScaler", "already", [&] { scaler.unscale_(sgd), scaler.unscale_(sgd); }},
      {"GradScaler", "received 0", [&] { scaler.load_state_dict({}); }},
  });
}

// Made by a user: its samples have no line of their own.
struct UnequalRows {
  using Sample = Tensor;

  int64_t size() const { return 2; }

  Tensor operator[](int64_t i) const { return ones({i + 1}); }
};

TEST(ConstructorErrors, OfData) {
  const data::TensorDataset pairs(ones({3}), ones({3}));
  const data::TensorDataset singles(ones({3}));
  const data::Subset part(pairs, {2, 7});
  const auto shown = [](auto sample) { return sample; };
  const data::Transformed transformed(pairs, shown);
  const data::ConcatDataset both(std::vector{pairs, pairs});
  const data::CharVocabulary letters("ab");
  const data::TokenDataset tokens({1, 2, 3, 4}, 2);
  auto loader = std::make_unique<data::DataLoader<data::TensorDataset<2>>>(pairs);

  expect_refused({
      {"TensorDataset", "(4,)", [&] { data::TensorDataset(ones({3}), ones({4})); }},
      {"TensorDataset", "index 7", [&] { pairs[7]; }},
      {"Subset", "index 2", [&] { part[2]; }},
      {"TensorDataset", "index 7", [&] { part[1]; }},
      {"TensorDataset", "index -1", [&] { transformed[-1]; }},
      {"ConcatDataset", "sample 6", [&] { both[6]; }},
      {"StackDataset", "received 2 and 1",
       [&] { data::StackDataset(UnequalRows(), data::Subset(UnequalRows(), {0})); }},
      {"StackDataset", "index 2", [&] { data::StackDataset(UnequalRows(), UnequalRows())[2]; }},
      {"random_split", "3",
       [&] {
         data::random_split(pairs, {2, 2});
       }},
      {"DataLoader", "received 0", [&] { data::DataLoader(pairs, {.batch_size = 0}); }},
      {"DataLoader", "'pass'", [&] { loader->load_state_dict({}); }},
      {"stack", "",
       [&] { data::DataLoader(UnequalRows(), {.batch_size = 2}).begin().operator*(); }},
      {"SequentialSampler", "received -3", [&] { data::SequentialSampler(-3); }},
      {"RandomSampler", "received 0", [&] { data::RandomSampler(0); }},
      {"WeightedRandomSampler", "0 weights", [&] { data::WeightedRandomSampler({}, 1); }},
      {"BatchSampler", "received no", [&] { data::BatchSampler(nullptr, 1); }},
      {"DistributedSampler", "of 0", [&] { data::DistributedSampler(10, {.num_replicas = 0}); }},
      {"CharVocabulary", "byte 99", [&] { letters.encode("abc"); }},
      {"CharVocabulary", "index 5", [&] { letters.decode({5}); }},
      {"TokenDataset", "received 0",
       [&] {
         data::TokenDataset({1, 2}, 0);
       }},
      {"TokenDataset", "index 9", [&] { tokens[9]; }},
      {"tokens", "received 3", [&] { data::read_tokens("nofile", 3); }},
      {"tokens", "token -1", [&] { data::write_tokens("nofile", {-1}); }},
      {"file", "nofile", [&] { data::read_text_files({"nofile"}); }},
      {"Mnist", "nofolder", [&] { data::Mnist("nofolder"); }},
      {"Cifar10", "nofolder", [&] { data::Cifar10("nofolder"); }},
      {"idx", "nofile", [&] { data::read_idx("nofile", "nofile"); }},
  });
}

TEST(ConstructorErrors, OfFiles) {
  const TempFolder parent;
  const std::string folder = parent.file("nothing_here");
  const std::string path = folder + "/x";
  const nn::CheckpointFolder checkpoints(folder);

  expect_refused({
      {"file", "x", [&] { nn::load_safetensors(path); }},
      {"file", "x",
       [&] {
         nn::save_safetensors(path, {{"a", ones({1})}});
       }},
      {"safetensors", "__metadata__",
       [&] {
         nn::save_safetensors(path, {{"__metadata__", ones({1})}});
       }},
      {"file", "x", [&] { nn::load_npy(path); }},
      {"file", "x", [&] { nn::save_npy(path, ones({1})); }},
      {"file", "x", [&] { nn::load_npz(path); }},
      {"file", "x",
       [&] {
         nn::save_npz(path, {{"a", ones({1})}});
       }},
      {"file", "x", [&] { nn::read_text(path); }},
      {"checkpoint", "received -1", [&] { nn::CheckpointFolder(folder, {.keep_last = -1}); }},
      {"checkpoint", "step 3", [&] { checkpoints.open(3); }},
      {"checkpoint", "-1", [&] { checkpoints.save(-1, {}); }},
  });
}

struct Named : nn::Module<Named> {
  void add(const char* name) { register_parameter(name, ones({1})); }  // kAddLine
};

constexpr uint32_t kAddLine = __LINE__ - 3;

TEST(ConstructorErrors, OfModuleFunctions) {
  nn::Linear linear(3, 4);
  nn::Sequential net(nn::Linear(2, 3));
  Named named;

  expect_refused({
      {"load_state_dict", "missing: weight", [&] { linear.load_state_dict({}); }},
      {"module", "'a'", [&] { linear.get_submodule("a.b"); }},
      {"module", "'a'", [&] { linear.get_parameter("a"); }},
      {"module", "'a'", [&] { linear.get_buffer("a"); }},
      {"module", "'a'", [&] { net.replace_module("a", nn::Linear(2, 3)); }},
      {"to", "int64", [&] { linear.to(int64); }},
  });
  try {
    named.add("a.b");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.site().line(), kAddLine) << error.what();
  }
}

TEST(ConstructorErrors, OfUtilities) {
  nn::Linear linear(3, 4);
  const std::vector<Tensor> parameters = linear.parameters();
  const Tensor infinite = full({2}, std::numeric_limits<double>::infinity());
  namespace utils = nn::utils;
  const auto packed = utils::rnn::pack_sequence({ones({2})});

  expect_refused({
      {"clip_grad_norm_", "received -1", [&] { utils::clip_grad_norm_(parameters, -1); }},
      {"clip_grads_with_norm_", "received -1",
       [&] { utils::clip_grads_with_norm_(parameters, -1, ones({})); }},
      {"clip_grad_value_", "received -1", [&] { utils::clip_grad_value_(parameters, -1); }},
      {"get_total_norm", "received inf",
       [&] { utils::get_total_norm({infinite}, {.error_if_nonfinite = true}); }},
      {"parameters_to_vector", "empty list", [&] { utils::parameters_to_vector({}); }},
      {"vector_to_parameters", "(1,)", [&] { utils::vector_to_parameters(ones({1}), parameters); }},
      {"functional_call", "'a'",
       [&] {
         nn::functional_call(linear, {{"a", ones({1})}}, ones({1, 3}));
       }},
      {"parametrize", "'a'",
       [&] { utils::parametrize::register_parametrization(linear, "a", nn::ReLU()); }},
      {"remove_parametrizations", "'a'",
       [&] { utils::parametrize::remove_parametrizations(linear, "a"); }},
      {"weight_norm", "received 7",
       [&] { utils::parametrizations::weight_norm(linear, {.dim = 7}); }},
      {"spectral_norm", "received 7",
       [&] { utils::parametrizations::spectral_norm(linear, {.dim = 7}); }},
      {"pad_sequence", "", [&] { utils::rnn::pad_sequence({}); }},
      {"unpad_sequence", "",
       [&] {
         utils::rnn::unpad_sequence(ones({2, 3}), tensor({1}));
       }},
      {"pack_padded_sequence", "",
       [&] {
         utils::rnn::pack_padded_sequence(ones({2, 2}), tensor({1, 2}));
       }},
      {"pack_padded_sequence", "",
       [&] {
         utils::rnn::pack_sequence({ones({1}), ones({2})});
       }},
      {"pad_packed_sequence", "",
       [&] { utils::rnn::pad_packed_sequence(packed, {.total_length = 1}); }},
  });
}

TEST(ConstructorErrors, OfInitializers) {
  const Tensor vector = ones({3});
  namespace init = nn::init;

  expect_refused({
      {"uniform_", "3", [&] { init::uniform_(vector, 3, 1); }},
      {"normal_", "-1", [&] { init::normal_(vector, 0, -1); }},
      {"eye_", "(3,)", [&] { init::eye_(vector); }},
      {"dirac_", "(3,)", [&] { init::dirac_(vector); }},
      {"sparse_", "(3,)", [&] { init::sparse_(vector, 0.5); }},
      {"trunc_normal_", "received -1", [&] { init::trunc_normal_(vector, {.std = -1}); }},
      {"calculate_gain", "'x'", [&] { init::calculate_gain("x"); }},
      {"kaiming_uniform_", "(3,)", [&] { init::kaiming_uniform_(vector); }},
      {"kaiming_normal_", "'x'",
       [&] {
         init::kaiming_normal_(ones({2, 2}), {.mode = "x"});
       }},
      {"xavier_uniform_", "(3,)", [&] { init::xavier_uniform_(vector); }},
      {"xavier_normal_", "(3,)", [&] { init::xavier_normal_(vector); }},
      {"orthogonal_", "(3,)", [&] { init::orthogonal_(vector); }},
      {"fan_in", "(3,)", [&] { init::fan_in(vector); }},
      {"fan_out", "(3,)", [&] { init::fan_out(vector); }},
  });
}

// A call of each module that can refuse what it is constructed from.
std::vector<Refusal> refused_modules() {
  return {
      // nn/layers/linear.h
      {"Linear", "in_features must not be negative; received -1", [] { nn::Linear(-1, 3); }},
      {"Linear", "out_features must not be negative; received -3", [] { nn::Linear(1, -3); }},
      {"Bilinear", "in1_features must be positive; received 0", [] { nn::Bilinear(0, 1, 2); }},
      {"Bilinear", "in2_features must not be negative", [] { nn::Bilinear(1, -1, 2); }},
      // nn/layers/conv.h
      {"Conv1d", "in_channels must not be negative; received -3", [] { nn::Conv1d(-3, 4, 3); }},
      {"Conv2d", "divisible by groups; received 3 in", [] { nn::Conv2d(3, 4, 3, {.groups = 2}); }},
      {"Conv2d", "groups must be positive; received 0", [] { nn::Conv2d(3, 4, 3, {.groups = 0}); }},
      {"Conv2d", "kernel_size is out of range; received 0", [] { nn::Conv2d(3, 4, 0); }},
      {"Conv2d", "stride is out of range; received 0", [] { nn::Conv2d(3, 4, 3, {.stride = 0}); }},
      {"Conv2d", "padding is out of", [] { nn::Conv2d(3, 4, 3, {.padding = -1}); }},
      {"Conv2d", "received 3 numbers",
       [] {
         nn::Conv2d(3, 4, {1, 2, 3});
       }},
      {"Conv3d", "received 'x'", [] { nn::Conv3d(3, 4, 3, {.padding_mode = "x"}); }},
      {"ConvTranspose1d", "dilation is out of range; received 0",
       [] { nn::ConvTranspose1d(3, 4, 3, {.dilation = 0}); }},
      {"ConvTranspose2d", "out_channels must not be negative; received -4",
       [] { nn::ConvTranspose2d(3, -4, 3); }},
      {"ConvTranspose3d", "output_padding is out of range; received -1",
       [] { nn::ConvTranspose3d(3, 4, 3, {.output_padding = -1}); }},
      // nn/layers/dropout.h
      {"Dropout", "received 1.5", [] { nn::Dropout(1.5); }},
      {"Dropout", "received -1", [] { nn::Dropout({.p = -1}); }},
      {"Dropout1d", "received 1.5", [] { nn::Dropout1d(1.5); }},
      {"Dropout2d", "received 1.5", [] { nn::Dropout2d(1.5); }},
      {"Dropout3d", "received 1.5", [] { nn::Dropout3d(1.5); }},
      {"AlphaDropout", "received 1.5", [] { nn::AlphaDropout(1.5); }},
      {"FeatureAlphaDropout", "received 1.5", [] { nn::FeatureAlphaDropout(1.5); }},
      // nn/layers/batch_norm.h, nn/layers/norm.h
      {"BatchNorm1d", "num_features must not be negative; received -2",
       [] { nn::BatchNorm1d(-2); }},
      {"BatchNorm2d", "received -2", [] { nn::BatchNorm2d(-2); }},
      {"BatchNorm3d", "received -2", [] { nn::BatchNorm3d(-2); }},
      {"InstanceNorm1d", "received -2", [] { nn::InstanceNorm1d(-2); }},
      {"InstanceNorm2d", "received -2", [] { nn::InstanceNorm2d(-2); }},
      {"InstanceNorm3d", "received -2", [] { nn::InstanceNorm3d(-2); }},
      {"LayerNorm", "normalized_shape", [] { nn::LayerNorm(Shape{-1}); }},
      {"RMSNorm", "normalized_shape",
       [] {
         nn::RMSNorm(Shape{2, -1});
       }},
      {"GroupNorm", "divisible by num_groups; received 8 and 3", [] { nn::GroupNorm(3, 8); }},
      {"GroupNorm", "num_groups must be positive; received 0", [] { nn::GroupNorm(0, 8); }},
      {"GroupNorm", "num_channels must not be negative", [] { nn::GroupNorm(2, -8); }},
      // nn/layers/embedding.h
      {"Embedding", "embedding_dim must not be negative; received -3",
       [] { nn::Embedding(0, -3); }},
      {"Embedding", "received 4", [] { nn::Embedding(4, 3, {.padding_idx = 4}); }},
      {"EmbeddingBag", "num_embeddings must not be negative", [] { nn::EmbeddingBag(-1, 3); }},
      // nn/layers/recurrent.h, nn/layers/recurrent_cell.h
      {"LSTM", "input_size must be positive; received -3", [] { nn::LSTM(-3, 4); }},
      {"LSTM", "proj_size is out of range: received 4", [] { nn::LSTM(3, 4, {.proj_size = 4}); }},
      {"LSTM", "dropout must be a probability", [] { nn::LSTM(3, 4, {.dropout = 1.5}); }},
      {"GRU", "hidden_size must be positive; received 0", [] { nn::GRU(3, 0); }},
      {"GRU", "received 2", [] { nn::GRU(3, 4, {.proj_size = 2}); }},
      {"RNN", "num_layers must be positive; received 0", [] { nn::RNN(3, 4, {.num_layers = 0}); }},
      {"RNN", "received 'x'", [] { nn::RNN(3, 4, {.nonlinearity = "x"}); }},
      {"LSTMCell", "input_size must be positive; received -3", [] { nn::LSTMCell(-3, 4); }},
      {"GRUCell", "hidden_size must be positive; received -4", [] { nn::GRUCell(3, -4); }},
      {"RNNCell", "received 'x'", [] { nn::RNNCell(3, 4, {.nonlinearity = "x"}); }},
      // nn/layers/attention.h, nn/layers/transformer.h
      {"MultiheadAttention", "received 7 and 2", [] { nn::MultiheadAttention(7, 2); }},
      {"MultiheadAttention", "num_heads must be positive", [] { nn::MultiheadAttention(8, 0); }},
      {"MultiheadAttention", "kdim", [] { nn::MultiheadAttention(8, 2, {.kdim = -1}); }},
      {"TransformerEncoderLayer", "d_model must be divisible by nhead; received 7 and 2",
       [] { nn::TransformerEncoderLayer(7, 2); }},
      {"TransformerEncoderLayer", "dropout must be",
       [] { nn::TransformerEncoderLayer(8, 2, {.dropout = 2}); }},
      {"TransformerEncoder", "num_layers must not be negative; received -1",
       [] { nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2), -1); }},
      {"TransformerDecoderLayer", "dim_feedforward must not be negative; received -1",
       [] { nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = -1}); }},
      {"TransformerDecoder", "num_layers must not be negative; received -1",
       [] { nn::TransformerDecoder(nn::TransformerDecoderLayer(8, 2), -1); }},
      {"Transformer", "received 'x'", [] { nn::Transformer({.activation = "x"}); }},
      {"Transformer", "num_decoder_layers", [] { nn::Transformer({.num_decoder_layers = -1}); }},
      // nn/layers/pool.h
      {"MaxPool1d", "kernel_size is out of range; received 0", [] { nn::MaxPool1d(0); }},
      {"MaxPool2d", "stride is out of range; received 0", [] { nn::MaxPool2d(2, {.stride = 0}); }},
      {"MaxPool3d", "dilation is out of range", [] { nn::MaxPool3d(2, {.dilation = 0}); }},
      {"AvgPool1d", "received 2 numbers",
       [] {
         nn::AvgPool1d({2, 2});
       }},
      {"AvgPool2d", "padding is out of range", [] { nn::AvgPool2d(2, {.padding = -1}); }},
      {"AvgPool3d", "kernel_size is out of range; received -2", [] { nn::AvgPool3d(-2); }},
      {"MaxUnpool1d", "kernel_size is out of range; received 0", [] { nn::MaxUnpool1d(0); }},
      {"MaxUnpool2d", "kernel_size is out of range; received 0", [] { nn::MaxUnpool2d(0); }},
      {"MaxUnpool3d", "stride is out of range", [] { nn::MaxUnpool3d(2, {.stride = 0}); }},
      {"FractionalMaxPool2d", "received neither", [] { nn::FractionalMaxPool2d(3, {}); }},
      {"FractionalMaxPool3d", "received 1.5",
       [] { nn::FractionalMaxPool3d(3, {.output_ratio = {1.5}}); }},
      {"AdaptiveAvgPool1d", "output_size must not be negative", [] { nn::AdaptiveAvgPool1d(-1); }},
      {"AdaptiveAvgPool2d", "output_size is out of range", [] { nn::AdaptiveAvgPool2d(-1); }},
      {"AdaptiveAvgPool3d", "output_size is out of range", [] { nn::AdaptiveAvgPool3d(-1); }},
      {"AdaptiveMaxPool1d", "output_size is out of range", [] { nn::AdaptiveMaxPool1d(-1); }},
      {"AdaptiveMaxPool2d", "output_size is out of range", [] { nn::AdaptiveMaxPool2d(-1); }},
      {"AdaptiveMaxPool3d", "received 2 numbers",
       [] {
         nn::AdaptiveMaxPool3d({1, 2});
       }},
      // nn/layers/neighbourhood.h
      {"LocalResponseNorm", "size must be positive; received 0", [] { nn::LocalResponseNorm(0); }},
      {"LPPool1d", "norm_type must not be 0", [] { nn::LPPool1d(0, 2); }},
      {"LPPool2d", "kernel_size is out of range; received 0", [] { nn::LPPool2d(2, 0); }},
      {"LPPool3d", "stride is out of range", [] { nn::LPPool3d(2, 2, {.stride = 0}); }},
      {"ChannelShuffle", "groups must be positive; received 0", [] { nn::ChannelShuffle(0); }},
      // nn/layers/rearrange.h
      {"Fold", "kernel_size is out of range; received 0", [] { nn::Fold(4, 0); }},
      {"Unfold", "stride is out of range; received 0", [] { nn::Unfold(2, {.stride = 0}); }},
      {"PixelShuffle", "upscale_factor must be positive", [] { nn::PixelShuffle(0); }},
      {"PixelUnshuffle", "downscale_factor must be positive", [] { nn::PixelUnshuffle(-1); }},
      {"Unflatten", "received (-2, 2)",
       [] {
         nn::Unflatten(1, {-2, 2});
       }},
      // nn/layers/padding.h
      {"ConstantPad1d", "received 3",
       [] {
         nn::ConstantPad1d({1, 2, 3}, 0.0);
       }},
      {"ConstantPad2d", "received 3",
       [] {
         nn::ConstantPad2d({1, 2, 3}, 0.0);
       }},
      {"ConstantPad3d", "received 3",
       [] {
         nn::ConstantPad3d({1, 2, 3}, 0.0);
       }},
      {"ZeroPad1d", "received 3",
       [] {
         nn::ZeroPad1d({1, 2, 3});
       }},
      {"ZeroPad2d", "received 3",
       [] {
         nn::ZeroPad2d({1, 2, 3});
       }},
      {"ZeroPad3d", "received 3",
       [] {
         nn::ZeroPad3d({1, 2, 3});
       }},
      {"ReflectionPad1d", "received 3",
       [] {
         nn::ReflectionPad1d({1, 2, 3});
       }},
      {"ReflectionPad2d", "received 3",
       [] {
         nn::ReflectionPad2d({1, 2, 3});
       }},
      {"ReflectionPad3d", "received 3",
       [] {
         nn::ReflectionPad3d({1, 2, 3});
       }},
      {"ReplicationPad1d", "received 3",
       [] {
         nn::ReplicationPad1d({1, 2, 3});
       }},
      {"ReplicationPad2d", "received 3",
       [] {
         nn::ReplicationPad2d({1, 2, 3});
       }},
      {"ReplicationPad3d", "received 3",
       [] {
         nn::ReplicationPad3d({1, 2, 3});
       }},
      {"CircularPad1d", "received 3",
       [] {
         nn::CircularPad1d({1, 2, 3});
       }},
      {"CircularPad2d", "received 3",
       [] {
         nn::CircularPad2d({1, 2, 3});
       }},
      {"CircularPad3d", "received 3",
       [] {
         nn::CircularPad3d({1, 2, 3});
       }},
      // nn/layers/rectifier.h, nn/layers/resample.h and others
      {"PReLU", "num_parameters must not be negative", [] { nn::PReLU({.num_parameters = -1}); }},
      {"RReLU", "received 1 and 0.5", [] { nn::RReLU({.lower = 1, .upper = 0.5}); }},
      {"Hardtanh", "received 2 and 1", [] { nn::Hardtanh({.min_val = 2, .max_val = 1}); }},
      {"Softshrink", "received -1", [] { nn::Softshrink({.lambd = -1}); }},
      {"Upsample", "received -1", [] { nn::Upsample({.scale_factor = {-1.0}}); }},
      {"Upsample", "received neither", [] { nn::Upsample({}); }},
      {"RotaryEmbedding", "received dim 3", [] { nn::RotaryEmbedding(3); }},
      {"PartialFC", "num_classes must not be negative", [] { nn::PartialFC(4, -1); }},
      {"AdaptiveLogSoftmaxWithLoss", "(5,) for 5 classes",
       [] { nn::AdaptiveLogSoftmaxWithLoss(4, 5, {5}); }},
      {"AdaptiveLogSoftmaxWithLoss", "in_features must not be negative",
       [] { nn::AdaptiveLogSoftmaxWithLoss(-4, 5, {2}); }},
      {"AdaptiveLogSoftmaxWithLoss", "cluster 0",
       [] { nn::AdaptiveLogSoftmaxWithLoss(4, 5, {2}, {.div_value = 8}); }},
      // nn/layers/container.h
      {"Sequential", "index 4", [] { nn::Sequential(nn::Linear(2, 3))[4]; }},
      {"ModuleList", "index 4", [] { nn::ModuleList<nn::Linear>()[4]; }},
      {"ModuleDict", "a", [] { nn::ModuleDict<nn::Linear>()["a"]; }},
      {"ParameterList", "index 4", [] { nn::ParameterList()[4]; }},
      {"ParameterDict", "'a'", [] { nn::ParameterDict()["a"]; }},
  };
}

TEST(ConstructorErrors, OfModules) {
  expect_refused(refused_modules());
}

// Modules of nn/layers that take every argument.
const std::set<std::string> kRefuseNothing = {
    // They have no options, or options that any input decides about.
    "CELU", "CosineSimilarity", "ELU", "Flatten", "GELU", "GLU", "Hardshrink", "Hardsigmoid",
    "Hardswish", "Identity", "Lambda", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish",
    "PairwiseDistance", "QuickGELU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softsign", "SquareReLU", "Tanh", "Tanhshrink", "Threshold",
    // The bases of others.
    "CellModule", "FeatureNorm"};

// A new module must have a row in one of the lists above.
TEST(ConstructorErrors, OfModulesAreComplete) {
  std::set<std::string> listed = kRefuseNothing;
  for (const Refusal& refusal : refused_modules())
    listed.insert(refusal.component);
  const std::regex module_class(R"(class (\w+) : public \w+<\1)");
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FLOW_LAYERS_FOLDER)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, module_class)) continue;
      ++count;
      EXPECT_TRUE(listed.contains(match[1]))
          << match[1] << " of " << entry.path()
          << " has no row in refused_modules() and is not in kRefuseNothing";
    }
  }
  EXPECT_GT(count, 100) << "in " << FLOW_LAYERS_FOLDER;
}

// A class of the user's that has no constructor has the line of the class, or of the member.
struct Outer : nn::Module<Outer> {
  nn::Linear fc{register_module("fc", nn::Linear(-2, 3))};
};

constexpr uint32_t kAfterOuter = __LINE__ - 1;

TEST(ConstructorErrors, OfMembersAreInTheirClass) {
  try {
    Outer();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    const uint32_t line = error.site().line();
    const std::string start = str(__FILE__, ':', line, ": [Linear] ");
    EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start) << error.what();
    EXPECT_GE(line, kAfterOuter - 4);
    EXPECT_LT(line, kAfterOuter);
  }
}

// Where a standard header calls the constructor, the line of an enclosing call is known, or none.
TEST(ConstructorErrors, ThroughAStandardHeaderKeepTheComponent) {
  EXPECT_THROW(std::make_shared<nn::Linear>(-1, 3), InvalidArgument);
  EXPECT_EQ(std::make_shared<nn::Linear>(2, 3)->weight.shape(), (Shape{3, 2}));
}

TEST(ConstructorErrors, OfModels) {
  namespace models = flow::models;
  models::Gpt gpt({.vocab_size = 4, .block_size = 4, .n_layer = 1, .n_head = 1, .n_embd = 2});

  expect_refused({
      {"Mlp", "received 1", [] { models::Mlp({3}); }},
      {"Linear", "received -1",
       [] {
         models::Mlp({3, -1});
       }},
      {"Linear", "received -1", [] { models::Lenet({.num_classes = -1}); }},
      {"InvertedResidual", "received 3", [] { models::InvertedResidual(4, 4, 3, 1); }},
      {"Gpt", "received 7 and 2", [] { models::Gpt({.n_head = 2, .n_embd = 7}); }},
      {"Gpt", "vocab_size must not be negative", [] { models::Gpt({.vocab_size = -1}); }},
      {"generate", "top_k -1",
       [&] {
         models::generate(gpt, zeros({1, 1}, {.dtype = int64}), {.top_k = -1});
       }},
      {"file", "nofile", [&] { models::load_gpt(gpt, "nofile"); }},
  });
}

struct Empty : nn::Graph<Empty> {
  using GraphBase::config;

  Tensor build(const Tensor& x) { return x; }
};

TEST(ConstructorErrors, OfGraphsAndReplicas) {
  Empty graph;
  nn::GraphConfig& config = graph.config();
  nn::Linear linear(2, 2);

  expect_refused({
      {"graph", "float64", [&] { config.enable_amp(float64); }},
      {"GradScaler", "received -1", [&] { config.enable_amp(float16, {.init_scale = -1}); }},
      {"graph", "received 4", [&] { config.enable_zero({.stage = 4}); }},
      {"graph", "received 0", [&] { config.set_overlap({.bucket_mb = 0}); }},
      {"graph", "'x'", [&] { config.enable_pass("x"); }},
      {"graph", "received 0", [&] { config.set_micro_batches(0); }},
      {"graph", "received 0", [&] { config.set_max_plans(0); }},
      {"graph", "received 0 and 1", [&] { config.set_timeline("x", {.runs = 0}); }},
      {"set_stage", "received -1", [&] { linear.to<nn::GraphModule>().set_stage(-1); }},
      {"ddp", "received 0",
       [&] { nn::parallel::DistributedDataParallel(linear, {.bucket_mb = 0}); }},
  });
}

TEST(ConstructorErrors, OfDistributions) {
  namespace d = distributions;
  const d::Normal normal(0.0, 1.0);
  const d::Categorical classes({.probs = ones({3})});
  const Tensor pair = ones({2});
  const d::Normal normals(pair, 1.0);

  expect_refused({
      {"Normal", "scale must be positive", [] { d::Normal(0.0, -1.0); }},
      {"Normal", "loc not NaN", [] { d::Normal(NAN, 1.0); }},
      {"Normal", "(2,)", [] { d::Normal(ones({2}), ones({3})); }},
      {"Uniform", "low must be less than high", [] { d::Uniform(2.0, 1.0); }},
      {"Gumbel", "scale must be positive", [] { d::Gumbel(0.0, 0.0); }},
      {"Gumbel", "loc not NaN", [] { d::Gumbel(full({2}, NAN), 1.0); }},
      {"Bernoulli", "received neither", [] { d::Bernoulli({}); }},
      {"Bernoulli", "between 0 and 1", [] { d::Bernoulli({.probs = full({1}, 2)}); }},
      {"Bernoulli", "logits must not be NaN", [] { d::Bernoulli({.logits = full({1}, NAN)}); }},
      {"Categorical", "logits must not be NaN", [] { d::Categorical({.logits = full({2}, NAN)}); }},
      {"Categorical", "received both",
       [] { d::Categorical({.probs = ones({1}), .logits = ones({1})}); }},
      {"Categorical", "the shape", [] { d::Categorical({.probs = ones({})}); }},
      {"Dirichlet", "concentration must be positive", [] { d::Dirichlet(zeros({2})); }},
      {"MixtureSameFamily", "3 classes", [&] { d::MixtureSameFamily(classes, normals); }},
      {"sub", "(3,)", [&] { normals.log_prob(ones({3})); }},
      {"Categorical", "no gradient", [&] { classes.rsample(); }},
      {"Categorical", "no cdf", [&] { classes.cdf(pair); }},
      {"Categorical", "no icdf", [&] { classes.icdf(pair); }},
      {"kl_divergence", "Normal and Categorical", [&] { d::kl_divergence(normal, classes); }},
  });
}

class Exponential : public distributions::Distribution {
 public:
  Exponential() : Distribution("Exponential", {}) {}

  Tensor mean() const override { return ones({}); }

  Tensor variance() const override { return ones({}); }

 protected:
  Tensor compute_log_prob(const Tensor& value) const override {
    if (value.item<double>() < 0) throw InvalidArgument("[Exponential] received a negative value");
    return -value;
  }
};

class TwoEpochs : public schedules::LRScheduler {
 public:
  explicit TwoEpochs(optim::Optimizer& optimizer) : LRScheduler(optimizer) { begin(); }

 protected:
  void run_step() override {
    if (last_epoch_ == 1) throw InvalidArgument("[TwoEpochs] received a third epoch");
    optimizer().set_lr(++last_epoch_ == 0 ? 1 : 0.5);
  }

  void load_state(const nn::StateDict& /*state*/) override {
    throw Unsupported("[TwoEpochs] received a state");
  }

  void begin() override { restart(); }

  void restart() override {
    last_epoch_ = -1;
    run_step();
  }
};

class SlowSgd : public optim::SGD {
 public:
  using SGD::SGD;

 protected:
  void assign_lr(int64_t group, double lr) override {
    if (lr > 1) throw InvalidArgument(str("[SlowSgd] received ", lr));
    SGD::assign_lr(group, lr);
  }
};

TEST(ConstructorErrors, OfClassesThatUsersDerive) {
  const Exponential exponential;
  SlowSgd sgd({ones({2}).requires_grad_()}, {.lr = 1});
  TwoEpochs epochs(sgd);
  epochs.step();

  EXPECT_EQ(sgd.lr(), 0.5);
  expect_refused({
      {"Exponential", "negative", [&] { exponential.log_prob(full({}, -1)); }},
      {"Exponential", "no gradient", [&] { exponential.sample(); }},
      {"Exponential", "no entropy", [&] { exponential.entropy(); }},
      {"TwoEpochs", "third epoch", [&] { epochs.step(); }},
      {"TwoEpochs", "a state", [&] { epochs.load_state_dict({}); }},
      {"SlowSgd", "received 2", [&] { sgd.set_group_lr(0, 2); }},
      {"optimizer", "group 1", [&] { sgd.set_group_lr(1, 1); }},
  });
}

}  // namespace
}  // namespace flow

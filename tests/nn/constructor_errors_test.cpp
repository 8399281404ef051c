// What constructors and functions of the front ends refuse names the user's line, the component,
// and what was received.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/data/idx.h"
#include "nn/file.h"
#include "nn/flow.h"

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
  optim::SGD sgd({ones({2}).requires_grad_()}, {.lr = 1});
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
  const std::string folder = testing::TempDir() + "constructor_errors_nothing_here";
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

}  // namespace
}  // namespace flow

// Twenty steps of training, from weights and data that the script computes by the same formula.
#include <cmath>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/parity/golden_training.h"
#include "tools/flow_conform/optimizer_spec.h"

namespace flow::parity {
namespace {

void follow(const std::string& id) {
  const Json spec = training_spec(id);
  nn::AnyModule model = make_trained_model(spec);
  const auto [x, y] = make_training_data(spec);
  std::map<std::string, Tensor> params;
  for (const auto& [name, param] : model.named_parameters())
    params.emplace(name, param);
  const auto optimizer = conform::make_optimizer(spec, params);
  nn::CrossEntropyLoss loss_fn;
  const int64_t steps = spec["steps"];
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t batch = step % x.size(0);
    optimizer->zero_grad();
    const Tensor logits = model(x.select(0, batch));
    const Tensor loss =
        loss_fn(logits.reshape({-1, logits.size(-1)}), y.select(0, batch).flatten());
    loss.backward();
    const auto norm = nn::utils::clip_grad_norm_(model.parameters(), INFINITY).item<double>();
    optimizer->step();
    EXPECT_PRED2(is_golden, loss.item<double>(), spec["losses"][static_cast<size_t>(step)])
        << id << ' ' << step;
    EXPECT_PRED2(is_golden, norm, spec["grad_norms"][static_cast<size_t>(step)])
        << id << ' ' << step;
  }
}

TEST(TrainingParity, MlpFollowsPyTorchForTwentySteps) {
  follow("mlp");
}

TEST(TrainingParity, LenetFollowsPyTorchForTwentySteps) {
  follow("lenet");
}

TEST(TrainingParity, GptFollowsPyTorchForTwentySteps) {
  follow("gpt");
  follow("gpt_tied");
}

TEST(TrainingParity, MobileNetV2FollowsPyTorchForTwentySteps) {
  follow("mobilenet_v2");
}

}  // namespace
}  // namespace flow::parity

// A training that is interrupted and resumed has the losses of one that was not.
#include <filesystem>

#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Training {
  nn::Sequential model{nn::Linear(4, 16), nn::ReLU(), nn::Dropout(0.2), nn::Linear(16, 1)};
  flow::optim::Adam optimizer{model.parameters(), {.lr = 1e-2}};
  flow::optim::lr_scheduler::StepLR schedule{optimizer, {.step_size = 3, .gamma = 0.5}};

  double step() {
    const flow::Tensor x = flow::randn({32, 4});
    const flow::Tensor loss = flow::mse_loss(model(x), x.sum(1, {.keepdim = true}));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    schedule.step();
    return loss.item();
  }

  nn::StateDict state() {
    return nn::joined({{"model", model.state_dict()},
                       {"optimizer", optimizer.state_dict()},
                       {"schedule", schedule.state_dict()}});
  }
};

int main() {
  const std::string folder_name = "checkpoints";
  std::filesystem::remove_all(folder_name);
  const nn::CheckpointFolder folder(folder_name);
  expect(!folder.newest(), "there is no checkpoint yet");

  std::vector<double> losses;
  {
    flow::manual_seed(3);
    Training training;
    for (int64_t step = 0; step < 10; ++step) {
      losses.push_back(training.step());
      if (step == 4) folder.save(step + 1, training.state());
    }
  }

  flow::manual_seed(99);  // another program, with another seed
  Training training;
  const auto checkpoint = folder.newest();
  expect(checkpoint.has_value() && checkpoint->step() == 5,
         "the newest checkpoint is that of step 5");
  training.model.load_state_dict(checkpoint->read_all("model."));
  training.optimizer.load_state_dict(checkpoint->read_all("optimizer."));
  training.schedule.load_state_dict(checkpoint->read_all("schedule."));
  flow::set_generator_state(checkpoint->generator());
  for (size_t step = 5; step < 10; ++step)
    expect(training.step() == losses[step],
           "the loss of step " + std::to_string(step) + " is the same bit for bit");
}

// A run that stops after any step and goes on from files gives the losses of one that did not stop.

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

namespace lrs = optim::lr_scheduler;

struct Training {
  nn::Sequential model{nn::Linear(3, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(0.3),
                       nn::Linear(8, 2)};
  optim::NAdam optimizer{model.parameters(), {.lr = 0.01}};
  lrs::OneCycleLR rate{optimizer, {.max_lr = {0.1}, .total_steps = 30}};
  optim::MovingAverage average{model.parameters(), {.decay = 0.9}};
  data::DataLoader<data::TensorDataset<2>> loader{
      data::TensorDataset(sin(arange(33.0)).reshape({11, 3}), cos(arange(22.0)).reshape({11, 2})),
      {.batch_size = 3, .shuffle = true, .num_workers = 1}};
  int64_t step = 0;

  // Losses up to step `last`.
  std::vector<double> train(int64_t last) {
    std::vector<double> losses;
    while (step < last) {
      for (auto [x, y] : loader) {
        const Tensor loss = mse_loss(model(x), y);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        rate.step();
        average.update();
        losses.push_back(loss.item<double>());
        if (++step == last) break;
      }
    }
    return losses;
  }
};

TEST(Resume, LossesGoOnBitForBit) {
  const TempFolder folder;
  manual_seed(7);
  Training whole;
  const std::vector<double> all = whole.train(15);
  for (const int64_t stop : {1, 4, 6, 8}) {
    manual_seed(7);
    Generator::State generator;
    {
      Training first;
      EXPECT_EQ(first.train(stop), std::vector(all.begin(), all.begin() + stop));
      nn::save_safetensors(folder.file("model"), first.model.state_dict());
      nn::save_safetensors(folder.file("optimizer"), first.optimizer.state_dict());
      nn::save_safetensors(folder.file("rate"), first.rate.state_dict());
      nn::save_safetensors(folder.file("average"), first.average.state_dict());
      nn::save_safetensors(folder.file("loader"), first.loader.state_dict());
      generator = generator_state();
    }
    manual_seed(1);
    Training second;
    second.model.load_state_dict(nn::load_safetensors(folder.file("model")));
    second.optimizer.load_state_dict(nn::load_safetensors(folder.file("optimizer")));
    second.rate.load_state_dict(nn::load_safetensors(folder.file("rate")));
    second.average.load_state_dict(nn::load_safetensors(folder.file("average")));
    second.loader.load_state_dict(nn::load_safetensors(folder.file("loader")));
    set_generator_state(generator);
    second.step = stop;
    EXPECT_EQ(second.train(15), std::vector(all.begin() + stop, all.end())) << stop;
    EXPECT_EQ(second.average.averages()[0].to_vector<float>(),
              whole.average.averages()[0].to_vector<float>());
  }
}

}  // namespace
}  // namespace flow

// Data parallel training on devices next to the same training in host memory.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow {

// Expects that both trainings have the losses of the other. Each rank of a job calls it.
inline void expect_data_parallel_losses_of_host_memory() {
  const auto train = [](const char* device) {
    manual_seed(2);
    nn::Linear net(6, 3);
    net.to(device);
    nn::parallel::DistributedDataParallel<nn::Linear> ddp(net);
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
      const Tensor loss = mse_loss(ddp(randn({4, 6}).to(device)), zeros({4, 3}).to(device));
      sgd.zero_grad();
      loss.backward();
      sgd.step();
      losses.push_back(loss.item());
    }
    return losses;
  };
  const std::vector<double> expected = train("cpu");
  const std::vector<double> actual = train("cuda");
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]);
}

}  // namespace flow

// The walking skeleton on a device: matmul, relu, mse_loss, SGD and backward, as on the CPU.
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/loss/loss.h"
#include "ops/random/random.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/temp_folder.h"

namespace flow {

namespace {

class CudaSkeleton : public CudaFixture {};

// Losses of five steps on tensors that `place` brings where they are wanted.
template <class Place>
std::vector<double> train(const Place& place) {
  manual_seed(11);
  const Tensor x = place(randn({16, 8}));
  const Tensor target = place(randn({16, 4}));
  const Tensor w1 = place(randn({8, 32}));
  const Tensor w2 = place(randn({32, 4}));
  w1.requires_grad_();
  w2.requires_grad_();
  optim::SGD sgd({w1, w2}, {.lr = 0.01, .momentum = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    const Tensor loss = mse_loss(matmul(relu(matmul(x, w1)), w2), target);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.item());
  }
  return losses;
}

void expect_close(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-4 * expected[i]);
}

TEST_F(CudaSkeleton, TrainsAsOnTheCpu) {
  const std::vector<double> expected = train([](const Tensor& x) { return x; });
  EXPECT_LT(expected.back(), expected.front());

  expect_close(train([](const Tensor& x) { return x.to("cuda"); }), expected);
}

TEST_F(CudaSkeleton, FilesHoldWhatIsOnTheDevice) {
  const TempFolder folder;
  const std::string path = folder.file("net");
  nn::Linear net(3, 2);
  net.to("cuda");

  nn::save_safetensors(path + ".safetensors", net.state_dict());
  nn::save_npy(path + ".npy", net.weight);

  const nn::StateDict read = nn::load_safetensors(path + ".safetensors");
  EXPECT_EQ(read.at("weight").to_vector<float>(), net.weight.to_vector<float>());
  EXPECT_EQ(nn::load_npy(path + ".npy").to_vector<float>(), net.weight.to_vector<float>());
  nn::Linear other(3, 2);
  other.to("cuda");
  other.load_state_dict(read);
  EXPECT_EQ(other.weight.device(), DeviceType::kCuda);
  EXPECT_EQ(other.weight.to_vector<float>(), net.weight.to_vector<float>());
  EXPECT_THROW(to_dlpack(net.weight.detach()), Unsupported);
}

TEST_F(CudaSkeleton, TrainsGloballyAsOnOneRank) {
  const std::vector<double> expected = train([](const Tensor& x) { return x; });

  run_ranks(2, [&] {
    const Placement two("cuda", {0, 1});
    expect_close(train([&](const Tensor& x) {
                   const bool is_data = x.size(0) == 16;
                   return x.to("cuda")
                       .to_global({.placement = two, .sbp = sbp::broadcast})
                       .to_global({.sbp = is_data ? sbp::split(0) : sbp::broadcast});
                 }),
                 expected);
  });
}

// Initial states, orders and masks are made where the input is.
TEST_F(CudaSkeleton, RecurrentLayersRunAsOnTheCpu) {
  manual_seed(5);
  nn::LSTM lstm(3, 4);
  nn::GRUCell cell(3, 4);
  const Tensor x = randn({5, 2, 3}), lengths = tensor({3, 5});
  const auto run = [&](const Tensor& in) {
    const auto packed =
        nn::utils::rnn::pack_padded_sequence(in, lengths, {.enforce_sorted = false});
    return std::vector<Tensor>{lstm(in).output.to("cpu"), cell(in.select(0, 0)).to("cpu"),
                               nn::utils::rnn::pad_packed_sequence(packed).output.to("cpu")};
  };
  const std::vector<Tensor> expected = run(x);
  lstm.to("cuda");
  cell.to("cuda");
  const std::vector<Tensor> actual = run(x.to("cuda"));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(allclose(actual[i], expected[i], {.rtol = 1e-4, .atol = 1e-5})) << i;
}

TEST_F(CudaSkeleton, OptimizersLoadStatesFromTheHost) {
  nn::Linear layer(3, 2);
  const Tensor x = randn({4, 3});
  optim::AdamW before(layer.parameters());
  layer(x).sum().backward();
  before.step();
  nn::StateDict state;
  for (const auto& [name, tensor] : before.state_dict())
    state.emplace(name, tensor.clone());

  layer.to("cuda");  // with its gradients
  EXPECT_EQ(layer.weight.grad().device(), DeviceType::kCuda);
  optim::AdamW optimizer(layer.parameters());
  optimizer.load_state_dict(state);
  layer(x.to("cuda")).sum().backward();
  optimizer.step();

  EXPECT_TRUE(layer.weight.to("cpu").isfinite().all().item<bool>());
}

}  // namespace

}  // namespace flow

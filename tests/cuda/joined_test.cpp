// Work on many tensors that one launch does: it gives the bits of single calls, in their order.
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/device/joined_launch.h"
#include "core/generator.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/optimizer/adaptive_update.h"
#include "ops/optimizer/update.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/closeness.h"
#include "tests/support/values.h"

namespace flow {

namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

// A parameter, its gradient, and what an optimizer keeps of it.
struct Updated {
  Tensor param, grad, average, square, other;

  Updated clone() const {
    return {param.clone(), grad.clone(), average.clone(), square.clone(), other.clone()};
  }
};

struct Rule {
  const char* name;
  std::function<void(const Updated&)> run;
};

// Rates that the update finds in device memory.
Tensor on_device(double number) {
  return full({}, number, {.dtype = float64, .device = "cuda"});
}

std::vector<Rule> rules() {
  return {
      {"sgd", [](const Updated& u) { sgd_update(u.param, u.grad, Tensor(), {.lr = 0.1}); }},
      {"sgd with momentum",
       [](const Updated& u) {
         sgd_update(u.param, u.grad, u.average,
                    {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
       }},
      {"adam",
       [](const Updated& u) {
         adam_update(u.param, u.grad, u.average, u.square,
                     {.step = 3, .lr_tensor = on_device(0.01), .step_tensor = on_device(7)});
       }},
      {"amsgrad",
       [](const Updated& u) {
         adam_update(u.param, u.grad, u.average, u.square, {.step = 3, .max_exp_avg_sq = u.other});
       }},
      {"adamw",
       [](const Updated& u) {
         adamw_update(u.param, u.grad, u.average, u.square, {.weight_decay = 0.1, .step = 2});
       }},
      {"adamax",
       [](const Updated& u) { adamax_update(u.param, u.grad, u.average, u.square, {.step = 2}); }},
      {"radam",
       [](const Updated& u) { radam_update(u.param, u.grad, u.average, u.square, {.step = 9}); }},
      {"nadam", [](const Updated& u) { nadam_update(u.param, u.grad, u.average, u.square, {}); }},
      {"rmsprop",
       [](const Updated& u) {
         rmsprop_update(u.param, u.grad, u.square, {.momentum = 0.5, .momentum_buffer = u.other});
       }},
      {"adagrad", [](const Updated& u) { adagrad_update(u.param, u.grad, u.square, {}); }},
      {"adadelta",
       [](const Updated& u) { adadelta_update(u.param, u.grad, u.square, u.other, {}); }},
      {"lamb",
       [](const Updated& u) { lamb_update(u.param, u.grad, u.average, u.square, {.step = 2}); }},
  };
}

// Tensors of every kind that a table holds: more than one launch takes, some empty, some of many
// pieces, at addresses where no pack begins, and with strides.
std::vector<Updated> tensors_of(DType dtype) {
  const auto made = [&](const std::function<Tensor(const Tensor&)>& shaped, int64_t numel) {
    const auto one = [&](bool is_square) {
      const Tensor x = randn({numel}, {.device = "cuda"});
      return shaped(cast(is_square ? abs(x) : x, dtype));
    };
    return Updated{one(false), one(false), one(false), one(true), one(true)};
  };
  std::vector<Updated> all;
  for (int64_t i = 0; i < 70; ++i)
    all.push_back(made([](const Tensor& x) { return x; }, i % 9));
  for (const int64_t numel : {1023, 1024, 1025, 2500})
    all.push_back(made([](const Tensor& x) { return x; }, numel));
  all.push_back(made([](const Tensor& x) { return x.narrow(0, 1, 1300); }, 1301));
  all.push_back(made([](const Tensor& x) { return x.reshape({6, 50}).t(); }, 300));
  all.push_back(made([](const Tensor& x) { return x.reshape({6, 50}).narrow(1, 3, 7); }, 300));
  return all;
}

std::vector<Updated> clones_of(const std::vector<Updated>& all) {
  std::vector<Updated> clones;
  for (const Updated& one : all)
    clones.push_back(one.clone());
  return clones;
}

contract::Values values_of(const Tensor& x) {
  return contract::read_values(x.to("cpu").contiguous());
}

void expect_same(const std::vector<Updated>& a, const std::vector<Updated>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(values_of(a[i].param), values_of(b[i].param)) << what << ", parameter " << i;
    EXPECT_EQ(values_of(a[i].average), values_of(b[i].average)) << what << ", average " << i;
    EXPECT_EQ(values_of(a[i].square), values_of(b[i].square)) << what << ", square " << i;
    EXPECT_EQ(values_of(a[i].other), values_of(b[i].other)) << what << ", other " << i;
  }
}

class CudaJoined : public CudaFixture {
 protected:
  void SetUp() override {
    manual_seed(5);
    CudaFixture::SetUp();
  }

  NoGradGuard no_grad_;
};

// Updates of 16-bit parameters whose masters are `other`.
std::vector<Rule> master_rules() {
  return {
      {"sgd with a master",
       [](const Updated& u) {
         sgd_update(u.param, u.grad, Tensor(), {.lr = 0.01, .master = u.other});
       }},
      {"momentum with a master",
       [](const Updated& u) {
         sgd_update(u.param, u.grad, u.average,
                    {.lr = 0.01, .momentum = 0.9, .nesterov = true, .master = u.other});
       }},
      {"adamw with a master",
       [](const Updated& u) {
         adamw_update(u.param, u.grad, u.average, u.square,
                      {.weight_decay = 0.1, .step = 2, .master = u.other});
       }},
  };
}

TEST_F(CudaJoined, UpdatesHaveTheBitsOfSingleOnes) {
  for (const DType dtype : {float32, bfloat16, float16, float64}) {
    const std::vector<Updated> start = tensors_of(dtype);
    for (const Rule& rule : rules()) {
      const std::string name = rule.name;
      if (dtype != float32 && name != "adam" && name != "sgd with momentum") continue;
      const std::vector<Updated> single = clones_of(start), joined = clones_of(start);
      for (const Updated& one : single)
        rule.run(one);
      {
        const cuda::JoinLaunches joins;
        for (const Updated& one : joined)
          rule.run(one);
      }
      expect_same(joined, single, str(name, " of ", dtype_name(dtype)));
      EXPECT_NE(values_of(joined[72].param), values_of(start[72].param)) << name;
    }
  }
}

// Tensors of 16 and of 32 bits in one pass. The parameters and their gradients begin at odd places
// where the others do not.
TEST_F(CudaJoined, UpdatesOfMastersHaveTheBitsOfSingleOnes) {
  for (const DType dtype : {bfloat16, float16}) {
    for (const Rule& rule : master_rules()) {
      const auto run = [&](bool joins) {
        manual_seed(8);
        std::vector<Updated> all = tensors_of(dtype);
        for (Updated& one : all) {
          for (Tensor* wide : {&one.average, &one.square, &one.other})
            *wide = cast(*wide, float32);
          if (one.param.numel() % 2 == 0) one.other = cast(one.param, float32) * (1 + 0x1p-13);
        }
        std::optional<cuda::JoinLaunches> scope;
        if (joins) scope.emplace();
        for (const Updated& one : all)
          rule.run(one);
        return all;
      };
      expect_same(run(true), run(false), str(rule.name, " of ", dtype_name(dtype)));
    }
  }
}

// The bits that the update of a float32 copy gives on the device.
TEST_F(CudaJoined, UpdatesOfMastersAreThoseOfAFloat32Copy) {
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor param = randn({2500}, {.device = "cuda"}).to(dtype);
    const Tensor copy = param.to(float32), master = zeros_like(copy);
    const Tensor average = zeros_like(copy), square = zeros_like(copy);
    const Tensor average2 = zeros_like(copy), square2 = zeros_like(copy);
    for (int64_t step = 1; step <= 3; ++step) {
      const Tensor grad = randn({2500}, {.device = "cuda"}).to(dtype);
      adamw_update(param, grad, average, square,
                   {.lr = 1e-3, .weight_decay = 0.1, .step = step, .master = master});
      adamw_update(copy, grad.to(float32), average2, square2,
                   {.lr = 1e-3, .weight_decay = 0.1, .step = step});
      EXPECT_EQ(values_of(master), values_of(copy)) << step;
      EXPECT_EQ(values_of(param), values_of(copy.to(dtype))) << step;
      EXPECT_EQ(values_of(square), values_of(square2)) << step;
    }
  }
}

// Views keep their strides and their places among packs, which clones do not.
TEST_F(CudaJoined, UpdatesOfViewsHaveTheBitsOfSingleOnes) {
  const auto run = [](bool joins) {
    manual_seed(6);
    const std::vector<Updated> all = tensors_of(float32);
    std::optional<cuda::JoinLaunches> scope;
    if (joins) scope.emplace();
    for (const Updated& one : all)
      adamw_update(one.param, one.grad, one.average, one.square, {});
    return all;
  };
  expect_same(run(true), run(false), "adamw");
}

// What a call reads or writes may be what an earlier call of the same launch would write.
TEST_F(CudaJoined, UpdatesKeepTheirOrderWhereMemoryIsShared) {
  const auto run = [](bool joins) {
    manual_seed(7);
    const Tensor all = randn({1000}, {.device = "cuda"}), grad = randn({1000}, {.device = "cuda"});
    const Tensor low = all.narrow(0, 0, 600), high = all.narrow(0, 400, 600);
    std::optional<cuda::JoinLaunches> scope;
    if (joins) scope.emplace();
    const SgdUpdateOptions options{.lr = 0.3, .weight_decay = 0.5};
    sgd_update(all, grad, Tensor(), options);
    sgd_update(all, grad, Tensor(), options);                       // writes what was written
    sgd_update(low, grad.narrow(0, 0, 600), Tensor(), options);     // a part of it
    sgd_update(grad.narrow(0, 0, 600), high, Tensor(), options);    // reads what was written
    sgd_update(high, grad.narrow(0, 100, 600), Tensor(), options);  // and writes what was read
    const Tensor rate = all.select(0, 3);
    sgd_update(grad, all, Tensor(), {.lr_tensor = rate});  // by a rate that was written
    return Tensors{all, grad};
  };
  const Tensors joined = run(true), single = run(false);
  EXPECT_EQ(values_of(joined[0]), values_of(single[0]));
  EXPECT_EQ(values_of(joined[1]), values_of(single[1]));
}

TEST_F(CudaJoined, OtherWorkComesAfterWhatWasPutOff) {
  const Tensor p = ones({8}, {.device = "cuda"}), q = ones({8}, {.device = "cuda"});
  const Tensor grad = ones({8}, {.device = "cuda"});
  const cuda::JoinLaunches joins;

  sgd_update(p, grad, Tensor(), {.lr = 0.5});
  const Tensor twice = p * 2;
  sgd_update(p, grad, Tensor(), {.lr = 0.5});
  EXPECT_EQ(p.to_vector<float>(), Floats(8, 0));  // a copy to host memory
  EXPECT_EQ(twice.to_vector<float>(), Floats(8, 1));
  sgd_update(q, grad, Tensor(), {.lr = 0.25});
  p.copy_(q);  // a copy on the device
  sgd_update(q, grad, Tensor(), {.lr = 0.25});
  EXPECT_EQ(p.to_vector<float>(), Floats(8, 0.75));
  sgd_update(q, grad, Tensor(), {.lr = 0.25});
  q.copy_(ones({8}));  // a copy from host memory
  EXPECT_EQ(q.to_vector<float>(), Floats(8, 1));
  sgd_update(q, grad, Tensor(), {.lr = 0.25});
  cuda::synchronize();
  EXPECT_EQ(cuda::joined_launch(), nullptr);
}

// Without a cache the memory of a gradient is gone when its tensor is.
TEST_F(CudaJoined, MemoryIsFreedAfterWhatWasPutOff) {
  const WithoutCache without;
  run_ranks(1, [] {
    const NoGradGuard no_grad;
    cuda::set_device(1 % cuda::device_count());
    const Tensor p = ones({8}, {.device = "cuda"}), q = ones({8}, {.device = "cuda"});
    const cuda::JoinLaunches joins;
    sgd_update(p, q * 3, Tensor(), {.lr = 0.5});
    sgd_update(q, p.clone(), Tensor(), {.lr = 0.5});
    EXPECT_EQ(p.to_vector<float>(), Floats(8, -0.5));
    EXPECT_EQ(q.to_vector<float>(), Floats(8, 1.25));
  });
}

// Rank 1 updates a tensor of rank 0, which reads it while the scope of rank 1 is open.
TEST_F(CudaJoined, TheOwnerOfMemorySeesWhatAnotherRankHasPutOff) {
  Tensor shared;
  std::atomic<int> turn = 0;
  const auto wait_for = [&](int wanted) {
    while (turn.load() != wanted)
      std::this_thread::yield();
  };
  run_ranks(2, [&] {
    const NoGradGuard no_grad;
    cuda::set_device(0);
    if (env::rank() == 0) {
      shared = ones({8}, {.device = "cuda"});
      turn = 1;
      wait_for(2);
      const Tensor seen = shared * 1;
      turn = 3;
      EXPECT_EQ(seen.to_vector<float>(), Floats(8, 0.5));
      shared = Tensor();
    } else {
      const Tensor grad = ones({8}, {.device = "cuda"});
      wait_for(1);
      const cuda::JoinLaunches joins;
      sgd_update(shared, grad, Tensor(), {.lr = 0.5});
      turn = 2;
      wait_for(3);
    }
  });
}

// Gradients of many sizes in two dtypes. They are clipped by single calls, as clip_grad_norm_ says.
TEST_F(CudaJoined, ClippingHasTheBitsOfSingleCalls) {
  Tensors parameters, expected, norms;
  for (int64_t i = 0; i < 100; ++i) {
    const DType dtype = i % 10 == 9 ? bfloat16 : float32;
    const int64_t numel = i == 50 ? 3000 : i == 51 ? 0 : 1 + i;
    parameters.push_back(zeros({numel}, {.dtype = dtype, .device = "cuda"}));
    const Tensor whole = cast(randn({numel + 1}, {.device = "cuda"}), dtype);
    parameters.back().set_grad(i % 3 == 0 ? whole.narrow(0, 1, numel) : whole.narrow(0, 0, numel));
    expected.push_back(parameters.back().grad().clone());
    norms.push_back(cast(norm(expected.back()), float32));
  }
  const Tensor total = norm(stack(norms));
  const Tensor factor = clamp(0.5 / (total + 1e-6), {.max = 1.0});
  for (const Tensor& grad : expected)
    grad.mul_(factor);

  const Tensor found = nn::utils::clip_grad_norm_(parameters, 0.5);

  EXPECT_GT(found.item<float>(), 1);
  EXPECT_EQ(found.item<float>(), total.item<float>());
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_EQ(values_of(parameters[i].grad()), values_of(expected[i])) << i;
}

// Tensors of one piece and of many, at addresses where packs begin and where they do not.
TEST_F(CudaJoined, PiecesGiveWhatTheCpuGives) {
  const auto expect_near = [](const Tensor& actual, const Tensor& expected) {
    EXPECT_EQ(contract::difference(values_of(actual), values_of(expected),
                                   contract::kernel_tolerance(expected.dtype())),
              "")
        << dtype_name(expected.dtype()) << ", " << expected.shape();
  };
  const Tensor factor = full({}, 0.3);
  for (const DType dtype : {float32, bfloat16, float16, float64}) {
    for (const int64_t numel : {0, 1, 255, 1024, 1025, 5000}) {
      for (const int64_t offset : {0, 1}) {
        const auto made = [&] { return cast(randn({numel + 1}), dtype); };
        const auto part = [&](const Tensor& x) { return x.narrow(0, offset, numel); };
        const Tensor p = made(), grad = made(), average = made(), square = abs(made());
        const Tensor p_there = p.to("cuda"), average_there = average.to("cuda");
        const Tensor square_there = square.to("cuda"), grad_there = grad.to("cuda");
        const Tensor number = cast(factor, dtype);

        if (numel > 0) expect_near(norm(part(p_there)), norm(part(p)));
        expect_near(part(p_there) * number.to("cuda"), part(p) * number);
        adamw_update(part(p), part(grad), part(average), part(square), {.lr = 0.1, .step = 2});
        adamw_update(part(p_there), part(grad_there), part(average_there), part(square_there),
                     {.lr = 0.1, .step = 2});
        expect_near(p_there, p);
        expect_near(average_there, average);
        expect_near(square_there, square);
      }
    }
  }
}

struct ClippedStep : nn::Graph<ClippedStep> {
  nn::Sequential net;

  ClippedStep(nn::Sequential n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor loss = mse_loss(net(x), target);
    loss.backward();
    return loss;
  }
};

// Compiled, eager, and with an optimizer for each parameter, so that no updates are joined.
TEST_F(CudaJoined, TrainingHasTheBitsOfSingleUpdates) {
  enum class How { kCompiled, kEager, kApart };
  const auto train = [](How how) {
    manual_seed(7);
    nn::Sequential net(nn::Linear(8, 32), nn::LayerNorm({32}), nn::ReLU(), nn::Linear(32, 4));
    net.to("cuda");
    std::deque<optim::AdamW> optimizers;  // which cannot be moved
    if (how == How::kApart) {
      for (const Tensor& parameter : net.parameters())
        optimizers.emplace_back(Tensors{parameter}, optim::AdamWOptions{.lr = 0.05});
    } else {
      optimizers.emplace_back(net.parameters(), optim::AdamWOptions{.lr = 0.05});
    }
    ClippedStep graph(net, optimizers[0]);
    Floats losses;
    for (int step = 0; step < 5; ++step) {
      const Tensor x = randn({16, 8}, {.device = "cuda"});
      const Tensor target = randn({16, 4}, {.device = "cuda"});
      if (how == How::kCompiled) {
        losses.push_back(graph(x, target).item<float>());
        continue;
      }
      const Tensor loss = mse_loss(net(x), target);
      net.zero_grad();
      loss.backward();
      nn::utils::clip_grad_norm_(net.parameters(), 0.5);
      for (optim::AdamW& optimizer : optimizers)
        optimizer.step();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  const GradModeGuard records(true);
  const Floats apart = train(How::kApart);
  EXPECT_EQ(train(How::kEager), apart);
  EXPECT_EQ(train(How::kCompiled), apart);
  EXPECT_NE(apart.front(), apart.back());
}

}  // namespace

}  // namespace flow

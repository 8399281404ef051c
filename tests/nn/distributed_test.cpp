#include "nn/parallel/distributed.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using nn::parallel::DistributedDataParallel;

// Every test runs on ranks that are threads, and on ranks that speak the protocol of processes.
class DistributedDataParallelOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, DistributedDataParallelOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, DistributedDataParallelOn, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, DistributedDataParallelOn,
                         testing::Values(run_shared_memory_ranks));

struct Model : nn::Module<Model> {
  Tensor w{register_parameter("w", zeros({2, 1}))};

  Tensor forward(const Tensor& x) { return matmul(x, w); }
};

// The losses that OneFlow's documentation prints for this program.
TEST_P(DistributedDataParallelOn, ReferenceProgramGivesItsLossesDigitForDigit) {
  run_on_ranks(2, [] {
    const Tensor train_x[] = {tensor({{1.F, 2.F}, {2.F, 3.F}}), tensor({{4.F, 6.F}, {3.F, 1.F}})};
    const Tensor train_y[] = {tensor({{8.F}, {13.F}}), tensor({{26.F}, {9.F}})};
    DistributedDataParallel ddp{Model()};
    nn::MSELoss loss_fn({.reduction = "sum"});
    optim::SGD optimizer(ddp.parameters(), {.lr = 0.01});
    std::vector<double> losses;
    for (int i = 0; i < 500; ++i) {
      const Tensor loss = loss_fn(ddp(train_x[me()]), train_y[me()]);
      losses.push_back(loss.item<double>());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }

    EXPECT_EQ(losses[49], me() == 0 ? 0.00025336415274068713 : 0.004111831542104483);
    EXPECT_EQ(losses[499], me() == 0 ? 4.547473508864641e-12 : 6.184563972055912e-11);
    EXPECT_NEAR(ddp.module().w.to_vector<float>()[0], 2, 1e-4);
    EXPECT_NEAR(ddp.module().w.to_vector<float>()[1], 3, 1e-4);
  });
}

// Three layers, of which `extra` is used by odd ranks only and `never` by none.
struct Branches : nn::Module<Branches> {
  nn::Linear first{register_module("first", nn::Linear(3, 4))};
  nn::Linear extra{register_module("extra", nn::Linear(4, 4))};
  nn::Linear never{register_module("never", nn::Linear(4, 4))};
  Tensor counter{register_buffer("counter", full({1}, static_cast<double>(env::rank())))};

  Tensor forward(const Tensor& x) {
    Tensor y = first(x);
    if (env::rank() % 2 == 1) y = extra(y);
    return y.sum();
  }
};

TEST_P(DistributedDataParallelOn, StartsFromTheValuesOfRankZero) {
  run_on_ranks(3, [] {
    manual_seed(static_cast<uint64_t>(100 + me()));

    DistributedDataParallel ddp{Branches()};

    for (const auto& [name, parameter] : ddp.named_parameters()) {
      const Tensor all = comm::all_gather(parameter.detach().reshape({1, -1}));
      for (int64_t rank = 1; rank < 3; ++rank)
        EXPECT_EQ(all[rank].to_vector<float>(), all[0].to_vector<float>()) << name;
    }
    EXPECT_EQ(ddp.module().counter.item(), 0);
    EXPECT_EQ(ddp.named_parameters()[0].first, "module.first.weight");
  });
}

// Gradients of a single copy, by hand: the mean over the ranks of their own gradients.
TEST_P(DistributedDataParallelOn, GradientsAreMeansAndUnusedParametersCountAsZero) {
  run_on_ranks(3, [] {
    Branches plain;
    DistributedDataParallel ddp{plain, {.bucket_mb = 0.00001}};  // a bucket per parameter
    const Tensor x = full({2, 3}, 1.0 + static_cast<double>(me()));
    plain(x).backward();  // of the shared parameters, averaged by the hooks
    const nn::NamedTensors averaged = plain.named_parameters();
    std::vector<Tensor> means;
    for (const auto& [name, parameter] : averaged)
      means.push_back(parameter.grad());
    plain.zero_grad();
    {
      const auto guard = ddp.no_sync();
      ddp(x).backward();
    }

    for (size_t i = 0; i < averaged.size(); ++i) {
      const auto& [name, parameter] = averaged[i];
      if (name.starts_with("never")) {
        EXPECT_FALSE(means[i].defined()) << name;
        continue;
      }
      const Tensor own = parameter.grad().defined() ? parameter.grad() : zeros(parameter.shape());
      EXPECT_EQ(means[i].to_vector<float>(), (comm::all_reduce(own) / 3.0).to_vector<float>())
          << name;
    }
  });
}

// Of several pieces of shared memory.
TEST_P(DistributedDataParallelOn, TheBoxingReportHasEachBucketUnderTheLineOfBackward) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp(models::Mlp({64, 64, 64}), {.bucket_mb = 0.01});
    const Tensor loss = ddp(ones({2, 64})).sum();
    reset_boxing_report();
    loss.backward();
    const uint32_t line = __LINE__ - 1;
    int64_t elements = 0;
    for (const BoxingEntry& entry : boxing_report().entries) {
      EXPECT_EQ(entry.site.line(), line);
      EXPECT_EQ(entry.route, "all_reduce_mean");
      EXPECT_EQ(entry.to_placement, Placement("cpu", {0, 1}));
      elements += entry.runs * entry.shape.numel();  // two buckets may be alike
    }
    EXPECT_EQ(elements, 2 * (64 * 64 + 64) + 4) << "and a share of users for each parameter";
  });
}

TEST_P(DistributedDataParallelOn, LargeGradientsAreMeansToo) {
  run_on_ranks(3, [] {
    DistributedDataParallel ddp{nn::Linear(400, 501)};
    const Tensor x = full({2, 400}, 1.0 + static_cast<double>(me()));
    (ddp(x) * ddp(x)).sum().backward();
    std::vector<Tensor> means;
    for (const Tensor& parameter : ddp.parameters())
      means.push_back(parameter.grad());
    ddp.zero_grad();
    {
      const auto guard = ddp.no_sync();
      (ddp(x) * ddp(x)).sum().backward();
    }

    for (size_t i = 0; i < means.size(); ++i) {
      const Tensor mean = comm::all_reduce(ddp.parameters()[i].grad()) / 3.0;
      EXPECT_EQ(means[i].to_vector<float>(), mean.to_vector<float>());
    }
  });
}

TEST_P(DistributedDataParallelOn, GradientsGatheredWithoutSyncAreAveragedByTheNextBackward) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{Model()};
    const Tensor x = tensor({{1.F, 0.F}, {0.F, 1.F}});
    const auto rank = static_cast<float>(me());
    {
      const auto guard = ddp.no_sync();
      (ddp(x) * (1 + rank)).sum().backward();
    }
    EXPECT_EQ(ddp.module().w.grad().to_vector<float>(), (Floats{1 + rank, 1 + rank}));

    (ddp(x) * 10).sum().backward();

    EXPECT_EQ(ddp.module().w.grad().to_vector<float>(), (Floats{11.5F, 11.5F}));
  });
}

struct SumOfInputs : nn::Module<SumOfInputs> {
  Tensor w{register_parameter("w", ones({2}))};

  Tensor forward(const std::vector<Tensor>& inputs, double factor) {
    return (inputs[0] + inputs[1]) * w * factor;
  }
};

TEST_P(DistributedDataParallelOn, AModuleMayTakeAListOfTensors) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{SumOfInputs()};
    const Tensor x = full({2}, static_cast<double>(me()));

    ddp(std::vector<Tensor>{x, ones({2})}, 2).sum().backward();

    EXPECT_EQ(ddp.module().w.grad().to_vector<float>(), (Floats{3, 3}));
  });
}

TEST_P(DistributedDataParallelOn, AFailedBackwardDoesNotKeepTheNextFromAveraging) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{Model()};
    const Tensor x = ones({1, 2}).requires_grad_();
    x.register_hook([](const Tensor&) -> Tensor { throw InvalidArgument("[hook] no"); });
    EXPECT_THROW(ddp(x).sum().backward(), InvalidArgument);
    ddp.zero_grad();

    ddp(full({1, 2}, 1.0 + static_cast<double>(me()))).sum().backward();

    EXPECT_EQ(ddp.module().w.grad().to_vector<float>(), (Floats{1.5F, 1.5F}));
  });
}

// Backward adds an inner gradient to `w`: that of 2 * w.sum().
struct InnerGradients : nn::Module<InnerGradients> {
  enum class At { kBeforeTheLast, kAfterTheLast } at;
  Tensor first{register_parameter("first", randn({128, 128}))};  // fills a bucket
  Tensor b{register_parameter("b", randn({128}))};
  Tensor w{register_parameter("w", randn({128, 128}))};

  explicit InnerGradients(At when) : at(when) {}

  // Gradients arrive in the order of w, b and first.
  Tensor forward(const Tensor& x) {
    const Tensor xf = matmul(x, first);
    const Tensor y = matmul(xf + b, w);
    (at == At::kBeforeTheLast ? y : xf).register_hook([w = w](const Tensor&) {
      const EnableGradGuard enable_grad;
      (w * 2).sum().backward();
      return Tensor();
    });
    return y.sum();
  }
};

TEST_P(DistributedDataParallelOn, AMeanHasTheGradientsOfInnerBackwards) {
  run_on_ranks(2, [] {
    // Two buckets, of which the first begins in the background once it is complete.
    DistributedDataParallel ddp{InnerGradients(InnerGradients::At::kBeforeTheLast),
                                {.bucket_mb = 0.07}};
    const Tensor x = full({1, 128}, 1.0 + static_cast<double>(me()));
    ddp(x).backward();
    std::vector<Tensor> means;
    for (const Tensor& parameter : ddp.parameters())
      means.push_back(parameter.grad());
    ddp.zero_grad();
    {
      const auto guard = ddp.no_sync();
      ddp(x).backward();
    }

    for (size_t i = 0; i < means.size(); ++i) {
      const Tensor mean = comm::all_reduce(ddp.parameters()[i].grad()) / 2.0;
      EXPECT_EQ(means[i].to_vector<float>(), mean.to_vector<float>());
    }
  });
}

TEST_P(DistributedDataParallelOn, GradientsThatTheMeanWouldMissAreRefused) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{InnerGradients(InnerGradients::At::kAfterTheLast),
                                {.bucket_mb = 0.07}};
    const Tensor x = full({1, 128}, 1.0 + static_cast<double>(me()));
    EXPECT_EQ(message_of<Unsupported>([&] { ddp(x).backward(); }).find("w got another gradient"),
              std::string("[DistributedDataParallel] ").size());
    ddp.module().at = InnerGradients::At::kBeforeTheLast;
    ddp.zero_grad();
    EXPECT_NO_THROW(ddp(x).backward());
  });
}

// A head is trained first, then all of the model.
TEST_P(DistributedDataParallelOn, ParametersThatAreThawedAreAveragedFromTheNextCallOn) {
  run_on_ranks(2, [] {
    Branches plain;
    plain.first.requires_grad_(false);
    DistributedDataParallel ddp{plain};
    const Tensor x = full({1, 3}, 1.0 + static_cast<double>(me()));
    (ddp(x) + plain.extra.weight.sum()).backward();
    plain.first.requires_grad_();
    plain.extra.requires_grad_(false);
    ddp.zero_grad();

    ddp(x).backward();

    const Tensor all = comm::all_gather(plain.first.weight.grad().reshape({1, -1}));
    EXPECT_EQ(all[0].to_vector<float>(), all[1].to_vector<float>());
    EXPECT_NE(all[0].to_vector<float>()[0], 0);
    EXPECT_FALSE(plain.extra.weight.grad().defined());
  });
}

TEST_P(DistributedDataParallelOn, TheModuleMayGetAnotherDtypeAfterItWasWrapped) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{Model()};
    const Tensor x = full({1, 2}, 1.0 + static_cast<double>(me()));
    ddp(x).sum().backward();

    ddp.to(float64);
    ddp.zero_grad();
    ddp(x.to(float64)).sum().backward();

    EXPECT_EQ(ddp.module().w.grad().dtype(), float64);
    EXPECT_EQ(ddp.module().w.grad().to_vector<double>(), (std::vector<double>{1.5, 1.5}));
  });
}

struct HasTwoHandles : nn::Module<HasTwoHandles> {
  explicit HasTwoHandles(const DistributedDataParallel<Model>& module)
      : first(register_module("first", module)), second(register_module("second", first)) {}

  Tensor forward(const Tensor& x) { return first(x) + second(x); }

  DistributedDataParallel<Model> first, second;
};

TEST_P(DistributedDataParallelOn, ACloneAveragesItsOwnGradients) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{Model()};
    HasTwoHandles two(ddp);
    auto clone = ddp.clone();
    HasTwoHandles clone_of_two = two.clone();
    const Tensor x = full({1, 2}, 1.0 + static_cast<double>(me()));
    const auto guard = ddp.no_sync();
    ddp(x).sum().backward();

    clone(x).sum().backward();
    clone_of_two(x).sum().backward();

    EXPECT_EQ(clone.module().w.grad().to_vector<float>(), (Floats{1.5F, 1.5F}));
    EXPECT_EQ(clone_of_two.second.module().w.grad().to_vector<float>(), (Floats{3, 3}));
    EXPECT_EQ(ddp.module().w.grad().to_vector<float>(), x[0].to_vector<float>());
  });
}

TEST_P(DistributedDataParallelOn, BuffersFollowRankZeroWhileTraining) {
  run_on_ranks(2, [] {
    DistributedDataParallel ddp{Branches()};
    const auto value = static_cast<double>(5 + me());
    ddp.module().counter.fill_(value);
    ddp.eval();
    ddp(ones({1, 3}));
    EXPECT_EQ(ddp.module().counter.item(), value);

    ddp.train();
    ddp(ones({1, 3}));

    EXPECT_EQ(ddp.module().counter.item(), 5);
  });
}

TEST(GradientBuckets, AreFilledFromTheLastParameterAndTheFirstIsSmall) {
  nn::NamedTensors parameters;
  parameters.emplace_back("half", zeros({10}, {.dtype = float16, .requires_grad = true}));
  for (const int64_t size : {300'000, 300'000, 100'000, 200'000}) {  // of 4 bytes
    parameters.emplace_back("p", zeros({size}, {.requires_grad = true}));
  }
  parameters.emplace_back("fixed", zeros({10}));

  const auto buckets = nn::parallel::GradientBuckets::make(parameters, 2, Site::here());

  EXPECT_EQ(buckets->bucket_sizes(), (std::vector<size_t>{1, 2, 1, 1}));
}

TEST(GradientBuckets, AThawedParameterTakesItsPlaceInTheOrderOfTheModule) {
  nn::NamedTensors parameters;
  for (const int64_t size : {100'000, 100'001, 200'000})
    parameters.emplace_back("p", zeros({size}, {.requires_grad = size != 100'001}));
  const auto buckets = nn::parallel::GradientBuckets::make(parameters, 1, Site::here());
  EXPECT_EQ(buckets->bucket_sizes(), (std::vector<size_t>{1, 1}));

  parameters[1].second.requires_grad_();
  parameters[2].second.requires_grad_(false);
  buckets->follow(parameters);

  EXPECT_EQ(buckets->bucket_sizes(), (std::vector<size_t>{1, 2}));
}

TEST(GradientBuckets, GlobalParametersAreRefused) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const nn::NamedTensors parameters = {
        {"w", ones({2}, {.placement = both, .sbp = sbp::broadcast, .requires_grad = true})}};
    EXPECT_THROW(nn::parallel::GradientBuckets::make(parameters, 25, Site::here()),
                 InvalidArgument);
    EXPECT_THROW(nn::parallel::GradientBuckets::make({}, 0, Site::here()), InvalidArgument);
  });
}

}  // namespace
}  // namespace flow

// FLOW_CHECK=1 finds values that ranks should hold alike and do not.
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/loopback_ranks.h"

namespace flow {
namespace {

const Sbp kB = sbp::broadcast, kS0 = sbp::split(0);
const Placement kThree("cpu", {0, 1, 2}), kGrid("cpu", {{0, 1}, {2, 3}});

class CheckReplicas : public testing::Test {
 protected:
  void SetUp() override { setenv("FLOW_CHECK", "1", 1); }

  void TearDown() override { unsetenv("FLOW_CHECK"); }
};

TEST_F(CheckReplicas, DrawsAfterDifferentSeedsAreFound) {
  for (const auto run :
       {+[](int64_t n, const std::function<void()>&body) { run_ranks(n, body); },
        +[](int64_t n, const std::function<void()>&body) { run_loopback_ranks(n, body); }}) {
    run(3, [] {
      manual_seed(42);
      EXPECT_NO_THROW(randn({5}, {.placement = kThree, .sbp = kB}));

      manual_seed(static_cast<uint64_t>(42 + env::rank()));
      const std::string message =
          error_of<Error>([] { randn({5}, {.placement = kThree, .sbp = kB}); });

      EXPECT_NE(message.find("[normal] ranks 0 and 1 hold different values of (5,) float32"),
                std::string::npos)
          << message;
      EXPECT_NO_THROW(randn({5}, {.placement = kThree, .sbp = kS0}));  // no part is held twice
    });
  }
}

TEST_F(CheckReplicas, ResultsOfRankDependentDataAreFound) {
  run_ranks(3, [] {
    const Tensor x = ones({2, 3}, {.placement = kThree, .sbp = kB});
    if (env::rank() == 2) x.to_local().fill_(7);

    const std::string message = error_of<Error>([&] { static_cast<void>(x.t() * 2); });
    EXPECT_NE(message.find("[mul_scalar] ranks 0 and 2 hold"), std::string::npos) << message;
    EXPECT_EQ(error_of<Error>([&] { static_cast<void>(empty_like(x)); }), "no error");
  });
}

// Ranks 1 and 3 hold the same columns; only these two know of the difference.
TEST_F(CheckReplicas, PartsThatSomeRanksHoldAreCompared) {
  std::string of_rank[4];
  const auto body = [&] {
    try {
      const Tensor x = ones({4, 4}, {.placement = kGrid, .sbp = {kB, sbp::split(1)}});
      if (env::rank() == 3) x.to_local().fill_(7);
      static_cast<void>(relu(x));
      while (true)
        static_cast<void>(x.sum().item<float>());
    } catch (const Error& error) {
      of_rank[env::rank()] = error.what();
      throw;
    }
  };

  EXPECT_THROW(run_ranks(4, body), InvalidArgument);

  for (int rank = 0; rank < 4; ++rank)
    EXPECT_NE(of_rank[rank].find("[relu] ranks 1 and 3 hold different values"), std::string::npos)
        << rank << ": " << of_rank[rank];
}

TEST_F(CheckReplicas, WhatAGraphReturnsOrWritesIsCompared) {
  struct Scaled : nn::Graph<Scaled> {
    Tensor w;

    Tensor build(const Tensor& x) { return x * w; }
  };

  run_ranks(2, [] {
    const Placement pair("cpu", {0, 1});
    const TensorOptions options{.placement = pair, .sbp = kB};
    Scaled graph;
    graph.w = ones({3}, options);
    const Tensor x = ones({3}, options);
    EXPECT_NO_THROW(graph(x));

    if (env::rank() == 1) graph.w.to_local().fill_(7);

    EXPECT_NE(
        error_of<Error>([&] { graph(x); }).find("[graph] ranks 0 and 1 hold different values"),
        std::string::npos);
  });
}

}  // namespace
}  // namespace flow

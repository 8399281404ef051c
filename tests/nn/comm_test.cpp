#include "nn/comm.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/comm_work.h"
#include "nn/flow.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

// Every test runs on ranks that are threads, and on ranks that speak the protocol of processes.
class Comm : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, Comm, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, Comm, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, Comm, testing::Values(run_shared_memory_ranks));

TEST_P(Comm, OperationsGiveWhatTheirNamesSay) {
  run_on_ranks(3, [] {
    const auto mine = static_cast<float>(me());
    const Tensor x = tensor(Floats{mine, 10 * mine, 3, 4}, {4, 1});

    EXPECT_EQ(comm::all_reduce(x).to_vector<float>(), (Floats{3, 30, 9, 12}));
    EXPECT_EQ(comm::all_reduce(x, {.op = comm::Reduction::kMax}).to_vector<float>(),
              (Floats{2, 20, 3, 4}));
    EXPECT_EQ(comm::all_reduce(x, {.op = comm::Reduction::kMin}).to_vector<float>(),
              (Floats{0, 0, 3, 4}));
    EXPECT_EQ(comm::reduce(x, 1).to_vector<float>(),
              me() == 1 ? (Floats{3, 30, 9, 12}) : (Floats{0, 0, 0, 0}));
    const Floats parts[] = {{3, 30}, {9}, {12}};
    EXPECT_EQ(comm::reduce_scatter(x).to_vector<float>(), parts[me()]);
    EXPECT_EQ(comm::broadcast(x, 2).to_vector<float>(), (Floats{2, 20, 3, 4}));
    EXPECT_EQ(comm::scatter(x, 2).shape(), (Shape{me() == 0 ? 2 : 1, 1}));
    comm::barrier();
  });
}

TEST_P(Comm, CoalescedFormsTakeSeveralTensors) {
  run_on_ranks(2, [] {
    const auto own = static_cast<float>(me() + 1);
    const auto sums = comm::all_reduce_coalesced({full({2}, own), full({}, 2 * own)});
    EXPECT_EQ(sums[0].to_vector<float>(), (std::vector<float>{3, 3}));
    EXPECT_EQ(sums[1].item<float>(), 6);
    const auto rows = comm::all_gather_coalesced({full({1}, own), full({1}, -own)});
    EXPECT_EQ(rows[1].to_vector<float>(), (std::vector<float>{-1, -2}));
  });
}

TEST_P(Comm, SeedIsThatOfTheFirstRank) {
  run_on_ranks(2, [] {
    const PlacementGuard guard(Placement("cpu", {0, 1}), sbp::broadcast);
    const uint64_t drawn = seed();
    EXPECT_EQ(generator_state().seed, drawn);
    const Tensor seeds =
        comm::all_gather(full({1}, static_cast<int64_t>(drawn), {.dtype = int64, .device = "cpu"}));
    EXPECT_EQ(seeds.to_vector<int64_t>()[0], seeds.to_vector<int64_t>()[1]);
  });
}

TEST_P(Comm, RowsMayDifferBetweenRanks) {
  run_on_ranks(3, [] {
    const Tensor x = full({me(), 2}, static_cast<double>(me()));

    EXPECT_EQ(comm::all_gather(x).to_vector<float>(), (Floats{1, 1, 2, 2, 2, 2}));
    EXPECT_EQ(comm::gather(x, 1).shape(), (Shape{me() == 1 ? 3 : 0, 2}));
    // All rows go to rank 2.
    const Tensor y = comm::all_to_all(x, {.rows = {0, 0, me()}});
    EXPECT_EQ(y.to_vector<float>(), me() == 2 ? (Floats{1, 1, 2, 2, 2, 2}) : Floats{});
  });
}

TEST_P(Comm, GroupsAreListsOfRanks) {
  run_on_ranks(3, [] {
    if (me() == 1) return;
    const Tensor x = full({2}, static_cast<double>(me()));

    EXPECT_EQ(comm::all_gather(x, {.ranks = {2, 0}}).to_vector<float>(), (Floats{2, 2, 0, 0}));
    EXPECT_THROW(comm::broadcast(x, 1, {.ranks = {2, 0}}), InvalidArgument);
  });
}

// For a linear map A over all ranks: <A x, w> = <x, A' w>, both summed over the ranks.
TEST_P(Comm, GradientsAreThoseOfTheMapOverAllRanks) {
  using Map = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<std::string, Map>> maps = {
      {"all_reduce", [](const Tensor& x) { return comm::all_reduce(x); }},
      {"reduce", [](const Tensor& x) { return comm::reduce(x, 1); }},
      {"reduce_scatter", [](const Tensor& x) { return comm::reduce_scatter(x); }},
      {"all_gather", [](const Tensor& x) { return comm::all_gather(x.narrow(0, 0, 2 + me())); }},
      {"gather", [](const Tensor& x) { return comm::gather(x.narrow(0, 0, 2 + me()), 2); }},
      {"scatter", [](const Tensor& x) { return comm::scatter(x, 1); }},
      {"broadcast", [](const Tensor& x) { return comm::broadcast(x, 2); }},
      {"all_to_all",
       [](const Tensor& x) {
         return comm::all_to_all(x, {.rows = {2, me(), 3 - me()}});
       }},
  };
  run_on_ranks(3, [&] {
    for (const auto& [name, map] : maps) {
      const Tensor x = randn({5, 2}, {.dtype = float64, .requires_grad = true});
      const Tensor y = map(x);
      const Tensor w = randn(y.shape(), {.dtype = float64});
      const Tensor product = (y * w).sum();
      product.backward();
      const Tensor adjoint = (x.detach() * x.grad()).sum();

      const double left = comm::all_reduce(product.detach()).item<double>();
      const double right = comm::all_reduce(adjoint).item<double>();

      EXPECT_NEAR(left, right, 1e-9) << name;
      EXPECT_NE(left, 0) << name;
    }
  });
}

TEST_P(Comm, MaximaGiveTheirGradientToTheWinners) {
  run_on_ranks(2, [] {
    const Tensor x = me() == 0 ? tensor({5.F, 1.F, 2.F}) : tensor({3.F, 4.F, 2.F});
    x.requires_grad_();

    comm::all_reduce(x, {.op = comm::Reduction::kMax}).sum().backward();

    // Both ranks' losses hold each maximum.
    EXPECT_EQ(x.grad().to_vector<float>(), me() == 0 ? (Floats{2, 0, 1}) : (Floats{0, 2, 1}));
  });
}

TEST_P(Comm, MessagesAreSentWhileBothGoOn) {
  run_on_ranks(2, [] {
    const Tensor x = full({100, 300}, static_cast<double>(me() + 1));
    const Tensor y = zeros({100, 300});

    comm::Work receiving = comm::irecv(y, 1 - me());
    comm::Work sending = comm::isend(x, 1 - me());
    receiving.wait();
    sending.wait();

    EXPECT_EQ(y.max().item(), 2 - me());
    EXPECT_EQ(y.min().item(), 2 - me());
  });
}

// Each larger than what is buffered, so that it is on its way when the error comes.
TEST_P(Comm, WhatAnErrorDropsIsNotTakenForAnotherMessage) {
  run_on_ranks(2, [] {
    const Tensor x = full({100, 300}, 1.0), y = full({100, 300}, 2.0);
    if (me() == 1) {
      comm::Work first = comm::isend(x, 0, {.tag = 1});
      comm::Work second = comm::isend(y, 0, {.tag = 2});
      env::barrier();
      second.wait();
      try {
        first.wait();
      } catch (const DistributedError&) {  // it was dropped before it was asked for
      }
      return;
    }
    env::barrier();
    const Tensor dropped = zeros({100, 300}), received = zeros({100, 300});
    try {
      const comm::Work receiving = comm::irecv(dropped, 1, {.tag = 1});
      throw InvalidArgument("[test] something else");
    } catch (const InvalidArgument&) {
    }
    comm::recv(received, 1, {.tag = 2});
    EXPECT_EQ(received.min().item(), 2);
    EXPECT_EQ(received.max().item(), 2);
  });
}

// While more messages are unreceived than are buffered, and next to a large one.
TEST_P(Comm, WhatAnErrorDropsIsSentLater) {
  run_on_ranks(2, [] {
    constexpr int kMessages = 80;
    const Tensor small = full({15000}, 1.0), large = full({100, 300}, 2.0);
    if (me() == 0) {
      std::vector<comm::Work> sending;
      for (int i = 0; i < kMessages; ++i)
        sending.push_back(comm::isend(small, 1));
      const Tensor last = full({3}, 3.0);
      try {
        const comm::Work first = comm::isend(last, 1, {.tag = 1});
        const comm::Work second = comm::isend(large, 1, {.tag = 2});
        throw InvalidArgument("[test] something else");
      } catch (const InvalidArgument&) {
      }
      last.fill_(9.0);
      large.fill_(9.0);
      env::barrier();
      for (comm::Work& one : sending)
        one.wait();
      env::barrier();
      return;
    }
    env::barrier();
    for (int i = 0; i < kMessages; ++i)
      comm::recv(small, 0);
    const Tensor last = zeros({3});
    comm::recv(last, 0, {.tag = 1});
    comm::recv(large, 0, {.tag = 2});
    EXPECT_EQ(last.to_vector<float>(), (Floats{3, 3, 3}));
    EXPECT_EQ(large.min().item(), 2);
    EXPECT_EQ(large.max().item(), 2);
    env::barrier();
  });
}

struct Twice : nn::Module<Twice> {
  Tensor forward(const Tensor& x) { return 2 * x; }
};

struct Pipeline : nn::Graph<Pipeline> {
  Placement first{"cpu", {0}}, last{"cpu", {1}};
  Twice front, back;

  Pipeline() {
    nn::graph_module(front).set_stage(0, first);
    nn::graph_module(back).set_stage(1, last);
  }

  Tensor build(const Tensor& x) {
    return back(front(x).to_global({.placement = last, .sbp = sbp::broadcast}));
  }
};

// The first edge has tag 0, and the ranks of the edge are those of the world.
TEST_P(Comm, MessagesOfCompiledStepsAreKeptApart) {
  run_on_ranks(2, [] {
    Pipeline graph;
    const Tensor x = ones({3}, {.placement = graph.first, .sbp = sbp::broadcast});
    if (me() == 0) {
      comm::send(full({3}, 7.0), 1);
      graph(x);
      graph(x);
      comm::send(full({3}, 8.0), 1);
      return;
    }
    const Tensor first = zeros({3}), second = zeros({3});
    EXPECT_EQ(graph(x).to_local().to_vector<float>(), (Floats{4, 4, 4}));
    comm::recv(first, 0);
    EXPECT_EQ(first.to_vector<float>(), (Floats{7, 7, 7}));
    comm::Work receiving = comm::irecv(second, 0);
    EXPECT_EQ(graph(x).to_local().to_vector<float>(), (Floats{4, 4, 4}));
    receiving.wait();
    EXPECT_EQ(second.to_vector<float>(), (Floats{8, 8, 8}));
  });
}

TEST_P(Comm, AHandleThatGetsAnotherCallWaitsForTheFirst) {
  run_on_ranks(2, [] {
    const Tensor x = full({3}, 1.0), y = full({3}, 2.0);
    if (me() == 1) {
      env::barrier();
      comm::send(x, 0, {.tag = 1});
      comm::send(y, 0, {.tag = 2});
      return;
    }
    const Tensor first = zeros({3}), second = zeros({3});
    comm::Work receiving = comm::irecv(first, 1, {.tag = 1});
    env::barrier();
    receiving = comm::irecv(second, 1, {.tag = 2});
    EXPECT_EQ(first.to_vector<float>(), (Floats{1, 1, 1}));
    receiving.wait();
    EXPECT_EQ(second.to_vector<float>(), (Floats{2, 2, 2}));
  });
}

TEST_P(Comm, AsyncReductionsRunBesideBlockingOnes) {
  run_on_ranks(3, [] {
    std::vector<Tensor> buckets;
    std::vector<comm::Work> under_way;
    for (int64_t i = 0; i < 8; ++i) {
      buckets.push_back(full({1 + 1000 * i}, static_cast<double>(i + me())));
      under_way.push_back(comm::all_reduce_async_(buckets.back()));
      EXPECT_EQ(comm::all_reduce(full({2}, 1)).to_vector<float>(), (Floats{3, 3}));
    }
    for (comm::Work& work : under_way)
      work.wait();
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(buckets[static_cast<size_t>(i)].min().item(), 3 + 3 * i);
  });
}

TEST_P(Comm, AsyncFormsGiveWhatTheBlockingOnesGive) {
  run_on_ranks(3, [] {
    const auto mine = static_cast<float>(me());
    const Tensor x = tensor(Floats{mine, 10 * mine, 3, 4, 5, 6, mine, 8}, {4, 2});
    std::vector<comm::TensorWork> under_way;
    under_way.push_back(comm::all_reduce_async(x, {.op = comm::Reduction::kMax}));
    under_way.push_back(comm::reduce_async(x, 1));
    under_way.push_back(comm::reduce_scatter_async(x));
    under_way.push_back(comm::all_gather_async(x));
    under_way.push_back(comm::gather_async(x, 2));
    under_way.push_back(comm::scatter_async(x, 1));
    under_way.push_back(comm::broadcast_async(x, 2));
    under_way.push_back(comm::all_to_all_async(x, {.rows = {1, 1, 2}}));
    const std::vector<Tensor> expected = {comm::all_reduce(x, {.op = comm::Reduction::kMax}),
                                          comm::reduce(x, 1),
                                          comm::reduce_scatter(x),
                                          comm::all_gather(x),
                                          comm::gather(x, 2),
                                          comm::scatter(x, 1),
                                          comm::broadcast(x, 2),
                                          comm::all_to_all(x, {.rows = {1, 1, 2}})};

    for (size_t i = 0; i < expected.size(); ++i) {
      const Tensor result = under_way[i].wait();
      EXPECT_EQ(result.shape(), expected[i].shape()) << i;
      EXPECT_EQ(result.to_vector<float>(), expected[i].to_vector<float>()) << i;
    }
  });
}

TEST_P(Comm, AsyncErrorsComeWithWait) {
  const auto body = [] {
    const Tensor x = zeros({4 + me()});
    comm::Work work = comm::all_reduce_async_(x);
    try {
      work.wait();
      ADD_FAILURE() << "no error";
    } catch (const DistributedError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("float32 (4,)"), std::string::npos) << text;
      EXPECT_NE(text.find("float32 (5,)"), std::string::npos) << text;
      EXPECT_NE(text.find("comm_test.cpp"), std::string::npos) << text;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);
}

TEST_P(Comm, AFailedResultStaysFailed) {
  const auto body = [] {
    comm::TensorWork work = comm::all_reduce_async(zeros({4 + me()}));
    EXPECT_THROW(work.wait(), DistributedError);
    work.wait();
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);
}

// Backward must not use values that were received after the forward pass.
TEST_P(Comm, WritesCountAsWritesInPlace) {
  run_on_ranks(2, [] {
    const std::vector<std::function<void(const Tensor&)>> writes{
        [](const Tensor& x) { comm::all_reduce_async_(x).wait(); },
        [](const Tensor& x) { me() == 0 ? comm::send(x, 1) : comm::recv(x, 0); }};
    for (const auto& write : writes) {
      const Tensor w = ones({2}).requires_grad_(), x = full({2}, 2.0 + static_cast<double>(me()));
      const Tensor y = (w * x).sum();
      write(x);
      const bool is_sender = me() == 0 && &write != &writes[0];
      if (is_sender) {
        y.backward();
      } else {
        EXPECT_THROW(y.backward(), InvalidArgument);
      }
    }
  });
}

TEST_P(Comm, DifferentDtypesOfOneSizeAreRefused) {
  const auto body = [] { comm::all_gather(zeros({2}, {.dtype = me() == 0 ? float32 : int32})); };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);
}

TEST(CommArguments, ThatCannotWorkAreRefused) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor global = ones({2}, {.placement = both, .sbp = sbp::broadcast});

    EXPECT_THROW(comm::all_reduce(global), InvalidArgument);
    EXPECT_THROW(comm::all_gather(ones({})), InvalidArgument);
    EXPECT_THROW(comm::all_to_all(ones({3}), {.rows = {1, 1}}), InvalidArgument);
    EXPECT_THROW(comm::recv(ones({3}).requires_grad_(), 1), InvalidArgument);
    EXPECT_THROW(comm::broadcast(ones({3}), 2), InvalidArgument);
    EXPECT_THROW(comm::all_reduce(ones({3}), {.ranks = {0, 1, 1}}), InvalidArgument);
    EXPECT_THROW(static_cast<void>(comm::broadcast_async(ones({3}), 2)), InvalidArgument);
    EXPECT_THROW(static_cast<void>(comm::all_gather_async(ones({}))), InvalidArgument);
    EXPECT_THROW(static_cast<void>(comm::all_to_all_async(ones({3}), {.rows = {1, 1}})),
                 InvalidArgument);
  });
}

}  // namespace
}  // namespace flow

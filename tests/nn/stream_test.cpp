// Streams, batches of numbers and of tuples, and batch samplers.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "nn/flow.h"

namespace flow {
namespace {

using Longs = std::vector<int64_t>;

// first, first + 1, …, last - 1
struct Counter {
  using Sample = int64_t;
  int64_t first = 0, last = 0;

  auto stream() const {
    return
        [i = first, last = last]() mutable { return i < last ? std::optional(i++) : std::nullopt; };
  }
};

template <class D>
std::vector<Longs> batches_of(D dataset, const data::DataLoaderOptions& options) {
  data::DataLoader loader(std::move(dataset), options);
  std::vector<Longs> batches;
  for (const Tensor& batch : loader)
    batches.push_back(batch.to_vector<int64_t>());
  return batches;
}

TEST(Stream, IsReadInBatchesInEachPass) {
  const std::vector<Longs> all{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
  for (const int64_t workers : {0, 1}) {
    EXPECT_EQ(batches_of(Counter{0, 10}, {.batch_size = 4, .num_workers = workers}), all);
    EXPECT_EQ(
        batches_of(Counter{0, 10}, {.batch_size = 4, .num_workers = workers, .drop_last = true}),
        (std::vector<Longs>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_TRUE(batches_of(Counter{3, 3}, {.num_workers = workers}).empty());

    data::DataLoader loader(Counter{0, 8}, {.batch_size = 4, .num_workers = workers});
    for (int pass = 0; pass < 2; ++pass) {
      int64_t count = 0;
      for (const Tensor& batch : loader)
        count += batch.numel();
      EXPECT_EQ(count, 8);
      for ([[maybe_unused]] const Tensor& batch : loader)
        break;  // a pass may end early
    }
  }
}

TEST(Stream, ChainsGoOnWhereOneEnds) {
  const data::ChainDataset chain(std::vector<Counter>{{0, 3}, {5, 5}, {7, 9}});
  EXPECT_EQ(batches_of(chain, {.batch_size = 2}), (std::vector<Longs>{{0, 1}, {2, 7}, {8}}));
  EXPECT_EQ(batches_of(chain, {.batch_size = 8, .num_workers = 1}),
            (std::vector<Longs>{{0, 1, 2, 7, 8}}));
}

struct Noise {
  using Sample = std::pair<Tensor, int>;

  auto stream() const {
    return [i = 0]() mutable {
      return i < 5 ? std::optional(Sample{rand({2}), i++}) : std::nullopt;
    };
  }
};

TEST(Stream, DrawsDoNotDependOnTheThread) {
  std::vector<std::vector<float>> seen;
  for (const int64_t workers : {0, 1}) {
    manual_seed(3);
    std::vector<float> values;
    data::DataLoader loader(Noise(), {.batch_size = 2, .num_workers = workers});
    for (const auto& [x, label] : loader) {
      EXPECT_EQ(label.dtype(), int64);
      EXPECT_EQ(x.shape(), (Shape{label.numel(), 2}));
      const auto batch = x.to_vector<float>();
      values.insert(values.end(), batch.begin(), batch.end());
    }
    seen.push_back(values);
  }
  EXPECT_EQ(seen[0].size(), 10U);
  EXPECT_EQ(seen[0], seen[1]);
}

struct Broken {
  using Sample = int64_t;

  auto stream() const {
    return []() -> std::optional<int64_t> { throw IoError("the line is cut"); };
  }
};

TEST(Stream, ErrorsReachTheLoop) {
  for (const int64_t workers : {0, 1})
    EXPECT_THROW(batches_of(Broken(), {.num_workers = workers}), IoError);
  EXPECT_THROW(batches_of(Counter{0, 3}, {.shuffle = true}), InvalidArgument);
  EXPECT_THROW(batches_of(Counter{0, 3}, {.sampler = std::make_shared<data::SequentialSampler>(3)}),
               InvalidArgument);
  EXPECT_THROW(batches_of(Counter{0, 3}, {.num_workers = 2}), InvalidArgument);
  EXPECT_THROW(batches_of(Counter{0, 3}, {.batch_size = 0}), InvalidArgument);
  data::DataLoader loader{Counter{0, 3}};
  EXPECT_THROW(loader.state_dict(), Unsupported);
  EXPECT_THROW(loader.load_state_dict({}), Unsupported);
}

TEST(Stream, GlobalBatchesAreTheWholeStreams) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const PlacementGuard guard(both, sbp::broadcast);  // does not reach the stream
    for (const Sbp layout : {sbp::split(0), sbp::broadcast}) {
      data::DataLoader loader(Counter{0, 5}, {.batch_size = 3, .placement = both, .sbp = layout});
      std::vector<Longs> batches;
      for (const Tensor& batch : loader) {
        EXPECT_EQ(batch.sbp()[0], layout);
        batches.push_back(batch.to_vector<int64_t>());
      }
      EXPECT_EQ(batches, (std::vector<Longs>{{0, 1, 2}, {3, 4}}));
    }
  });
}

// ---- samples of numbers

struct Mixed {
  using Sample = std::tuple<Tensor, int, std::array<float, 2>, bool>;

  int64_t size() const { return 3; }

  Sample operator[](int64_t i) const {
    const auto x = static_cast<float>(i);
    return {full({2}, x), static_cast<int>(i), {x, -x}, i == 1};
  }
};

TEST(Collate, NumbersBecomeTensors) {
  data::DataLoader loader(Mixed(), {.batch_size = 3, .num_workers = 1});
  int64_t count = 0;
  for (const auto& [x, label, pair, flag] : loader) {
    EXPECT_EQ(x.shape(), (Shape{3, 2}));
    EXPECT_EQ(label.dtype(), int64);
    EXPECT_EQ(label.to_vector<int64_t>(), (Longs{0, 1, 2}));
    EXPECT_EQ(pair[0].dtype(), float32);
    EXPECT_EQ(pair[1].to_vector<float>(), (std::vector<float>{0, -1, -2}));
    EXPECT_EQ(flag.dtype(), bool_);
    EXPECT_EQ(flag.to_vector<int64_t>(), (Longs{0, 1, 0}));
    ++count;
  }
  EXPECT_EQ(count, 1);
  EXPECT_EQ(data::collate(std::vector<double>{1, 2}).dtype(), float64);
  EXPECT_EQ(data::collate(std::vector<uint8_t>{1, 2}).dtype(), uint8);
}

// A dataset need not name the type of its samples.
struct Halves {
  int64_t size() const { return 4; }

  double operator[](int64_t i) const { return 0.5 * static_cast<double>(i); }
};

TEST(Collate, SamplesAreWhatTheDatasetReturns) {
  const auto values = [](auto dataset) {
    std::vector<double> all;
    for (const Tensor& batch : data::DataLoader(dataset, {.batch_size = 2})) {
      for (const double value : batch.to_vector<double>())
        all.push_back(value);
    }
    return all;
  };

  EXPECT_EQ(values(Halves()), (std::vector<double>{0, 0.5, 1, 1.5}));
  EXPECT_EQ(values(data::Subset(Halves(), {3, 1})), (std::vector<double>{1.5, 0.5}));
  EXPECT_EQ(values(data::ConcatDataset(std::vector{Halves(), Halves()})).size(), 8U);
}

TEST(Collate, GlobalBatchesOfNumbersKeepTheirLayout) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    data::DataLoader loader(Mixed(), {.batch_size = 2, .placement = both, .sbp = sbp::split(0)});
    Longs labels;
    for (const auto& [x, label, pair, flag] : loader) {
      EXPECT_TRUE(x.is_global() && label.is_global() && pair[1].is_global() && flag.is_global());
      for (const int64_t value : label.to_vector<int64_t>())
        labels.push_back(value);
    }
    EXPECT_EQ(labels, (Longs{0, 1, 2}));
  });
}

// ---- batch samplers

struct Indices {
  using Sample = int64_t;
  int64_t count;

  int64_t size() const { return count; }

  int64_t operator[](int64_t i) const { return i; }
};

TEST(BatchSampler, PutsTheSamplesOfASamplerIntoBatches) {
  const auto order = std::make_shared<data::SequentialSampler>(7);
  const auto batches = [&](bool drop_last) {
    const auto sampler = std::make_shared<data::BatchSampler>(order, 3, drop_last);
    return batches_of(Indices{7}, {.batch_sampler = sampler});
  };
  EXPECT_EQ(batches(false), (std::vector<Longs>{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(batches(true), (std::vector<Longs>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(data::BatchSampler(order, 3).size(), 3);
  EXPECT_THROW(data::BatchSampler(order, 0), InvalidArgument);
  EXPECT_THROW(data::BatchSampler(nullptr, 2), InvalidArgument);
}

// Even samples, then odd ones.
class Parity final : public data::BatchSampler {
 public:
  int64_t size() const override { return 2; }

  std::vector<Longs> batches(const RandomStream& /*random*/) const override {
    return {{0, 2, 4, 6}, {1, 3, 5}};
  }
};

class Contradiction final : public data::BatchSampler {
 public:
  int64_t size() const override { return 3; }

  std::vector<Longs> batches(const RandomStream& /*random*/) const override { return {{0}}; }
};

TEST(BatchSampler, BatchesMayHaveAnySizes) {
  for (const int64_t workers : {0, 2}) {
    EXPECT_EQ(batches_of(Indices{7},
                         {.batch_sampler = std::make_shared<Parity>(), .num_workers = workers}),
              (std::vector<Longs>{{0, 2, 4, 6}, {1, 3, 5}}));
  }
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    EXPECT_EQ(batches_of(Indices{7}, {.batch_sampler = std::make_shared<Parity>(),
                                      .placement = both,
                                      .sbp = sbp::split(0)}),
              (std::vector<Longs>{{0, 2, 4, 6}, {1, 3, 5}}));
  });
}

TEST(BatchSampler, PassesResumeAtABatch) {
  const data::DataLoaderOptions options{.batch_sampler = std::make_shared<Parity>()};
  data::DataLoader loader(Indices{7}, options);
  auto at = loader.begin();
  EXPECT_EQ((*at).numel(), 4);
  data::DataLoader other(Indices{7}, options);
  other.load_state_dict(loader.state_dict());
  std::vector<Longs> rest;
  for (const Tensor& batch : other)
    rest.push_back(batch.to_vector<int64_t>());
  EXPECT_EQ(rest, (std::vector<Longs>{{1, 3, 5}}));
}

TEST(BatchSampler, ReplacesTheOtherOptions) {
  const auto parity = std::make_shared<Parity>();
  EXPECT_THROW(batches_of(Indices{7}, {.batch_size = 2, .batch_sampler = parity}), InvalidArgument);
  EXPECT_THROW(batches_of(Indices{7}, {.shuffle = true, .batch_sampler = parity}), InvalidArgument);
  EXPECT_THROW(batches_of(Indices{7}, {.batch_sampler = parity, .drop_last = true}),
               InvalidArgument);
  EXPECT_THROW(batches_of(Indices{7}, {.batch_sampler = std::make_shared<Contradiction>()}),
               InvalidArgument);
}

}  // namespace
}  // namespace flow

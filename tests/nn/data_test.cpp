#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow::data {
namespace {

constexpr RandomStream kStream{.seed = 5, .stream = 2};

TensorDataset<2> numbers(int64_t count) {
  const Tensor x = arange(count, {.dtype = int64});
  return TensorDataset(x.unsqueeze(1), x * int64_t{10});
}

// The second tensor of each batch that is left.
template <class Loader>
std::vector<std::vector<int64_t>> batches_of(Loader& loader, size_t at_most = 1000) {
  std::vector<std::vector<int64_t>> batches;
  for (auto [x, y] : loader) {
    batches.push_back(y.template to_vector<int64_t>());
    if (batches.size() == at_most) break;
  }
  return batches;
}

class DataFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  const TempFolder folder_;
};

TEST(TensorDataset, GivesRowsOneByOneAndAtOnce) {
  const auto set = numbers(4);
  EXPECT_EQ(set.size(), 4);
  const auto [x, y] = set[3];
  EXPECT_EQ(x.shape(), (Shape{1}));
  EXPECT_EQ(y.item<int64_t>(), 30);
  EXPECT_EQ(set.batch({2, 0})[1].to_vector<int64_t>(), (std::vector<int64_t>{20, 0}));
  EXPECT_THROW(set[4], InvalidArgument);
  EXPECT_THROW(TensorDataset(zeros({2}), zeros({3})), InvalidArgument);
}

TEST(RandomSplit, PartsAreDisjointAndWhole) {
  manual_seed(1);
  const auto parts = random_split(numbers(10), {0.5, 0.25, 0.25});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].size(), 6);  // what is left after rounding down goes one by one
  EXPECT_EQ(parts[1].size(), 2);
  EXPECT_EQ(parts[2].size(), 2);
  std::vector<int64_t> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.indices().begin(), part.indices().end());
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, sample_order(10, false, {}));
  EXPECT_EQ(parts[0][0][1].item<int64_t>(), parts[0].indices()[0] * 10);
  EXPECT_EQ(random_split(numbers(10), {7, 3})[1].size(), 3);
  EXPECT_THROW(random_split(numbers(10), {7, 2}), InvalidArgument);
}

TEST(RandomSplit, OneSampleMayHaveFractionsOrSizes) {
  for (const std::vector<double>& lengths : {std::vector{0.5, 0.5}, {1.0, 0.0}}) {
    const auto parts = random_split(numbers(1), lengths);
    EXPECT_EQ(parts[0].size(), 1);
    EXPECT_EQ(parts[1].size(), 0);
  }
}

TEST(Sampler, OrdersAreThoseOfTheirKind) {
  EXPECT_EQ(SequentialSampler(3).order(kStream), (std::vector<int64_t>{0, 1, 2}));
  auto twice = RandomSampler(4, {.num_samples = 6}).order(kStream);
  ASSERT_EQ(twice.size(), 6U);
  std::sort(twice.begin(), twice.begin() + 4);
  EXPECT_TRUE(std::equal(twice.begin(), twice.begin() + 4, sample_order(4, false, {}).begin()));
  auto some = SubsetRandomSampler({7, 3, 9}).order(kStream);
  std::sort(some.begin(), some.end());
  EXPECT_EQ(some, (std::vector<int64_t>{3, 7, 9}));
  const auto drawn = WeightedRandomSampler({0, 1, 0, 3}, 4000).order(kStream);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0) + std::count(drawn.begin(), drawn.end(), 2),
            0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 3)), 3000, 120);
  EXPECT_THROW(WeightedRandomSampler({0, 0}, 1), InvalidArgument);
  EXPECT_THROW(WeightedRandomSampler({1, std::numeric_limits<double>::infinity()}, 1),
               InvalidArgument);
}

TEST(DistributedSampler, RanksShareOneOrder) {
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const DistributedSampler sampler(7, {.num_replicas = 3, .rank = rank, .shuffle = false});
    EXPECT_EQ(sampler.size(), 3);
    const auto own = sampler.order(kStream);
    all.insert(all.end(), own.begin(), own.end());
  }
  EXPECT_EQ(all, (std::vector<int64_t>{0, 3, 6, 1, 4, 0, 2, 5, 1}));
  DistributedSampler sampler(50, {.num_replicas = 2, .rank = 0, .drop_last = true});
  const auto first = sampler.order(kStream);
  EXPECT_EQ(first, sampler.order({}));
  sampler.set_epoch(1);
  EXPECT_NE(first, sampler.order(kStream));
}

TEST(DataLoader, WorkersChangeNothing) {
  const auto run = [](int64_t num_workers) {
    manual_seed(3);
    DataLoader loader(numbers(23), {.batch_size = 4, .shuffle = true, .num_workers = num_workers});
    auto batches = batches_of(loader);
    for (auto& batch : batches_of(loader))
      batches.push_back(batch);
    return batches;
  };
  const auto plain = run(0);
  EXPECT_EQ(plain.size(), 12U);
  EXPECT_EQ(run(1), plain);
  EXPECT_EQ(run(3), plain);
}

TEST(DataLoader, GoesOnAfterAnyBatch) {
  for (const int64_t num_workers : {0, 2}) {
    const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .num_workers = num_workers};
    manual_seed(3);
    DataLoader whole(numbers(14), options);
    const auto all = batches_of(whole);
    const auto later = batches_of(whole);
    for (size_t taken = 1; taken < all.size(); ++taken) {
      manual_seed(3);
      DataLoader first(numbers(14), options);
      EXPECT_EQ(batches_of(first, taken).size(), taken);
      const nn::StateDict state = first.state_dict();
      DataLoader second(numbers(14), options);
      second.load_state_dict(state);
      const auto rest = batches_of(second);
      EXPECT_EQ(rest, std::vector(all.begin() + static_cast<ptrdiff_t>(taken), all.end()));
      EXPECT_EQ(batches_of(second), later) << "the pass after, from the generator's state";
    }
  }
}

// Draws several times, and more often for some samples.
std::array<Tensor, 2> noisy(std::array<Tensor, 2> sample) {
  Tensor noise = randint(1000, {1}) + bernoulli(full({1}, 0.5)).to(int64) * 1000;
  if (sample[1].item<int64_t>() % 3 == 0) noise = noise + randint(1000, {1}) * 10000;
  return {sample[0], noise.select(0, 0)};
}

TEST(DataLoader, TransformsDrawTheSameWithAnyNumberOfWorkers) {
  for (const bool shuffle : {false, true}) {
    const auto run = [&](int64_t num_workers) {
      manual_seed(3);
      DataLoader loader(Transformed(numbers(23), noisy),
                        {.batch_size = 4, .shuffle = shuffle, .num_workers = num_workers});
      auto batches = batches_of(loader);
      EXPECT_EQ(generator_state().next_stream, shuffle ? 1U : 0U) << "the program's draws go on";
      const auto second = batches_of(loader);
      EXPECT_NE(batches, second) << "every pass draws anew";
      batches.insert(batches.end(), second.begin(), second.end());
      return batches;
    };
    const auto plain = run(0);
    EXPECT_EQ(run(1), plain);
    EXPECT_EQ(run(4), plain);
  }
}

TEST(DataLoader, TransformsMakeTheDefaultDtypeWithAnyNumberOfWorkers) {
  const auto with_zeros = [](std::array<Tensor, 2> sample) {
    sample[1] = zeros({1});
    return sample;
  };
  set_default_dtype(float64);
  for (const int64_t num_workers : {0, 1}) {
    DataLoader loader(Transformed(numbers(2), with_zeros),
                      {.batch_size = 2, .num_workers = num_workers});
    for (const auto& [x, y] : loader)
      EXPECT_EQ(y.dtype(), float64) << num_workers << " workers";
  }
  set_default_dtype(float32);
}

TEST(DataLoader, TransformsOfASampleDoNotDependOnTheBatch) {
  const auto run = [](int64_t batch_size) {
    manual_seed(3);
    DataLoader loader(Transformed(numbers(12), noisy), {.batch_size = batch_size});
    std::vector<int64_t> all;
    for (const auto& batch : batches_of(loader))
      all.insert(all.end(), batch.begin(), batch.end());
    return all;
  };
  const auto single = run(1);
  EXPECT_EQ(run(5), single);
  EXPECT_NE(single[1], single[2]);
  manual_seed(4);
  DataLoader other(Transformed(numbers(12), noisy), {.batch_size = 12});
  EXPECT_NE(batches_of(other)[0], single) << "another seed";
}

TEST(DataLoader, TransformsGoOnAfterAnyBatch) {
  for (const int64_t num_workers : {0, 2}) {
    const DataLoaderOptions options{.batch_size = 3, .num_workers = num_workers};
    manual_seed(3);
    DataLoader whole(Transformed(numbers(10), noisy), options);
    batches_of(whole);
    const auto all = batches_of(whole);
    const auto later = batches_of(whole);
    for (size_t taken = 1; taken < all.size(); ++taken) {
      manual_seed(3);
      DataLoader first(Transformed(numbers(10), noisy), options);
      batches_of(first);
      EXPECT_EQ(batches_of(first, taken).size(), taken);
      const nn::StateDict state = first.state_dict();
      DataLoader second(Transformed(numbers(10), noisy), options);
      second.load_state_dict(state);
      EXPECT_EQ(batches_of(second),
                std::vector(all.begin() + static_cast<ptrdiff_t>(taken), all.end()));
      EXPECT_EQ(batches_of(second), later);
    }
  }
}

TEST(DataLoader, TransformsOfGlobalBatchesAreThoseOfOneRank) {
  manual_seed(3);
  DataLoader single(Transformed(numbers(9), noisy), {.batch_size = 5, .num_workers = 1});
  const auto expected = batches_of(single);
  run_ranks(2, [&] {
    manual_seed(3);
    DataLoader loader(
        Transformed(numbers(9), noisy),
        {.batch_size = 5, .placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    std::vector<std::vector<int64_t>> batches;
    for (const auto& batch : loader)
      batches.push_back(batch[1].full().to_vector<int64_t>());
    EXPECT_EQ(batches, expected);
  });
}

TEST(DataLoader, AnErrorOfAWorkerReachesTheLoop) {
  const auto fails = [](const std::array<Tensor, 2>& sample) {
    if (sample[1].item<int64_t>() == 50) throw InvalidArgument("[sample] five");
    return sample;
  };
  DataLoader loader(Transformed(numbers(8), fails), {.batch_size = 2, .num_workers = 2});
  EXPECT_EQ(batches_of(loader, 2).size(), 2U);
  EXPECT_THROW(batches_of(loader), InvalidArgument);
}

TEST(DataLoader, AFailedBatchStaysFailed) {
  const auto fails = [](const std::array<Tensor, 2>& sample) {
    if (sample[1].item<int64_t>() == 70) throw InvalidArgument("[sample] the last");
    return sample;
  };
  for (const int64_t num_workers : {0, 2}) {
    DataLoader loader(Transformed(numbers(8), fails), {.num_workers = num_workers});
    auto it = loader.begin();
    for (int i = 0; i < 7; ++i)
      ++it;
    EXPECT_THROW(*it, InvalidArgument);
    EXPECT_THROW(*it, InvalidArgument) << "instead of waiting for a batch that nobody makes";
    EXPECT_THROW(++it, InvalidArgument);
    EXPECT_EQ(loader.state_dict().at("pass").to_vector<int64_t>()[4], 7);
  }
}

TEST(DataLoader, AStateThatNoLoaderWroteIsRefused) {
  DataLoader loader(numbers(8), {.batch_size = 2});
  const auto state = [](int64_t has_pass, int64_t next_batch, int64_t epoch) {
    const std::vector<int64_t> pass{has_pass, 0, 0, 0, next_batch, epoch};
    return nn::StateDict{{"pass", tensor(pass, {6}, {.dtype = int64})}};
  };
  EXPECT_THROW(loader.load_state_dict(state(1, -3, 0)), InvalidArgument);
  EXPECT_THROW(loader.load_state_dict(state(1, 1, -2)), InvalidArgument);
  EXPECT_THROW(loader.load_state_dict(state(2, 1, 0)), InvalidArgument);
  EXPECT_EQ(batches_of(loader).size(), 4U);
}

TEST(DataLoader, ASamplerThatContradictsItselfIsRefused) {
  struct TooShort : Sampler {
    int64_t size() const override { return 6; }

    std::vector<int64_t> order(const RandomStream& /*random*/) const override { return {0, 1}; }
  };

  DataLoader loader(numbers(8), {.batch_size = 2, .sampler = std::make_shared<TooShort>()});
  EXPECT_THROW(batches_of(loader), InvalidArgument);
}

TEST(DataLoader, ASamplerDecidesTheOrder) {
  const auto sampler = std::make_shared<SubsetRandomSampler>(std::vector<int64_t>{4, 2, 7});
  DataLoader loader(numbers(8), {.batch_size = 2, .sampler = sampler});
  EXPECT_EQ(loader.num_batches(), 2);
  auto batches = batches_of(loader);
  std::vector<int64_t> all = batches[0];
  all.push_back(batches[1].at(0));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<int64_t>{20, 40, 70}));
  EXPECT_THROW(DataLoader(numbers(8), {.shuffle = true, .sampler = sampler}), InvalidArgument);
}

TEST(DataLoader, GlobalBatchesAreTheLogicalOnes) {
  manual_seed(4);
  std::vector<std::vector<int64_t>> shuffled;
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    manual_seed(4);
    for (const NdSbp& layout : {NdSbp(sbp::split(0)), NdSbp(sbp::broadcast)}) {
      DataLoader loader(numbers(7), {.batch_size = 3, .placement = both, .sbp = layout});
      std::vector<std::vector<int64_t>> batches;
      for (auto [x, y] : loader) {
        EXPECT_EQ(y.sbp(), layout);
        EXPECT_EQ(x.shape(), (Shape{y.size(0), 1}));
        batches.push_back(y.to_vector<int64_t>());
      }
      EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{0, 10, 20}, {30, 40, 50}, {60}}));
    }
    DataLoader loader(numbers(6), {.batch_size = 6,
                                   .shuffle = true,
                                   .num_workers = 1,
                                   .placement = both,
                                   .sbp = sbp::split(0)});
    const auto order = batches_of(loader);
    if (env::rank() == 0) shuffled = order;
  });
  ASSERT_EQ(shuffled.size(), 1U);
  std::sort(shuffled[0].begin(), shuffled[0].end());
  EXPECT_EQ(shuffled[0], (std::vector<int64_t>{0, 10, 20, 30, 40, 50}));
}

// A checkpoint has the state of rank 0.
TEST(DataLoader, RanksGoOnFromTheStateOfTheFirst) {
  run_ranks(2, [] {
    manual_seed(5);
    DataLoader loader(numbers(12), {.batch_size = 2, .shuffle = true});
    auto it = loader.begin();
    for (int i = 0; i < 2; ++i, ++it)
      static_cast<void>(*it);
    const Tensor state = comm::broadcast(loader.state_dict().at("pass"), 0);
    std::vector<std::vector<int64_t>> expected;
    for (; it != loader.end(); ++it)
      expected.push_back(std::get<1>(*it).to_vector<int64_t>());

    DataLoader resumed(numbers(12), {.batch_size = 2, .shuffle = true});
    resumed.load_state_dict({{"pass", state}});
    EXPECT_EQ(batches_of(resumed), expected);
  });
}

// Sample i is i².
struct Squares {
  int64_t size() const { return 5; }

  int64_t operator[](int64_t i) const { return i * i; }
};

TEST(DataLoader, APlacementGuardDoesNotReachTheDataset) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const PlacementGuard guard(both, sbp::broadcast);
    const Mnist digits(generate_digits(6, 1));
    for (const int64_t workers : {0, 2}) {
      const DataLoaderOptions options{
          .batch_size = 3, .num_workers = workers, .placement = both, .sbp = sbp::split(0)};
      DataLoader squares(Squares(), options);
      std::vector<int64_t> all;
      for (const Tensor& batch : squares) {
        EXPECT_EQ(batch.placement(), both);
        for (const int64_t square : batch.to_vector<int64_t>())
          all.push_back(square);
      }
      EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 4, 9, 16})) << workers << " workers";
      DataLoader images(digits, options);
      for (auto [x, y] : images)
        EXPECT_EQ(x.shape(), (Shape{3, 1, 28, 28}));
    }
  });
}

TEST(DataLoader, ADatasetOfGlobalTensorsIsRefused) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const TensorDataset whole(arange(8.0).to_global({.placement = both, .sbp = sbp::broadcast}));
    const auto squared = [](const auto& sample) { return square(sample[0]); };
    DataLoader rows_at_once(whole, {.batch_size = 4, .shuffle = true});
    DataLoader placed(Transformed(whole, squared),
                      {.batch_size = 4, .placement = both, .sbp = sbp::split(0)});
    EXPECT_THROW(*rows_at_once.begin(), InvalidArgument);
    EXPECT_THROW(*placed.begin(), InvalidArgument);
  });
}

TEST_F(DataFiles, Cifar10ReadsTheBinaryVersion) {
  std::string record(3073, '\0');
  record[0] = 7;
  record[1] = '\xff';
  record[3072] = 51;
  write("cifar-10-batches-bin/test_batch.bin", record + record);
  const Cifar10 set(folder_.path(), {.train = false});
  EXPECT_EQ(set.size(), 2);
  const auto [image, label] = set[1];
  EXPECT_EQ(image.shape(), (Shape{3, 32, 32}));
  EXPECT_EQ(label.item<int64_t>(), 7);
  EXPECT_EQ(image.select(0, 0).select(0, 0).select(0, 0).item<float>(), 1);
  EXPECT_FLOAT_EQ(image.sum().item<float>(), 1.2F);
  EXPECT_EQ(set.batch({0, 1}).first.shape(), (Shape{2, 3, 32, 32}));
  const PlacementGuard guard(Placement("cpu", {0}), sbp::broadcast);
  EXPECT_FALSE(Cifar10(folder_.path(), {.train = false})[1].first.is_global());
}

TEST_F(DataFiles, Cifar10NamesWhatIsMissingOrBroken) {
  try {
    const Cifar10 set(folder_.path());
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("data_batch_5.bin"), std::string::npos);
  }
  write("test_batch.bin", std::string(3072, '\0'));
  EXPECT_THROW(Cifar10(folder_.path(), {.train = false}), IoError);
  write("test_batch.bin", std::string(3073, '\x0a'));
  EXPECT_THROW(Cifar10(folder_.path(), {.train = false}), IoError);
}

TEST_F(DataFiles, TextAndTokensComeFromFiles) {
  write("b.txt", "cab");
  write("a.md", "bb");
  write("c.bin", "zz");
  const std::string text = read_text_files({folder_.path(), path("c.bin")});
  EXPECT_EQ(text, "bbcabzz");
  EXPECT_THROW(read_text_files({path("none")}), IoError);
  const CharVocabulary vocabulary(text);
  EXPECT_EQ(vocabulary.characters(), "abcz");
  EXPECT_EQ(vocabulary.encode("zac"), (std::vector<int64_t>{3, 0, 2}));
  EXPECT_EQ(vocabulary.decode({3, 0, 2}), "zac");
  EXPECT_THROW(vocabulary.encode("x"), InvalidArgument);
  EXPECT_THROW(vocabulary.decode({4}), InvalidArgument);
  write_tokens(path("t"), {1, 513, 65535});
  EXPECT_EQ(nn::read_text(path("t")), std::string("\x01\x00\x01\x02\xff\xff", 6));
  EXPECT_EQ(read_tokens(path("t")), (std::vector<int64_t>{1, 513, 65535}));
  EXPECT_THROW(read_tokens(path("t"), 4), IoError);
  EXPECT_THROW(write_tokens(path("t"), {65536}), InvalidArgument);
}

TEST(TokenDataset, TargetsAreOneTokenFurther) {
  const TokenDataset set({0, 1, 2, 3, 4, 5, 6}, 3);
  EXPECT_EQ(set.size(), 2);
  const auto [x, y] = set[1];
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(TokenDataset({0, 1, 2, 3, 4, 5, 6}, 3, {.stride = 1}).size(), 4);
  EXPECT_THROW(TokenDataset({0, 1}, 2), InvalidArgument);
}

}  // namespace
}  // namespace flow::data

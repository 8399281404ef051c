#include "nn/checkpoint_file.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

namespace fs = std::filesystem;

const Placement kPair("cpu", {0, 1});
const Placement kThree("cpu", {0, 1, 2});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;

Placement all_of(int ranks) {
  std::vector<int64_t> list;
  for (int rank = 0; rank < ranks; ++rank)
    list.push_back(rank);
  return Placement("cpu", list);
}

// 0, 1, 2, … times `factor`.
std::vector<double> numbers(int64_t count, double factor) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i) * factor);
  return values;
}

Tensor counting(const Shape& shape, double factor = 1) {
  return tensor(numbers(shape.numel(), factor), shape);
}

Tensor laid(const Shape& shape, double factor, const Placement& placement, const NdSbp& sbp) {
  return tensor(numbers(shape.numel(), factor), shape, {.placement = placement, .sbp = sbp});
}

class CheckpointFile : public testing::Test {
 protected:
  ~CheckpointFile() override { internal::set_file_event_hook(nullptr); }

  // Two ranks save {"w": 0, 1, … times `factor` in 5 rows of 3, "b": B}.
  void save_pair(int64_t step, double factor) const {
    run_ranks(2, [&] {
      CheckpointFolder(path_).save(
          step, {{"w", laid({5, 3}, factor, kPair, kS0)}, {"b", laid({3}, factor, kPair, kB)}});
    });
  }

  // The factor it was saved with; throws what reading throws.
  double factor_of_newest() const {
    const auto checkpoint = CheckpointFolder(path_).newest();
    const double factor = checkpoint->read("b").to_vector<double>()[1];
    EXPECT_EQ(checkpoint->read("w").to_vector<double>(), numbers(15, factor));
    return factor;
  }

  std::string step_folder(int64_t step) const { return str(path_, "/step-00000000", step); }

  const TempFolder temp_;
  const std::string path_ = temp_.file("checkpoints");
};

TEST_F(CheckpointFile, LoadsIntoAnyLayoutAndNumberOfRanks) {
  run_ranks(4, [&] {
    const StateDict tensors = {{"both", laid({5, 7}, 1, kGrid, {kS0, kS1})},
                               {"same dim twice", laid({7}, 2, kGrid, {kS0, kS0})},
                               {"one axis", laid({3, 2}, 3, kGrid, {kB, kS0})},
                               {"all", laid({4}, 4, kGrid, {kB, kB})},
                               {"some ranks", laid({1, 3}, 5, kPair, kS0)},
                               {"nothing", laid({0, 3}, 1, kPair, kS1)},
                               {"local", full({}, 7.0, {.dtype = bfloat16})}};
    CheckpointFolder(path_).save(12, tensors, {{"epoch", "3"}});
  });
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks(ranks, [&] {
      const auto checkpoint = CheckpointFolder(path_).newest();
      ASSERT_TRUE(checkpoint);
      EXPECT_EQ(checkpoint->step(), 12);
      EXPECT_EQ(checkpoint->world_size(), 4);
      EXPECT_EQ(checkpoint->metadata().at("epoch"), "3");
      EXPECT_EQ(checkpoint->names().size(), 7U);
      EXPECT_EQ(checkpoint->read("local").dtype(), bfloat16);
      EXPECT_EQ(checkpoint->read("local").item<float>(), 7);
      EXPECT_EQ(checkpoint->read("nothing").shape(), (Shape{0, 3}));
      const Placement world = all_of(ranks);
      const std::vector<std::pair<std::string, double>> factors = {
          {"both", 1}, {"same dim twice", 2}, {"one axis", 3}, {"all", 4}, {"some ranks", 5}};
      for (const auto& [name, factor] : factors) {
        const Shape shape = checkpoint->shape(name);
        const auto expected = numbers(shape.numel(), factor);
        EXPECT_EQ(checkpoint->read(name).to_vector<double>(), expected) << name;
        for (int64_t dim = -1; dim < shape.size(); ++dim) {
          const Sbp sbp = dim < 0 ? kB : sbp::split(dim);
          const Tensor read = checkpoint->read(name, {.placement = world, .sbp = sbp});
          EXPECT_EQ(read.sbp(), NdSbp(sbp));
          EXPECT_EQ(read.to_vector<double>(), expected) << name << ' ' << sbp;
        }
      }
    });
  }
}

TEST_F(CheckpointFile, ShardsAreSafetensorsWithoutReplicas) {
  save_pair(1, 1);

  const StateDict first = load_safetensors(step_folder(1) + "/rank-00000.safetensors");
  const StateDict second = load_safetensors(step_folder(1) + "/rank-00001.safetensors");

  EXPECT_EQ(first.size(), 2U);
  EXPECT_EQ(first.at("w[0:3, 0:3]").to_vector<double>(), numbers(9, 1));
  EXPECT_EQ(first.at("b").to_vector<double>(), numbers(3, 1));
  EXPECT_EQ(second.size(), 1U);
  EXPECT_EQ(second.at("w[3:5, 0:3]").shape(), (Shape{2, 3}));
}

TEST_F(CheckpointFile, OldOnesAreKeptByPolicy) {
  const CheckpointFolder folder(path_, {.keep_last = 2, .keep_every = 10});
  for (const int64_t step : {5, 10, 15, 20, 25, 30, 35})
    folder.save(step, {{"x", counting({2})}});
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{10, 20, 30, 35}));
  folder.save(30, {{"x", counting({2}, 9)}});
  EXPECT_EQ(folder.open(30).read("x").to_vector<double>(), numbers(2, 9)) << "replaced";
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{10, 20, 30, 35}));
  EXPECT_THROW(CheckpointFolder(path_, {.keep_last = -1}), InvalidArgument);
}

TEST_F(CheckpointFile, OtherNamesOfFoldersAreNoSteps) {
  const CheckpointFolder folder(path_, {.keep_last = 1});
  folder.save(7, {{"x", counting({2})}});
  fs::copy(step_folder(7), path_ + "/step-5", fs::copy_options::recursive);

  folder.save(8, {{"x", counting({2})}});

  EXPECT_EQ(folder.steps(), std::vector<int64_t>{8});
  EXPECT_TRUE(fs::exists(path_ + "/step-5"));
}

TEST_F(CheckpointFile, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  std::ofstream(path_) << "no folder";
  EXPECT_THROW(CheckpointFolder(path_).newest(), IoError);
}

TEST_F(CheckpointFile, TensorsThatWouldShareANameInAFileAreRefused) {
  run_ranks(2, [&] {
    const StateDict tensors = {{"w", laid({5, 3}, 1, kPair, kS0)},
                               {"w[0:3, 0:3]", counting({3, 3})}};
    EXPECT_THROW(CheckpointFolder(path_).save(1, tensors), IoError);
    EXPECT_FALSE(CheckpointFolder(path_).newest());
  });
}

TEST_F(CheckpointFile, RanksThatPassDifferentTensorsAreRefused) {
  const auto saved_with = [&](const std::function<StateDict()>& own) {
    std::string message;
    run_ranks(2, [&] {
      const std::string error = error_of<IoError>([&] { CheckpointFolder(path_).save(1, own()); });
      EXPECT_FALSE(CheckpointFolder(path_).newest());
      if (env::rank() == 0) message = error;
    });
    return message;
  };
  const Tensor none;
  const auto first_or_second = [](const Tensor& first, const Tensor& second) {
    StateDict tensors = {{"a", ones({2})}};
    const Tensor& own = env::rank() == 0 ? first : second;
    if (own.defined()) tensors.emplace("b", own);
    return tensors;
  };
  const auto expect = [&](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(saved_with([&] { return first_or_second(none, ones({3})); }),
         "about the tensor b: rank 0 does not have it, rank 1 has (3,) float32;");
  expect(saved_with([&] { return first_or_second(ones({3}), none); }),
         "about the tensor b: rank 0 has (3,) float32, rank 1 does not have it;");
  expect(saved_with([&] { return first_or_second(ones({3}), ones({2})); }),
         "about the tensor b: rank 0 has (3,) float32, rank 1 has (2,) float32;");
  expect(saved_with([&] { return first_or_second(ones({3}), ones({3}, {.dtype = int32})); }),
         "about the tensor b: rank 0 has (3,) float32, rank 1 has (3,) int32;");
}

TEST_F(CheckpointFile, APartialLayoutIsRefusedBecauseItsPartsWouldAddUp) {
  save_pair(1, 1);
  run_ranks(2, [&] {
    const Checkpoint checkpoint = CheckpointFolder(path_).open(1);
    const TensorOptions partial{.placement = kPair, .sbp = sbp::partial_sum};
    EXPECT_THROW(checkpoint.read("b", partial), InvalidArgument);
    const Tensor w = zeros({5, 3}, {.placement = kPair, .sbp = kB}), b = zeros({3}, partial);
    EXPECT_THROW(checkpoint.read_into({{"w", w}, {"b", b}}), InvalidArgument);
    EXPECT_EQ(w.to_vector<double>(), numbers(15, 0)) << "nothing was written";
  });
}

TEST_F(CheckpointFile, WhatDoesNotFitIsListedAndChangesNothing) {
  const CheckpointFolder folder(path_);
  EXPECT_FALSE(folder.newest());
  folder.save(1, {{"m.a", counting({2})}, {"m.b", counting({3})}, {"other", counting({1})}});
  const auto checkpoint = folder.open(1);
  const Tensor a = ones({2}, {.dtype = float64}), c = ones({2});

  const std::string message = error_of<Error>([&] {
    checkpoint.read_into({{"a", a}, {"c", c}}, "m.");
  });

  EXPECT_NE(message.find("\n  missing: m.c\n  unexpected: m.b\n"), std::string::npos) << message;
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 1}));
  const Tensor b = ones({3});
  checkpoint.read_into({{"a", a}, {"b", b}}, "m.");
  EXPECT_EQ(a.to_vector<double>(), numbers(2, 1));
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{0, 1, 2})) << "in the target's dtype";
  EXPECT_THROW(checkpoint.read("absent"), InvalidArgument);
  EXPECT_THROW(checkpoint.read("m.a", {.sbp = kB}), InvalidArgument);
  EXPECT_THROW(checkpoint.read("m.a", {.dtype = float32}), InvalidArgument);
  EXPECT_THROW(checkpoint.read("m.a", {.device = "cuda"}), InvalidArgument);
  EXPECT_THROW(folder.save(-1, {}), InvalidArgument);
  EXPECT_THROW(folder.open(7), IoError);
  run_ranks(2, [&] {
    EXPECT_THROW(folder.save(2, {{"p", ones({2}, {.placement = kPair, .sbp = sbp::partial_sum})}}),
                 InvalidArgument);
  });
}

// ---------------------------------------------------------------- faults

std::atomic<int> events_left{0};

void end_process_at_the_last_event(const char* /*event*/) {
  if (--events_left == 0) kill(getpid(), SIGKILL);
}

void fail_at_the_last_event(const char* event) {
  if (--events_left == 0) throw IoError(str("[file] injected at ", event));
}

TEST_F(CheckpointFile, AKillAtAnyPointLeavesTheOldOrTheNew) {
  int killed = 0, kept_old = 0;
  for (int event = 1;; ++event) {
    fs::remove_all(path_);
    save_pair(1, 1);
    const pid_t child = fork();
    if (child == 0) {
      events_left = event;
      internal::set_file_event_hook(end_process_at_the_last_event);
      save_pair(2, 10);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const double factor = factor_of_newest();
    EXPECT_TRUE(factor == 1 || factor == 10) << factor;
    if (WIFEXITED(status)) {
      EXPECT_EQ(factor, 10);
      break;
    }
    ++killed;
    kept_old += factor == 1;
    save_pair(3, 20);
    EXPECT_EQ(factor_of_newest(), 20) << "after a kill at event " << event;
    for (const auto& entry : fs::directory_iterator(path_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".saving")) << entry;
    }
  }
  EXPECT_GE(killed, 12);
  EXPECT_GE(kept_old, 10);
}

TEST_F(CheckpointFile, AFailureAtAnyPointReachesAllRanksAndLeavesNothingBehind) {
  save_pair(1, 1);
  for (int event = 1;; ++event) {
    events_left = event;
    internal::set_file_event_hook(fail_at_the_last_event);
    std::atomic<int> failed{0};
    run_ranks(2, [&] {
      const std::string message = error_of<Error>([&] {
        CheckpointFolder(path_).save(
            2, {{"w", laid({5, 3}, 10, kPair, kS0)}, {"b", laid({3}, 10, kPair, kB)}});
      });
      failed += message.find("injected at") != std::string::npos;
    });
    internal::set_file_event_hook(nullptr);
    const double factor = factor_of_newest();
    if (events_left > 0) {
      EXPECT_EQ(failed, 0);
      EXPECT_EQ(factor, 10);
      break;
    }
    EXPECT_EQ(failed, 2) << "both ranks learn of it, event " << event;
    for (const auto& entry : fs::directory_iterator(path_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".saving")) << entry;
    }
  }
}

void flip_bit(const std::string& path, uint64_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  const auto byte = static_cast<unsigned char>(file.get());
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(static_cast<char>(byte ^ (1U << (bit % 8))));
}

TEST_F(CheckpointFile, EveryFlippedBitIsFound) {
  save_pair(1, 1);
  for (const char* name :
       {"/manifest.json", "/rank-00000.safetensors", "/rank-00001.safetensors"}) {
    const std::string path = step_folder(1) + name;
    const uint64_t bits = fs::file_size(path) * 8;
    for (uint64_t bit = 0; bit < bits; bit += 11) {
      flip_bit(path, bit);
      bool is_found = false;
      try {
        factor_of_newest();
      } catch (const IoError&) {
        is_found = true;
      }
      EXPECT_TRUE(is_found) << name << " bit " << bit;
      flip_bit(path, bit);
    }
  }
  EXPECT_EQ(factor_of_newest(), 1);
}

TEST_F(CheckpointFile, TruncatedMissingAndForeignFilesAreRefused) {
  save_pair(1, 1);
  save_pair(2, 2);
  const std::string shard = step_folder(2) + "/rank-00001.safetensors";
  const std::string copy = path_ + "/copy";
  const auto refused = [&](const std::string& part) {
    const std::string message = error_of<Error>([&] { factor_of_newest(); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    fs::remove(shard);
    fs::copy_file(copy, shard);
    EXPECT_EQ(factor_of_newest(), 2);
  };
  fs::copy_file(shard, copy);
  for (const char* name : {"/manifest.json", "/rank-00000.safetensors"}) {
    const std::string path = step_folder(2) + name;
    const std::string whole = read_text(path);
    for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 64) {
      std::ofstream(path, std::ios::binary) << whole.substr(0, size);
      EXPECT_THROW(factor_of_newest(), IoError) << name << ' ' << size;
    }
    std::ofstream(path, std::ios::binary) << whole;
  }
  fs::remove(shard);
  EXPECT_EQ(factor_of_newest(), 1) << "the newest complete one";
  EXPECT_NE(error_of<Error>([&] { CheckpointFolder(path_).open(2); }).find("cannot open"),
            std::string::npos);
  fs::copy_file(copy, shard);
  fs::copy_file(step_folder(1) + "/rank-00001.safetensors", shard,
                fs::copy_options::overwrite_existing);
  refused("is damaged between bytes 0 and ");
  fs::remove(shard);
  fs::create_symlink(copy, shard);
  refused("does not belong to the checkpoint");
  std::ofstream(step_folder(2) + "/rank-00002.safetensors") << "x";
  EXPECT_THROW(factor_of_newest(), IoError);
}

TEST_F(CheckpointFile, NewestPassesOverIncompleteOnesAndNamesThem) {
  for (const int64_t step : {1, 2, 3})
    save_pair(step, static_cast<double>(step));
  fs::remove(step_folder(3) + "/manifest.json");
  fs::remove(step_folder(2) + "/rank-00000.safetensors");

  testing::internal::CaptureStderr();
  const double factor = factor_of_newest();
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_EQ(factor, 1);
  for (const char* word : {"step 1 is the newest complete", "step-000000003/manifest.json",
                           "step-000000002/rank-00000.safetensors"})
    EXPECT_NE(log.find(word), std::string::npos) << log;
  fs::remove(step_folder(1) + "/rank-00001.safetensors");
  const std::string message = error_of<Error>([&] { CheckpointFolder(path_).newest(); });
  EXPECT_NE(message.find("has no complete checkpoint"), std::string::npos) << message;
}

TEST_F(CheckpointFile, AnOpenedOneStaysReadableWhileOthersReplaceIt) {
  const CheckpointFolder folder(path_, {.keep_last = 1});
  const auto save = [&](int64_t step, double factor) {
    folder.save(step, {{"x", counting({100}, factor)}});
  };
  save(1, 1);
  std::optional<Checkpoint> removed = folder.open(1);
  save(2, 2);
  std::optional<Checkpoint> replaced = folder.open(2);
  save(2, 3);
  save(1, 4);
  save(3, 5);

  EXPECT_EQ(removed->read("x").to_vector<double>(), numbers(100, 1));
  EXPECT_EQ(replaced->read("x").to_vector<double>(), numbers(100, 2));
  EXPECT_EQ(folder.steps(), std::vector<int64_t>{3});
  removed.reset();
  replaced.reset();
  save(4, 6);
  for (const auto& entry : fs::directory_iterator(path_))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".saving")) << entry;
}

TEST_F(CheckpointFile, ReadersNextToKeepLastNeverFail) {
  const CheckpointFolder folder(path_, {.keep_last = 1});
  folder.save(0, {{"x", counting({100}, 1)}});
  const pid_t writer = fork();
  if (writer == 0) {
    for (int64_t step = 1; step <= 60; ++step)
      folder.save(step, {{"x", counting({100}, static_cast<double>(step + 1))}});
    _exit(0);
  }
  int status = 0;
  int64_t last = 0;
  while (waitpid(writer, &status, WNOHANG) == 0) {
    const auto checkpoint = folder.newest();
    ASSERT_TRUE(checkpoint);
    EXPECT_GE(checkpoint->step(), last);
    last = checkpoint->step();
    EXPECT_EQ(checkpoint->read("x").to_vector<double>(),
              numbers(100, static_cast<double>(last + 1)));
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.newest()->step(), 60);
}

TEST_F(CheckpointFile, ASecondJobIsRefused) {
  save_pair(1, 1);
  const FileLock other(path_ + "/.lock");
  run_ranks(2, [&] {
    const std::string message = error_of<Error>([&] {
      CheckpointFolder(path_).save(2, {{"x", counting({1})}});
    });
    EXPECT_NE(message.find("is locked by another job"), std::string::npos) << message;
  });
  EXPECT_EQ(CheckpointFolder(path_).steps(), std::vector<int64_t>{1});
}

// ---------------------------------------------------------------- training goes on

struct Trainer {
  models::Mlp model{{6, 8, 4}};
  std::unique_ptr<optim::AdamW> optimizer;

  explicit Trainer(const Placement& placement) {
    model.to(float64);
    if (placement.num_ranks() > 1) {
      model.to_global(placement, {{"fc1.*", kS0}, {"*", kB}});
    }
    optimizer = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = 0.01});
  }

  double step(const Placement& placement) {
    TensorOptions options{.dtype = float64};
    if (placement.num_ranks() > 1) {
      options.placement = placement;
      options.sbp = kS0;
    }
    const Tensor x = randn({9, 6}, options);
    const Tensor loss = square(dropout(model(x), {.p = 0.25}) - 1.0).mean();
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    return loss.item<double>();
  }
};

TEST_F(CheckpointFile, TwentyStepsResumeOnAnyNumberOfRanks) {
  std::vector<double> losses;
  run_ranks(4, [&] {
    const Placement world = all_of(4);
    manual_seed(5);
    Trainer trainer(world);
    for (int step = 0; step < 20; ++step) {
      if (step == 8) {
        CheckpointFolder(path_).save(step,
                                     joined({{"model", trainer.model.state_dict()},
                                             {"optimizer", trainer.optimizer->state_dict()}}));
      }
      const double loss = trainer.step(world);
      if (env::rank() == 0) losses.push_back(loss);
    }
  });
  for (const int ranks : {1, 2, 3, 8}) {
    run_ranks(ranks, [&] {
      const Placement world = all_of(ranks);
      manual_seed(99);
      Trainer trainer(world);
      const auto checkpoint = CheckpointFolder(path_).newest();
      checkpoint->read_into(trainer.model.state_dict(), "model.");
      trainer.optimizer->load_state_dict(checkpoint->read_all("optimizer."));
      set_generator_state(checkpoint->generator());
      for (size_t step = 8; step < 20; ++step) {
        EXPECT_NEAR(trainer.step(world), losses[step], 1e-12) << ranks << " ranks, step " << step;
      }
    });
  }
}

}  // namespace
}  // namespace flow::nn

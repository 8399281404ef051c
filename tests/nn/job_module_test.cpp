// Modules in job functions, and arrays in files.
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

constexpr int64_t kBatch = 12;
constexpr int64_t kClasses = 3;

using Variables = std::map<std::string, std::vector<double>>;

Array wave(const Shape& shape, double phase) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(phase + 0.7 * static_cast<double>(i * i % 1009));
  return {values, shape};
}

Array labels(int64_t count, int64_t first) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (first + static_cast<int64_t>(i) * 2) % kClasses;
  return {values, {count}};
}

// The rows of a device.
Array rows(const Array& whole, int64_t device, int64_t devices) {
  Shape shape = whole.shape();
  shape[0] /= devices;
  const auto bytes = static_cast<size_t>(shape.numel()) * dtype_size(whole.dtype());
  return Array::copy_of(whole.data() + static_cast<size_t>(device) * bytes, whole.dtype(), shape);
}

models::Mlp mlp() {
  models::Mlp model({6, 8, kClasses});
  model.to(float64);
  return model;
}

std::unique_ptr<optim::Optimizer> adamw(const std::vector<Tensor>& variables) {
  return std::make_unique<optim::AdamW>(variables, optim::AdamWOptions{.lr = 0.05});
}

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  Variables first, last;
};

Variables read_variables() {
  Variables values;
  for (const auto& [name, array] : job::variables())
    values[name] = array.to_vector<double>();
  return values;
}

// Loss, and norm of what the variables are updated with.
std::pair<job::Blob, job::Blob> step(const job::Blob& x, const job::Blob& y,
                                     const job::ModuleOptions& options) {
  auto model = job::get_module("net", mlp, options);
  const Tensor loss = cross_entropy(model(x), y);
  job::optimizer::Rule(adamw).minimize(loss);
  return {loss, nn::utils::clip_grad_norm_(model.parameters(), INFINITY)};
}

void begin(int64_t devices) {
  job::close();
  job::config::device_num("cpu", devices);
  job::config::manual_seed(5);
}

Trained consistent(int64_t devices, const job::ModuleOptions& options = {}) {
  begin(devices);
  auto train = job::global_function(
      {.type = "train"}, job::Placeholder({kBatch, 6}, float64), job::Placeholder({kBatch}, int64),
      [options](job::Blob x, job::Blob y) { return step(x, y, options); });
  job::CheckPoint().init();
  Trained result{.losses = {}, .norms = {}, .first = read_variables(), .last = {}};
  for (int64_t i = 0; i < 4; ++i) {
    const auto [loss, norm] = train(wave({kBatch, 6}, static_cast<double>(i)), labels(kBatch, i));
    result.losses.push_back(loss.to_vector<double>()[0]);
    result.norms.push_back(norm.to_vector<double>()[0]);
  }
  result.last = read_variables();
  return result;
}

Trained mirrored(int64_t devices) {
  begin(devices);
  auto train = job::global_function({.type = "train", .default_logical_view = job::mirrored_view()},
                                    job::ListPlaceholder({kBatch / devices, 6}, float64),
                                    job::ListPlaceholder({kBatch / devices}, int64),
                                    [](job::Blob x, job::Blob y) { return step(x, y, {}); });
  job::CheckPoint().init();
  Trained result{.losses = {}, .norms = {}, .first = read_variables(), .last = {}};
  for (int64_t i = 0; i < 4; ++i) {
    std::vector<Array> x, y;
    for (int64_t device = 0; device < devices; ++device) {
      x.push_back(rows(wave({kBatch, 6}, static_cast<double>(i)), device, devices));
      y.push_back(rows(labels(kBatch, i), device, devices));
    }
    const auto [losses, norms] = train(x, y);
    double loss = 0;
    for (const Array& own : losses)
      loss += own.to_vector<double>()[0] / static_cast<double>(devices);
    result.losses.push_back(loss);
    for (const Array& norm : norms)
      EXPECT_EQ(norm.to_vector<double>(), norms[0].to_vector<double>());
    result.norms.push_back(norms[0].to_vector<double>()[0]);
  }
  result.last = read_variables();
  return result;
}

// The same training as calls on one rank, from `first` on.
Trained by_hand(const Variables& first) {
  Trained result;
  job::close();
  run_ranks(1, [&] {
    models::Mlp model = mlp();
    nn::StateDict state;
    for (const auto& [name, tensor] : model.state_dict())
      state[name] = flow::tensor(first.at("net." + name), tensor.shape());
    model.load_state_dict(state);
    const auto optimizer = adamw(model.parameters());
    for (int64_t i = 0; i < 4; ++i) {
      const Array x = wave({kBatch, 6}, static_cast<double>(i));
      optimizer->zero_grad();
      const Tensor loss =
          cross_entropy(model(flow::tensor(x.to_vector<double>(), x.shape())),
                        flow::tensor(labels(kBatch, i).to_vector<int64_t>(), {kBatch}));
      loss.backward();
      result.losses.push_back(loss.item<double>());
      result.norms.push_back(
          nn::utils::clip_grad_norm_(model.parameters(), INFINITY).item<double>());
      optimizer->step();
    }
    for (const auto& [name, tensor] : model.state_dict())
      result.last["net." + name] = tensor.to_vector<double>();
  });
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-12) << "at " << i;
}

void expect_near(const Trained& got, const Trained& want) {
  expect_near(got.losses, want.losses);
  expect_near(got.norms, want.norms);
  ASSERT_EQ(got.last.size(), want.last.size());
  for (const auto& [name, values] : want.last)
    expect_near(got.last.at(name), values);
}

class JobModule : public ::testing::Test {
 protected:
  void TearDown() override { job::close(); }

  static void expect_error(const std::function<void()>& call, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
};

TEST_F(JobModule, TrainsAsTheSameModuleByHandInBothViews) {
  const Trained one = consistent(1);
  EXPECT_NE(one.losses.front(), one.losses.back());
  EXPECT_EQ(one.last.size(), 4U);
  const Trained expected = by_hand(one.first);
  expect_near(one, expected);
  expect_near(consistent(2), expected);
  expect_near(consistent(5), expected);  // uneven
  expect_near(mirrored(1), expected);
  expect_near(mirrored(3), expected);
}

TEST_F(JobModule, SplittingItChangesNothing) {
  const job::ModuleOptions split{.distribute = {{"fc1.*", sbp::split(0)},
                                                {"fc2.weight", sbp::split(1)},
                                                {"*", sbp::broadcast}}};
  expect_near(consistent(2, split), consistent(1));
}

struct Normed : nn::Module<Normed> {
  nn::Linear linear{register_module("linear", nn::Linear(6, kClasses))};
  nn::BatchNorm1d norm{register_module("norm", nn::BatchNorm1d(kClasses))};
  nn::Dropout dropout{register_module("dropout", nn::Dropout(0.5))};

  Tensor forward(const Tensor& x) { return dropout(norm(linear(x))); }
};

Normed normed() {
  Normed model;
  model.to(float64);
  return model;
}

// Running statistics are variables, and the module's mode is the function's.
TEST_F(JobModule, ModesAndBuffersAreThoseOfTheFunction) {
  begin(2);
  auto train = job::global_function({.type = "train"}, job::Placeholder({kBatch, 6}, float64),
                                    [](job::Blob x) {
                                      auto y = job::get_module("", normed)(x);
                                      job::optimizer::Rule(adamw).minimize(sum(y * y));
                                      return y;
                                    });
  auto predict = job::global_function({}, job::Placeholder({kBatch, 6}, float64),
                                      [](job::Blob x) { return job::get_module("", normed)(x); });
  const Array x = wave({kBatch, 6}, 1);
  job::CheckPoint().init();
  EXPECT_EQ(read_variables().at("norm.running_mean"), (std::vector<double>{0, 0, 0}));

  const auto dropped = train(x).to_vector<double>();

  EXPECT_NE(std::count(dropped.begin(), dropped.end(), 0.0), 0);
  const Variables after = read_variables();
  EXPECT_NE(after.at("norm.running_mean")[0], 0);
  const auto first = predict(x).to_vector<double>();
  EXPECT_EQ(std::count(first.begin(), first.end(), 0.0), 0) << "nothing is dropped";
  EXPECT_EQ(predict(x).to_vector<double>(), first);
  EXPECT_EQ(read_variables(), after);
  train(x);
  EXPECT_NE(read_variables().at("norm.running_mean"), after.at("norm.running_mean"));
}

TEST_F(JobModule, ACheckPointGoesOnWhereItWas) {
  const TempFolder folder;
  const std::string path = folder.file("job.safetensors");
  begin(2);
  auto train = job::global_function({.type = "train"}, job::Placeholder({kBatch, 6}, float64),
                                    job::Placeholder({kBatch}, int64),
                                    [](job::Blob x, job::Blob y) { return step(x, y, {}).first; });
  const Array x = wave({kBatch, 6}, 0), y = labels(kBatch, 0);
  train(x, y);
  job::CheckPoint().save(path);
  train(x, y);
  const auto expected = train(x, y).to_vector<double>();
  begin(3);
  job::CheckPoint().load(path);
  train(x, y);
  expect_near(train(x, y).to_vector<double>(), expected);
}

TEST_F(JobModule, WhatCannotBeIsRefused) {
  const Array x = wave({kBatch, 6}, 0);
  expect_error([] { job::get_module("net", mlp); }, "outside of a job function");
  const auto calling = [&](const auto& body) {
    job::close();
    job::global_function({}, job::Placeholder({kBatch, 6}, float64), body)(x);
  };
  expect_error(
      [&] {
        calling([](job::Blob b) {
          job::get_module("net", mlp);
          return job::get_module("net", normed)(b);
        });
      },
      "as another type");
  expect_error(
      [&] {
        calling([](job::Blob b) {
          job::get_variable("net.fc1.bias", {8},
                            {.dtype = float64, .initializer = job::constant(0)});
          return job::get_module("net", mlp)(b);
        });
      },
      "a variable named net.fc1.bias already exists");
  job::close();
  auto lists = job::global_function(
      {.default_logical_view = job::mirrored_view()}, job::ListPlaceholder({kBatch, 6}, float64),
      [](job::Blob b) {
        return job::get_module("net", mlp, {.distribute = {{"*", sbp::split(0)}}})(b);
      });
  expect_error([&] { lists({x}); }, "mirrored view");
}

TEST_F(JobModule, OfTheOtherViewIsRefused) {
  const Array x = wave({kBatch, 6}, 0);
  const auto call = [](job::Blob b) { return job::get_module("net", mlp)(b); };
  auto mirrored = job::global_function({.default_logical_view = job::mirrored_view()},
                                       job::ListPlaceholder({kBatch, 6}, float64), call);
  auto consistent = job::global_function({}, job::Placeholder({kBatch, 6}, float64), call);

  mirrored({x});
  expect_error([&] { consistent(x); }, "module net already exists in mirrored view");
  job::close();
  consistent(x);
  expect_error([&] { mirrored({x}); }, "received a request for it in mirrored view");
}

TEST(ArrayFile, ReadsWhatTensorsWroteAndBack) {
  const TempFolder folder;
  const std::string path = folder.file("arrays.safetensors");
  std::map<std::string, Array> arrays;
  arrays.emplace("a", Array(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}));
  arrays.emplace("b", Array(std::vector<int64_t>{7}, {}));
  arrays.emplace("none", Array(std::vector<float>{}, {0, 4}));
  save_arrays(path, arrays);
  run_ranks(1, [&] {
    const nn::StateDict tensors = nn::load_safetensors(path);
    EXPECT_EQ(tensors.at("a").to_vector<double>(), arrays.at("a").to_vector<double>());
    nn::save_safetensors(path, tensors);
  });
  const auto read = load_arrays(path);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read.at("a").shape(), Shape({2, 3}));
  EXPECT_EQ(read.at("a").to_vector<double>(), arrays.at("a").to_vector<double>());
  EXPECT_EQ(read.at("b").dtype(), int64);
  EXPECT_EQ(read.at("none").shape(), Shape({0, 4}));
  EXPECT_THROW(save_arrays(path, {{"__metadata__", Array()}}), InvalidArgument);
  std::filesystem::remove(path);
  EXPECT_THROW(load_arrays(path), IoError);
}

}  // namespace
}  // namespace flow

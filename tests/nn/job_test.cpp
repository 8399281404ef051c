// Job functions. Their caller is no rank, so what needs tensors here runs in run_ranks(1).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/temp_folder.h"

// That `statement` throws a `type` whose message has `text` in it.
#define EXPECT_ERROR(statement, type, text)                                               \
  do {                                                                                    \
    try {                                                                                 \
      static_cast<void>(statement);                                                       \
      ADD_FAILURE() << "nothing was thrown";                                              \
    } catch (const type& error) {                                                         \
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what(); \
    }                                                                                     \
  } while (false)

namespace flow {
namespace {

constexpr int64_t kBatch = 10;  // uneven over three devices
constexpr int64_t kClasses = 4;

// A number between -1 and 1 for each element.
Array wave(const Shape& shape, double phase) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(phase + 0.7 * static_cast<double>(i * i % 1009));
  return {values, shape};
}

Array labels_of(int64_t count, int64_t first) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>((first + static_cast<int64_t>(i) * 3) % kClasses);
  return {values, {count}};
}

std::vector<double> joined(const std::vector<Array>& arrays) {
  std::vector<double> all;
  for (const Array& array : arrays) {
    const auto values = array.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void expect_near(const std::vector<double>& values, const std::vector<double>& expected,
                 double tolerance = 1e-12) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance) << "at " << i;
}

struct MlpOptions {
  job::Distribute distribute = job::distribute::broadcast();
  bool drops = false;
  double momentum = 0.9;
};

job::Blob mlp_loss(const job::Blob& x, const job::Blob& y, const MlpOptions& options) {
  auto hidden = job::layers::dense(flow::reshape(x, {x.size(0), -1}), 12,
                                   {.activation = flow::relu,
                                    .kernel_initializer = job::truncated_normal(0.3),
                                    .name = "dense1"});
  if (options.drops) hidden = job::dropout(hidden, {.rate = 0.25});
  auto logits = job::layers::dense(hidden, kClasses,
                                   {.kernel_initializer = job::truncated_normal(0.3),
                                    .model_distribute = options.distribute,
                                    .name = "dense2"});
  auto loss = job::sparse_softmax_cross_entropy_with_logits(y, logits);
  job::optimizer::SGD(
      {.lr_scheduler = job::PiecewiseConstant({3}, {0.5, 0.1}), .momentum = options.momentum})
      .minimize(loss);
  return loss;
}

auto consistent_mlp(const MlpOptions& options = {}) {
  return job::global_function(
      {.type = "train"}, job::Placeholder({kBatch, 3, 2}, float64),
      job::Placeholder({kBatch}, int32),
      [options](job::Blob x, job::Blob y) { return mlp_loss(x, y, options); });
}

class Job : public ::testing::Test {
 protected:
  void TearDown() override { job::close(); }

  // Losses of every sample over `steps` steps on fresh devices.
  static std::vector<double> losses(int64_t devices, const MlpOptions& options, int64_t steps = 6) {
    job::close();
    job::config::device_num("cpu", devices);
    job::config::manual_seed(7);
    auto train = consistent_mlp(options);
    job::CheckPoint().init();
    std::vector<Array> all;
    for (int64_t step = 0; step < steps; ++step)
      all.push_back(
          train(wave({kBatch, 3, 2}, static_cast<double>(step)), labels_of(kBatch, step)));
    return joined(all);
  }
};

TEST_F(Job, ConsistentViewDoesNotDependOnTheDevices) {
  const std::vector<double> expected = losses(1, {.drops = true});

  EXPECT_LT(expected[50], expected[0] + 10);  // finite
  expect_near(losses(2, {.drops = true}), expected);
  expect_near(losses(3, {.drops = true}), expected);
}

TEST_F(Job, SplittingAModelChangesNothing) {
  const std::vector<double> expected = losses(1, {});

  expect_near(losses(2, {.distribute = job::distribute::split(0)}), expected);
  expect_near(losses(3, {.distribute = job::distribute::split(1)}), expected);
}

TEST_F(Job, AStepIsThatOfTheSameModelByHand) {
  job::config::device_num("cpu", 2);
  auto train = consistent_mlp({.momentum = 0});
  job::CheckPoint().init();
  const auto before = job::variables();
  const Array x = wave({kBatch, 3, 2}, 0.5), y = labels_of(kBatch, 1);

  const Array loss = train(x, y);

  const auto after = job::variables();
  std::vector<double> expected_loss;
  std::map<std::string, std::vector<double>> expected;
  job::close();
  run_ranks(1, [&] {
    std::map<std::string, Tensor> variables;
    for (const auto& [name, value] : before) {
      variables[name] = flow::tensor(value.to_vector<double>(), value.shape());
      variables[name].requires_grad_(true);
    }
    const Tensor hidden = relu(linear(flow::tensor(x.to_vector<double>(), {kBatch, 6}),
                                      variables["dense1-weight"], variables["dense1-bias"]));
    const Tensor logits = linear(hidden, variables["dense2-weight"], variables["dense2-bias"]);
    const Tensor losses = cross_entropy(logits, flow::tensor(y.to_vector<int64_t>(), {kBatch}),
                                        {.reduction = "none"});
    mean(losses).backward();
    expected_loss = losses.to_vector<double>();
    const NoGradGuard no_grad;
    for (const auto& [name, variable] : variables)
      expected[name] = (variable - 0.5 * variable.grad()).to_vector<double>();
  });
  expect_near(joined({loss}), expected_loss);
  ASSERT_EQ(after.size(), 4U);
  for (const auto& [name, value] : after)
    expect_near(value.to_vector<double>(), expected.at(name));
}

TEST_F(Job, MirroredViewAveragesGradients) {
  const std::vector<double> expected = losses(1, {});
  job::close();
  job::config::device_num("cpu", 2);
  job::config::manual_seed(7);
  auto train = job::global_function({.type = "train", .default_logical_view = job::mirrored_view()},
                                    job::ListPlaceholder({kBatch / 2, 3, 2}, float64),
                                    job::ListPlaceholder({kBatch / 2}, int32),
                                    [](job::Blob x, job::Blob y) { return mlp_loss(x, y, {}); });
  job::CheckPoint().init();

  std::vector<Array> all;
  for (int step = 0; step < 6; ++step) {
    const auto x = wave({kBatch, 3, 2}, step).to_vector<double>();
    const auto y = labels_of(kBatch, step).to_vector<int32_t>();
    const auto half = [](const auto& values, size_t part) {
      const size_t size = values.size() / 2;
      const auto begin = values.begin() + static_cast<ptrdiff_t>(part * size);
      return std::vector(begin, begin + static_cast<ptrdiff_t>(size));
    };
    const Shape shape{kBatch / 2, 3, 2};
    const std::vector<Array> loss =
        train({Array(half(x, 0), shape), Array(half(x, 1), shape)},
              {Array(half(y, 0), {kBatch / 2}), Array(half(y, 1), {kBatch / 2})});
    all.insert(all.end(), loss.begin(), loss.end());
  }

  expect_near(joined(all), expected);
}

job::Blob small_lenet(const job::Blob& images, bool scoped) {
  const auto init = job::truncated_normal(0.2);
  auto conv = job::layers::conv2d(
      images, 5, 3,
      {.padding = "SAME", .activation = flow::relu, .kernel_initializer = init, .name = "conv"});
  auto pool = job::max_pool2d(conv, {.ksize = 3, .strides = 2, .padding = "SAME"});
  auto flat = flow::reshape(pool, {pool.size(0), -1});
  const auto dense = [&](const job::Blob& x, int64_t units, const char* name) {
    return job::layers::dense(x, units, {.kernel_initializer = init, .name = name});
  };
  if (!scoped) return dense(dense(flat, 8, "hidden"), kClasses, "out");
  job::Blob hidden;
  {
    const auto scope = job::placement("cpu", "0:0");
    hidden = dense(flat, 8, "hidden");
  }
  const auto scope = job::placement("cpu", "0:1");
  return dense(hidden, kClasses, "out");
}

std::vector<double> lenet_losses(bool scoped) {
  job::close();
  job::config::device_num("cpu", 2);
  job::config::manual_seed(3);
  auto train = job::global_function(
      {.type = "train"}, job::Placeholder({kBatch, 1, 7, 6}, float64),
      job::Placeholder({kBatch}, int64), [scoped](job::Blob images, job::Blob labels) {
        auto loss =
            job::sparse_softmax_cross_entropy_with_logits(labels, small_lenet(images, scoped));
        job::optimizer::Adam({.lr_scheduler = job::PiecewiseConstant({}, {0.01})}).minimize(loss);
        return loss;
      });
  auto predict = job::global_function(
      {}, job::Placeholder({kBatch, 1, 7, 6}, float64),
      [scoped](job::Blob images) { return std::pair(small_lenet(images, scoped), images); });
  std::vector<Array> all;
  const Array images = wave({kBatch, 1, 7, 6}, 2);
  const Array labels(labels_of(kBatch, 0).to_vector<int64_t>(), {kBatch});
  for (int step = 0; step < 4; ++step)
    all.push_back(train(images, labels));
  const auto [logits, same] = predict(images);
  EXPECT_EQ(logits.shape(), Shape({kBatch, kClasses}));
  EXPECT_EQ(same.to_vector<double>(), images.to_vector<double>());
  all.push_back(logits);
  return joined(all);
}

TEST_F(Job, PlacementScopesMoveWorkAndChangeNothing) {
  expect_near(lenet_losses(true), lenet_losses(false));
}

TEST_F(Job, SamePoolingPadsTheEndFurther) {
  auto pool = job::global_function({}, job::Placeholder({1, 1, 1, 6}, float32), [](job::Blob x) {
    return job::max_pool2d(x, {.ksize = {1, 3}, .strides = {1, 2}, .padding = "SAME"});
  });

  const Array y = pool(Array(std::vector<float>{-5, -4, -3, -2, -1, -6}, {1, 1, 1, 6}));

  EXPECT_EQ(y.to_vector<float>(), std::vector<float>({-3, -1, -1}));
}

TEST_F(Job, DropoutDropsInTrainingOnly) {
  const auto drops = [](job::Blob x) { return job::dropout(x, {.rate = 0.5}); };
  auto predict = job::global_function({}, job::Placeholder({40}, float64), drops);
  auto train =
      job::global_function({.type = "train"}, job::Placeholder({40}, float64), [&](job::Blob x) {
        auto y = drops(x) * job::get_variable("scale", {40},
                                              {.dtype = float64, .initializer = job::constant(1)});
        job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {0.0})}).minimize(y);
        return y;
      });
  const std::vector<double> ones(40, 1.0);
  const Array x(ones, {40});

  EXPECT_EQ(predict(x).to_vector<double>(), ones);
  const std::vector<double> trained = train(x).to_vector<double>();
  EXPECT_GT(std::count(trained.begin(), trained.end(), 0.0), 0);
}

TEST_F(Job, SizesAndStridesOfWindowsAreChecked) {
  const Array x(std::vector<float>(6), {1, 1, 1, 6});
  for (const char* padding : {"SAME", "VALID"}) {
    const auto expect_refused = [&](const job::PoolOptions& options, const std::string& text) {
      auto pool = job::global_function({}, job::Placeholder({1, 1, 1, 6}, float32),
                                       [&](job::Blob b) { return job::max_pool2d(b, options); });
      EXPECT_ERROR(pool(x), InvalidArgument, text);
    };
    expect_refused({.strides = 0, .padding = padding},
                   "[max_pool2d] strides must be one or two numbers that are at least 1; "
                   "received (0,)");
    expect_refused({.strides = Ints(), .padding = padding}, "received ()");
    expect_refused({.strides = {1, 2, 3}, .padding = padding}, "received 3 numbers");
    expect_refused({.ksize = {2, -1}, .padding = padding}, "ksize must be one or two numbers");
    auto conv = job::global_function({}, job::Placeholder({1, 1, 1, 6}, float32), [&](job::Blob b) {
      return job::layers::conv2d(b, 1, 1, {.strides = {1, 0}, .padding = padding});
    });
    EXPECT_ERROR(conv(x), InvalidArgument, "[conv2d] strides must be one or two numbers");
  }
}

TEST_F(Job, ACheckPointGoesOnWhereItWas) {
  const TempFolder folder;
  const std::string path = folder.file("job.safetensors");
  job::config::device_num("cpu", 2);
  auto train = consistent_mlp({.drops = false});
  const Array x = wave({kBatch, 3, 2}, 0), y = labels_of(kBatch, 0);
  for (int step = 0; step < 2; ++step)
    train(x, y);
  job::CheckPoint().save(path);
  const std::vector<double> expected = joined({train(x, y), train(x, y), train(x, y)});
  job::close();
  job::config::device_num("cpu", 3);

  job::CheckPoint().load(path);

  expect_near(joined({train(x, y), train(x, y), train(x, y)}), expected);
}

// Checkpoints of functions that train or use one dense layer.
class JobCheckPoint : public Job {
 protected:
  static auto define_train(const std::string& layer = "layer") {
    return job::global_function(
        {.type = "train"}, job::Placeholder({kBatch, 3}, float64), [layer](job::Blob x) {
          const auto loss = flow::square(job::layers::dense(x, 2, {.name = layer}));
          job::optimizer::Rule([](const std::vector<Tensor>& variables) {
            return std::make_unique<optim::Adam>(variables, optim::AdamOptions{.lr = 0.1});
          }).minimize(loss);
          return loss;
        });
  }

  static auto define_predict() {
    return job::global_function({}, job::Placeholder({kBatch, 3}, float64), [](job::Blob x) {
      return job::layers::dense(x, 2, {.name = "layer"});
    });
  }

  template <class Train>
  static std::vector<double> take_steps(Train& train, int num_steps = 3) {
    std::vector<Array> losses;
    for (int step = 0; step < num_steps; ++step)
      losses.push_back(train(wave({kBatch, 3}, step)));
    return joined(losses);
  }

  const TempFolder folder_;
  const std::string path_ = folder_.file("job.safetensors");
};

TEST_F(JobCheckPoint, ContinuesATrainingBesideOtherFunctionsThanBefore) {
  std::vector<double> expected;
  {
    auto predict = define_predict();
    auto train = define_train();
    take_steps(train);
    job::CheckPoint().save(path_);
    expected = take_steps(train);
  }
  job::close();

  {
    auto train = define_train();
    job::CheckPoint().load(path_);
    expect_near(take_steps(train), expected);
  }
  job::close();
  auto train = define_train();
  auto predict = define_predict();
  job::CheckPoint().load(path_);
  expect_near(take_steps(train), expected);
}

TEST_F(JobCheckPoint, ContinuesAFunctionThatWasDefinedAgain) {
  std::vector<double> expected;
  {
    auto train = define_train();
    take_steps(train);
    job::CheckPoint().save(path_);
    expected = take_steps(train);
  }

  auto again = define_train();  // while the devices still run
  job::CheckPoint().load(path_);
  expect_near(take_steps(again), expected);
  job::close();
  job::CheckPoint().load(path_);
  expect_near(take_steps(again), expected);
}

TEST_F(JobCheckPoint, KnowsFunctionsByTheVariablesThatTheyUpdate) {
  std::vector<double> expected, expected_of_other;
  {
    auto train = define_train();
    auto other = define_train("other");
    take_steps(train), take_steps(other, 2);
    job::CheckPoint().save(path_);
    expected = take_steps(train), expected_of_other = take_steps(other);
  }
  job::close();

  auto other = define_train("other");
  auto train = define_train();
  job::CheckPoint().load(path_);
  expect_near(take_steps(train), expected);
  expect_near(take_steps(other), expected_of_other);
}

TEST_F(JobCheckPoint, OfOtherTrainingFunctionsIsRefusedBeforeAnythingIsLoaded) {
  auto train = define_train();
  take_steps(train);
  job::CheckPoint().save(path_);
  take_steps(train);
  auto second = define_train();
  const auto before = job::variables();

  EXPECT_ERROR(job::CheckPoint().load(path_), InvalidArgument,
               "cannot continue training function 0, which updates layer-weight, layer-bias: it "
               "has the state of 1 functions that update these variables, and 2 of the functions "
               "that exist do; define the same training functions");

  for (const auto& [name, value] : job::variables())
    EXPECT_EQ(value.to_vector<double>(), before.at(name).to_vector<double>()) << name;
}

TEST_F(JobCheckPoint, LeavesOutFunctionsWhoseErrorIsKnown) {
  auto train = define_train();
  auto wrong = job::global_function({}, job::Placeholder({kBatch, 3}, float64),
                                    [](job::Blob x) { return flow::matmul(x, x); });
  EXPECT_ERROR(wrong(wave({kBatch, 3}, 0)), InvalidArgument, "matmul");
  take_steps(train);

  EXPECT_EQ(job::variables().size(), 2U);
  job::CheckPoint().save(path_);
  const std::vector<double> expected = take_steps(train);
  job::CheckPoint().load(path_);
  expect_near(take_steps(train), expected);
  EXPECT_ERROR(wrong(wave({kBatch, 3}, 0)), InvalidArgument, "matmul");
}

TEST_F(JobCheckPoint, ThrowsTheErrorOfAFunctionThatHasNotRun) {
  auto wrong = job::global_function({}, job::Placeholder({kBatch, 3}, float64),
                                    [](job::Blob x) { return flow::matmul(x, x); });

  EXPECT_ERROR(job::CheckPoint().save(path_), InvalidArgument, "matmul");
}

TEST_F(JobCheckPoint, OfATrainingIsLoadedByAProgramThatOnlyPredicts) {
  const Array x = wave({kBatch, 3}, 0);
  std::vector<double> expected;
  {
    auto train = define_train();
    auto predict = define_predict();
    take_steps(train);
    job::CheckPoint().save(path_);
    expected = joined({predict(x)});
  }
  job::close();

  auto predict = define_predict();
  job::CheckPoint().load(path_);
  expect_near(joined({predict(x)}), expected);
}

TEST_F(Job, VariablesAreReadAndSetByName) {
  auto predict = job::global_function({}, job::Placeholder({2, 3}, float32), [](job::Blob x) {
    return job::layers::dense(x, 2, {.name = "layer"});
  });
  EXPECT_EQ(job::variables().at("layer-weight").shape(), Shape({2, 3}));

  job::load_variables({{"layer-weight", Array(std::vector<float>{1, 0, 0, 0, 1, 0}, {2, 3})},
                       {"layer-bias", Array(std::vector<float>{10, 20}, {2})}});

  const Array y = predict(Array(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>({11, 22, 14, 25}));
  EXPECT_ERROR(job::load_variables({{"other", Array(std::vector<float>{1}, {1})}}), InvalidArgument,
               "no function uses a variable named other");
  EXPECT_ERROR(job::load_variables({{"layer-bias", Array(std::vector<double>{1, 2}, {2})}}),
               InvalidArgument, "layer-bias is (2,) float32; received (2,) float64");
}

TEST_F(Job, ArgumentsAreCheckedBeforeAnythingRuns) {
  auto predict = job::global_function({}, job::Placeholder({2, 3}, float32),
                                      [](job::Blob x) { return flow::relu(x); });
  auto lists = job::global_function({.default_logical_view = job::mirrored_view()},
                                    job::ListPlaceholder({1}, float32),
                                    [](job::Blob x) { return flow::relu(x); });
  const Array one(std::vector<float>{1}, {1});

  EXPECT_ERROR(
      predict(wave({2, 3}, 0)), InvalidArgument,
      "argument 0 does not match its placeholder; received (2, 3) float64; give (2, 3) float32");
  EXPECT_ERROR(lists({one, one}), InvalidArgument,
               "has the wrong number of arrays; received 2 for 1 devices");
  EXPECT_ERROR(Array(std::vector<float>{1, 2}, {3}), InvalidArgument, "2 values for shape (3,)");
}

TEST_F(Job, FunctionsThatCannotBeAreRefused) {
  const auto relu_of = [](job::Blob x) { return flow::relu(x); };
  const job::Placeholder whole({2, 3}, float32);
  const job::ListPlaceholder list({2, 3}, float32);
  const Array x(std::vector<float>(6), {2, 3});
  const auto mirrored = job::mirrored_view();

  EXPECT_ERROR(job::global_function({.type = "test"}, whole, relu_of), InvalidArgument,
               "unknown type of global_function; received \"test\"");
  EXPECT_ERROR(job::global_function({.default_logical_view = mirrored}, whole, relu_of),
               InvalidArgument, "Placeholder cannot be used in mirrored view");
  EXPECT_ERROR(job::global_function({}, list, relu_of), InvalidArgument, "ListPlaceholder");
  EXPECT_ERROR(job::layers::dense(Tensor(), 2), InvalidArgument, "outside of a job function");
  EXPECT_ERROR(job::global_function({.type = "train"}, whole, relu_of)(x), InvalidArgument,
               "did not minimize anything");
  const auto minimizes = [](job::Blob b) {
    const auto y = job::layers::dense(b, 1);
    job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {1})}).minimize(y);
    return y;
  };
  EXPECT_ERROR(job::global_function({}, whole, minimizes)(x), InvalidArgument, "predict");
  const auto splits = [](job::Blob b) {
    return job::layers::dense(b, 2, {.model_distribute = job::distribute::split(0)});
  };
  EXPECT_ERROR(job::global_function({.default_logical_view = mirrored}, list, splits)({x}),
               InvalidArgument, "mirrored view");
  const auto elsewhere = [](job::Blob b) {
    const auto scope = job::placement("cpu", "0:5");
    return job::dropout(b);
  };
  EXPECT_ERROR(job::global_function({}, whole, elsewhere)(x), InvalidArgument,
               "received device 5 of 1");
  EXPECT_ERROR(job::optimizer::SGD({}), InvalidArgument, "no learning rate");
  EXPECT_ERROR(job::PiecewiseConstant({5, 5}, {1, 2, 3}), InvalidArgument, "ascending");
  EXPECT_ERROR(job::config::device_num("cpu", 2), InvalidArgument, "after the first job ran");
  EXPECT_ERROR(job::config::device_num("cuda", 2), Unsupported, "use \"cpu\"");
}

TEST_F(Job, ResultsOfTheOtherViewAreRefused) {
  job::config::device_num("cpu", 2);
  auto local = job::global_function({}, job::Placeholder({2, 3}, float32),
                                    [](job::Blob) { return flow::ones({2}); });
  auto global = job::global_function(
      {.default_logical_view = job::mirrored_view()}, job::ListPlaceholder({2}, float32),
      [](job::Blob x) {
        return x.to_global({.placement = Placement("cpu", {0, 1}), .sbp = sbp::partial_sum});
      });
  const Array x(std::vector<float>(6), {2, 3}), half(std::vector<float>{1, 2}, {2});

  EXPECT_ERROR(local(x), InvalidArgument,
               "returned the local blob (2,) float32 in consistent view");
  EXPECT_ERROR(global({half, half}), InvalidArgument, "returned the global blob (2,) float32");
}

TEST_F(Job, AnErrorOfAllDevicesLeavesThemRunning) {
  job::config::device_num("cpu", 2);
  auto wrong = job::global_function({}, job::Placeholder({2, 3}, float32),
                                    [](job::Blob x) { return flow::matmul(x, x); });
  auto right = job::global_function({}, job::Placeholder({2, 3}, float32),
                                    [](job::Blob x) { return flow::relu(x); });
  const Array x(std::vector<float>{-1, 2, -3, 4, -5, 6}, {2, 3});

  EXPECT_ERROR(wrong(x), InvalidArgument, "matmul");

  EXPECT_EQ(right(x).to_vector<float>(), std::vector<float>({0, 2, 0, 4, 0, 6}));
}

TEST_F(Job, AnErrorOfAllDevicesMayComeMuchLaterOnOne) {
  job::config::device_num("cpu", 2);
  auto wrong = job::global_function({}, job::Placeholder({2, 3}, float32), [](job::Blob x) {
    if (env::rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    return flow::matmul(x, x);
  });
  auto right = job::global_function({}, job::Placeholder({2, 3}, float32),
                                    [](job::Blob x) { return flow::relu(x); });
  const Array x(std::vector<float>{-1, 2, -3, 4, -5, 6}, {2, 3});

  EXPECT_ERROR(wrong(x), InvalidArgument, "matmul");

  EXPECT_EQ(right(x).to_vector<float>(), std::vector<float>({0, 2, 0, 4, 0, 6}));
}

TEST_F(Job, AnErrorOfOneDeviceEndsAllAndIsReported) {
  job::config::device_num("cpu", 2);
  {
    auto uneven = job::global_function({}, job::Placeholder({2, 3}, float32), [](job::Blob x) {
      if (env::rank() == 1) throw InvalidArgument("[test] planted on device 1");
      return flow::sum(x);
    });

    EXPECT_ERROR(uneven(Array(std::vector<float>(6), {2, 3})), InvalidArgument,
                 "planted on device 1");
  }

  EXPECT_ERROR(job::variables(), DistributedError, "call close()");
  job::close();
  EXPECT_TRUE(job::variables().empty());
}

TEST_F(Job, ARankCannotCallOne) {
  auto predict = job::global_function({}, job::Placeholder({1}, float32),
                                      [](job::Blob x) { return flow::relu(x); });
  const Array x(std::vector<float>{1}, {1});

  run_ranks(1, [&] {
    EXPECT_ERROR(predict(x), InvalidArgument, "has made tensors or called flow as a rank");
  });

  EXPECT_EQ(predict(x).to_vector<float>(), std::vector<float>{1});
}

TEST(JobSchedule, ValuesBeginAtBoundaries) {
  const job::PiecewiseConstant rate({2, 5}, {0.1, 0.2, 0.3});

  EXPECT_EQ(rate(0), 0.1);
  EXPECT_EQ(rate(1), 0.1);
  EXPECT_EQ(rate(2), 0.2);
  EXPECT_EQ(rate(4), 0.2);
  EXPECT_EQ(rate(5), 0.3);
}

}  // namespace
}  // namespace flow

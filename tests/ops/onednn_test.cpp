#include "ops/vendor/onednn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "core/error.h"
#include "tests/support/largest_difference.h"

namespace flow::ops {
namespace {

using Floats = std::vector<float>;

Floats random_floats(int64_t count) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  Floats values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return uniform(random); });
  return values;
}

// 64-byte aligned bytes of any content.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : data_(std::aligned_alloc(64, (bytes + 64) / 64 * 64)) {}

  void* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };

  std::unique_ptr<void, Free> data_;
};

Floats to_layout(const Floats& contiguous, const Shape& shape, const BlockedLayout* layout) {
  if (layout == nullptr) return contiguous;
  Floats result(layout->bytes / sizeof(float), std::nanf(""));
  const auto reorder = make_onednn(ReorderSpec{.shape = shape, .to = layout});
  const Scratch scratch(reorder->scratch_bytes());
  reorder->run(
      {.source = contiguous.data(), .destination = result.data(), .scratch = scratch.get()});
  return result;
}

Floats empty_in_layout(const Shape& shape, const BlockedLayout* layout) {
  const size_t count =
      layout != nullptr ? layout->bytes / sizeof(float) : static_cast<size_t>(shape.numel());
  return Floats(count, std::nanf(""));
}

Floats to_contiguous(const Floats& values, const Shape& shape, const BlockedLayout* layout) {
  if (layout == nullptr) return values;
  Floats result(static_cast<size_t>(shape.numel()));
  layout->to_strided(*layout, values.data(), result.data());
  return result;
}

struct Position {
  std::array<int64_t, 3> at{};
};

// Calls fn with every position of a window's output or kernel; unused dims have one position.
template <class Size, class Fn>
void for_each_position(int num_dims, const Size& size, const Fn& fn) {
  const auto limit = [&](int dim) { return dim < num_dims ? size(dim) : 1; };
  for (int64_t i = 0; i < limit(0); ++i) {
    for (int64_t j = 0; j < limit(1); ++j) {
      for (int64_t l = 0; l < limit(2); ++l)
        fn(Position{{i, j, l}});
    }
  }
}

// The input element under kernel position `k` of output position `o` as an offset in the spatial
// dims; -1 in the padding.
int64_t input_offset(const Window& window, const Position& o, const Position& k) {
  int64_t offset = 0;
  for (size_t d = 0; d < static_cast<size_t>(window.num_dims); ++d) {
    const int64_t at =
        o.at[d] * window.stride[d] + k.at[d] * window.dilation[d] - window.padding_begin[d];
    if (at < 0 || at >= window.in[d]) return -1;
    offset = offset * window.in[d] + at;
  }
  return offset;
}

// Calls fn(source index, weight index, destination index) for every multiply-add of a convolution.
template <class Fn>
void for_each_term(const ConvolutionSpec& spec, const Fn& fn) {
  const Window& w = spec.window;
  int64_t in_area = 1;
  for (int d = 0; d < w.num_dims; ++d)
    in_area *= w.in[static_cast<size_t>(d)];
  const int64_t in_group = spec.in_channels / spec.groups;
  const int64_t out_group = spec.out_channels / spec.groups;
  int64_t destination = 0;
  for (int64_t b = 0; b < spec.batch; ++b) {
    for (int64_t oc = 0; oc < spec.out_channels; ++oc) {
      for_each_position(
          w.num_dims, [&](int d) { return w.out(d); },
          [&](const Position& o) {
            for (int64_t ic = 0; ic < in_group; ++ic) {
              int64_t kernel_offset = 0;
              for_each_position(
                  w.num_dims, [&](int d) { return w.kernel[static_cast<size_t>(d)]; },
                  [&](const Position& k) {
                    const int64_t in = input_offset(w, o, k);
                    int64_t kernel_area = 1;
                    for (int d = 0; d < w.num_dims; ++d)
                      kernel_area *= w.kernel[static_cast<size_t>(d)];
                    const int64_t weight = (oc * in_group + ic) * kernel_area + kernel_offset++;
                    if (in < 0) return;
                    const int64_t source =
                        (b * spec.in_channels + oc / out_group * in_group + ic) * in_area + in;
                    fn(static_cast<size_t>(source), static_cast<size_t>(weight),
                       static_cast<size_t>(destination));
                  });
            }
            ++destination;
          });
    }
  }
}

struct ConvolutionCase {
  std::string name;
  ConvolutionSpec spec;
};

std::vector<ConvolutionCase> convolution_cases() {
  return {
      {"lenet",
       {.batch = 2,
        .in_channels = 1,
        .out_channels = 8,
        .window =
            {.in = {12, 12}, .kernel = {5, 5}, .padding_begin = {2, 2}, .padding_end = {2, 2}},
        .has_bias = true}},
      {"dense",
       {.batch = 2,
        .in_channels = 32,
        .out_channels = 16,
        .window = {.in = {9, 7}, .kernel = {3, 3}, .padding_begin = {1, 1}, .padding_end = {1, 1}},
        .has_bias = true}},
      {"odd channels, stride, uneven padding",
       {.batch = 3,
        .in_channels = 5,
        .out_channels = 7,
        .window = {.in = {10, 11},
                   .kernel = {3, 2},
                   .stride = {2, 3},
                   .padding_begin = {1, 0},
                   .padding_end = {2, 1}},
        .has_bias = true}},
      {"dilated",
       {.batch = 1,
        .in_channels = 16,
        .out_channels = 16,
        .window = {.in = {14, 14},
                   .kernel = {3, 3},
                   .dilation = {2, 3},
                   .padding_begin = {2, 3},
                   .padding_end = {2, 3}}}},
      {"depthwise",
       {.batch = 2,
        .in_channels = 24,
        .out_channels = 24,
        .groups = 24,
        .window =
            {.in = {8, 8}, .kernel = {3, 3}, .padding_begin = {1, 1}, .padding_end = {1, 1}}}},
      {"grouped",
       {.batch = 2,
        .in_channels = 12,
        .out_channels = 18,
        .groups = 3,
        .window = {.in = {6, 6}, .kernel = {3, 3}},
        .has_bias = true}},
      {"one dim",
       {.batch = 2,
        .in_channels = 6,
        .out_channels = 10,
        .window = {.num_dims = 1,
                   .in = {20},
                   .kernel = {4},
                   .stride = {2},
                   .padding_begin = {1},
                   .padding_end = {1}},
        .has_bias = true}},
      {"three dims",
       {.batch = 1,
        .in_channels = 4,
        .out_channels = 6,
        .window = {.num_dims = 3,
                   .in = {5, 6, 7},
                   .kernel = {3, 2, 3},
                   .padding_begin = {1, 0, 1},
                   .padding_end = {1, 1, 1}},
        .has_bias = true}},
  };
}

class OneDnnConvolution : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_onednn()) GTEST_SKIP() << onednn_description();
  }

  // Runs a pass on contiguous operands, reordering them to the layouts that the kernel needs and
  // back.
  static void run(const OneDnnKernel& kernel, const ConvolutionSpec& spec, Floats& source,
                  Floats& weights, Floats& bias, Floats& destination) {
    const bool writes_source = spec.pass == ConvolutionPass::kBackwardSource;
    const bool writes_weights = spec.pass == ConvolutionPass::kBackwardWeights;
    const bool writes_destination = spec.pass == ConvolutionPass::kForward;
    const auto prepare = [](bool written, const Floats& values, const Shape& shape,
                            const BlockedLayout* layout) {
      return written ? empty_in_layout(shape, layout) : to_layout(values, shape, layout);
    };
    Floats x = prepare(writes_source, source, spec.source_shape(), kernel.source());
    Floats w = prepare(writes_weights, weights, spec.weights_shape(), kernel.weights());
    Floats y =
        prepare(writes_destination, destination, spec.destination_shape(), kernel.destination());
    const Scratch scratch(kernel.scratch_bytes());

    kernel.run({.source = x.data(),
                .weights = w.data(),
                .bias = bias.data(),
                .destination = y.data(),
                .scratch = scratch.get()});

    if (writes_source) source = to_contiguous(x, spec.source_shape(), kernel.source());
    if (writes_weights) weights = to_contiguous(w, spec.weights_shape(), kernel.weights());
    if (writes_destination)
      destination = to_contiguous(y, spec.destination_shape(), kernel.destination());
  }

  static ConvolutionSpec with_plain_layouts(ConvolutionSpec spec) {
    spec.source = spec.weights = spec.destination = nullptr;
    return spec;
  }
};

TEST_F(OneDnnConvolution, ForwardEqualsTheSumOverTheWindow) {
  for (const auto& [name, any_spec] : convolution_cases()) {
    for (const ConvolutionSpec& spec : {any_spec, with_plain_layouts(any_spec)}) {
      Floats x = random_floats(spec.source_shape().numel());
      Floats w = random_floats(spec.weights_shape().numel());
      Floats bias = random_floats(spec.out_channels);
      Floats y;
      Floats expected(static_cast<size_t>(spec.destination_shape().numel()), 0.0F);
      const int64_t area = spec.destination_shape().numel() / (spec.batch * spec.out_channels);
      for (size_t i = 0; spec.has_bias && i < expected.size(); ++i) {
        expected[i] = bias[i / static_cast<size_t>(area) % bias.size()];
      }
      for_each_term(spec, [&](size_t s, size_t k, size_t d) { expected[d] += x[s] * w[k]; });

      run(*make_onednn(spec), spec, x, w, bias, y);

      EXPECT_LE(largest_difference(y, expected), 1e-4) << name;
    }
  }
}

TEST_F(OneDnnConvolution, BackwardSourceIsTheTransposeOfForward) {
  for (const auto& [name, any_spec] : convolution_cases()) {
    for (ConvolutionSpec spec : {any_spec, with_plain_layouts(any_spec)}) {
      spec.pass = ConvolutionPass::kBackwardSource;
      Floats w = random_floats(spec.weights_shape().numel());
      Floats dy = random_floats(spec.destination_shape().numel());
      Floats bias;
      Floats dx;
      Floats expected(static_cast<size_t>(spec.source_shape().numel()), 0.0F);
      for_each_term(spec, [&](size_t s, size_t k, size_t d) { expected[s] += dy[d] * w[k]; });

      run(*make_onednn(spec), spec, dx, w, bias, dy);

      EXPECT_LE(largest_difference(dx, expected), 1e-4) << name;
    }
  }
}

TEST_F(OneDnnConvolution, BackwardWeightsSumsOverBatchAndPositions) {
  for (const auto& [name, any_spec] : convolution_cases()) {
    for (ConvolutionSpec spec : {any_spec, with_plain_layouts(any_spec)}) {
      spec.pass = ConvolutionPass::kBackwardWeights;
      Floats x = random_floats(spec.source_shape().numel());
      Floats dy = random_floats(spec.destination_shape().numel());
      Floats dw;
      Floats db(static_cast<size_t>(spec.out_channels), std::nanf(""));
      Floats expected(static_cast<size_t>(spec.weights_shape().numel()), 0.0F);
      Floats expected_db(db.size(), 0.0F);
      const auto area =
          static_cast<size_t>(spec.destination_shape().numel() / (spec.batch * spec.out_channels));
      for_each_term(spec, [&](size_t s, size_t k, size_t d) { expected[k] += x[s] * dy[d]; });
      for (size_t i = 0; i < dy.size(); ++i)
        expected_db[i / area % db.size()] += dy[i];

      run(*make_onednn(spec), spec, x, dw, db, dy);

      EXPECT_LE(largest_difference(dw, expected), 3e-4) << name;
      if (spec.has_bias) {
        EXPECT_LE(largest_difference(db, expected_db), 3e-4) << name;
      }
    }
  }
}

TEST_F(OneDnnConvolution, BackwardSourceWithSwappedRolesIsATransposedConvolution) {
  // A transposed convolution of (1, 1, 2) with kernel (1, 2, 3), stride 2: y[2 i + k] += x[i] *
  // w[k].
  const ConvolutionSpec spec{.pass = ConvolutionPass::kBackwardSource,
                             .window = {.num_dims = 1, .in = {5}, .kernel = {3}, .stride = {2}},
                             .source = nullptr,
                             .weights = nullptr,
                             .destination = nullptr};
  Floats x{10, 100};
  Floats w{1, 2, 3};
  Floats bias;
  Floats y;

  run(*make_onednn(spec), spec, y, w, bias, x);

  EXPECT_EQ(y, (Floats{10, 20, 130, 200, 300}));
}

TEST_F(OneDnnConvolution, OneKernelRunsOnSeveralThreads) {
  const ConvolutionSpec spec = with_plain_layouts(convolution_cases()[1].spec);
  const auto kernel = make_onednn(spec);
  Floats w = random_floats(spec.weights_shape().numel());
  std::array<Floats, 4> results;

  {
    std::vector<std::jthread> threads;
    for (Floats& y : results) {
      threads.emplace_back([&spec, &kernel, w, &y]() mutable {
        Floats x = random_floats(spec.source_shape().numel());
        Floats bias(static_cast<size_t>(spec.out_channels), 0.5F);
        for (int i = 0; i < 20; ++i)
          run(*kernel, spec, x, w, bias, y);
      });
    }
  }

  for (const Floats& y : results)
    EXPECT_EQ(y, results[0]);
}

TEST_F(OneDnnConvolution, WindowThatDoesNotFitThrowsUnsupported) {
  ConvolutionSpec spec{.window = {.in = {4, 4}, .kernel = {6, 6}}};

  EXPECT_THROW(make_onednn(spec), Unsupported);
}

class OneDnnLayout : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_onednn()) GTEST_SKIP() << onednn_description();
  }

  // A layout that is not contiguous: the weights of a dense convolution.
  static const BlockedLayout* blocked_weights(const ConvolutionSpec& spec) {
    return make_onednn(spec)->weights();
  }

  const ConvolutionSpec spec_ = convolution_cases()[1].spec;
};

TEST_F(OneDnnLayout, EqualContentIsOneObject) {
  const BlockedLayout* layout = blocked_weights(spec_);

  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(blocked_weights(spec_), layout);
  EXPECT_NE(std::string(layout->name).find_first_of("ABCD"), std::string::npos) << layout->name;
}

TEST_F(OneDnnLayout, ReorderThereAndBackKeepsEveryElement) {
  const BlockedLayout* layout = blocked_weights(spec_);
  const Floats values = random_floats(spec_.weights_shape().numel());

  const Floats blocked = to_layout(values, spec_.weights_shape(), layout);

  EXPECT_NE(blocked, values);
  EXPECT_EQ(to_contiguous(blocked, spec_.weights_shape(), layout), values);
}

TEST_F(OneDnnLayout, UseForAnotherShapeIsAnInternalError) {
  const BlockedLayout* layout = blocked_weights(spec_);

  EXPECT_THROW(make_onednn(ReorderSpec{.shape = {2, 2}, .from = layout}), InternalError);
}

// A program may meet new image sizes as long as it runs.
TEST_F(OneDnnLayout, ToStridedKeepsNoKernelForEachShape) {
  const BlockedLayout* layout = make_onednn(convolution_cases()[1].spec)->destination();
  if (layout == nullptr) GTEST_SKIP() << "convolutions use the plain layout here";
  const auto read_shapes = [&](int64_t first, int64_t last) {
    for (int64_t width = first; width < last; ++width) {
      const Shape shape{1, 16, 1, width};
      const BlockedLayout* like = layout_like(layout, shape).value();
      to_contiguous(Floats(like->bytes / sizeof(float)), shape, like);
    }
  };
  constexpr int64_t kShapes = 2000;
  read_shapes(2, 2 + kShapes);
  const size_t before = mallinfo2().uordblks;
  read_shapes(2 + kShapes, 2 + 2 * kShapes);
  const size_t after = mallinfo2().uordblks;
  EXPECT_LT(after, before + 3000 * kShapes);  // the layouts themselves take 1 KB
}

class OneDnnPooling : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_onednn()) GTEST_SKIP() << onednn_description();
  }
};

TEST_F(OneDnnPooling, MaxGivesItsGradientToTheLargestElement) {
  PoolingSpec spec{.window = {.in = {2, 4}, .kernel = {2, 2}, .stride = {2, 2}}};
  const Floats x{1, 5, 2, 3, 4, 0, 9, 7};
  Floats y(2);
  const auto forward = make_onednn(spec);
  const Scratch scratch(forward->scratch_bytes());
  const Scratch workspace(forward->workspace_bytes());

  forward->run({.source = x.data(),
                .destination = y.data(),
                .workspace = workspace.get(),
                .scratch = scratch.get()});

  EXPECT_EQ(y, (Floats{5, 9}));

  spec.pass = PoolingPass::kBackward;
  const Floats dy{10, 20};
  Floats dx(8, std::nanf(""));
  const auto backward = make_onednn(spec);
  const Scratch backward_scratch(backward->scratch_bytes());

  backward->run({.source = dx.data(),
                 .destination = dy.data(),
                 .workspace = workspace.get(),
                 .scratch = backward_scratch.get()});

  EXPECT_EQ(dx, (Floats{0, 10, 0, 0, 0, 0, 20, 0}));
}

TEST_F(OneDnnPooling, MeanCountsThePaddingOrNot) {
  PoolingSpec spec{.window = {.num_dims = 1,
                              .in = {4},
                              .kernel = {3},
                              .stride = {3},
                              .padding_begin = {1},
                              .padding_end = {1}}};
  const Floats x{3, 6, 9, 12};
  for (const auto& [mode, expected_y, expected_dx] :
       {std::tuple{PoolingMode::kMeanWithPadding, Floats{3, 7}, Floats{1, 1, 2, 2}},
        std::tuple{PoolingMode::kMeanWithoutPadding, Floats{4.5, 10.5}, Floats{1.5, 1.5, 3, 3}}}) {
    spec.mode = mode;
    spec.pass = PoolingPass::kForward;
    Floats y(2);
    const auto forward = make_onednn(spec);
    const Scratch scratch(forward->scratch_bytes());
    forward->run({.source = x.data(), .destination = y.data(), .scratch = scratch.get()});
    EXPECT_EQ(y, expected_y);

    spec.pass = PoolingPass::kBackward;
    const Floats dy{3, 6};
    Floats dx(4);
    const auto backward = make_onednn(spec);
    const Scratch backward_scratch(backward->scratch_bytes());
    backward->run(
        {.source = dx.data(), .destination = dy.data(), .scratch = backward_scratch.get()});
    EXPECT_EQ(dx, expected_dx);
  }
}

TEST(OneDnnRelu, WorksInABlockedLayout) {
  if (!has_onednn()) GTEST_SKIP() << onednn_description();
  const ConvolutionSpec convolution = convolution_cases()[1].spec;
  const Shape shape = convolution.weights_shape();
  const BlockedLayout* layout = make_onednn(convolution)->weights();
  const Floats x = random_floats(shape.numel());
  const Floats blocked_x = to_layout(x, shape, layout);
  const Floats blocked_dy = to_layout(Floats(x.size(), 2.0F), shape, layout);
  Floats y = empty_in_layout(shape, layout);
  Floats dx = empty_in_layout(shape, layout);
  Floats expected_y = x;
  Floats expected_dx = x;
  for (float& value : expected_y)
    value = std::max(value, 0.0F);
  for (float& value : expected_dx)
    value = value > 0.0F ? 2.0F : 0.0F;

  make_onednn(ReluSpec{.shape = shape, .layout = layout})
      ->run({.source = blocked_x.data(), .destination = y.data()});
  make_onednn(ReluSpec{.pass = ReluPass::kBackward, .shape = shape, .layout = layout})
      ->run({.source = dx.data(), .destination = blocked_dy.data(), .data = blocked_x.data()});

  EXPECT_EQ(to_contiguous(y, shape, layout), expected_y);
  EXPECT_EQ(to_contiguous(dx, shape, layout), expected_dx);
}

}  // namespace
}  // namespace flow::ops

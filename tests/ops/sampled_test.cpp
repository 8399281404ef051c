// Windows, histograms, numeric derivatives and decompositions of low rank.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "core/generator.h"
#include "ops/conv/conv.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/creation/windows.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/index/embedding.h"
#include "ops/index/histogram.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/selection.h"
#include "ops/linalg/low_rank.h"
#include "ops/linear/grouped_mm.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/differences.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

const TensorOptions kWide = {.dtype = float64};

void expect_near(const Tensor& x, const std::vector<double>& expected) {
  const auto values = x.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-14) << "element " << i;
}

// PyTorch's values.
TEST(Windows, KaiserRisesFromItsEndsToOne) {
  expect_near(kaiser_window(5, {}, kWide),
              {5.2773441320097665e-05, 0.10171968770956323, 0.79293983410146052,
               0.79293983410146052, 0.10171968770956323});
  expect_near(kaiser_window(4, {.periodic = false, .beta = 3.5}, kWide),
              {0.13553434913875384, 0.84597264783888948, 0.84597264783888948, 0.13553434913875384});
  EXPECT_EQ(kaiser_window(1).item<float>(), 1);
  EXPECT_EQ(kaiser_window(0).numel(), 0);
  EXPECT_THROW(kaiser_window(-1), InvalidArgument);
}

TEST(Windows, OfSignalsAreSymmetricUnlessTheyAreAskedForOnePeriod) {
  namespace windows = signal::windows;
  expect_near(windows::bartlett(5, {}, kWide), {0, 0.5, 1, 0.5, 0});
  expect_near(windows::cosine(4, {}, kWide),
              {0.38268343236508978, 0.92387953251128674, 0.92387953251128674, 0.38268343236508978});
  expect_near(windows::cosine(4, {.sym = false}, kWide),
              {0.3090169943749474, 0.80901699437494745, 1, 0.80901699437494745});
  expect_near(windows::exponential(4, {.tau = 2}, kWide),
              {0.47236655274101469, 0.77880078307140488, 0.77880078307140488, 0.47236655274101469});
  expect_near(windows::exponential(4, {.center = 0, .tau = 1.5, .sym = false}, kWide),
              {1, 0.51341711903259202, 0.26359713811572671, 0.1353352832366127});
  expect_near(windows::gaussian(4, {.std = 0.8}, kWide),
              {0.17242162389375301, 0.82257756239866464, 0.82257756239866464, 0.17242162389375301});
  expect_near(windows::gaussian(4, {.std = 0.8, .sym = false}, kWide),
              {0.043936933623407476, 0.45783336177161432, 1, 0.45783336177161443});
  expect_near(windows::general_cosine(4, {0.5, 0.3, 0.2}, {}, kWide), {0.4, 0.55, 0.55, 0.4});
  expect_near(windows::general_hamming(5, {.alpha = 0.7}, kWide), {0.4, 0.7, 1, 0.7, 0.4});
  expect_near(windows::hamming(4, {.sym = false}, kWide), {0.08, 0.54, 1, 0.54});
  expect_near(windows::hann(5, {}, kWide), {0, 0.5, 1, 0.5, 0});
  expect_near(windows::blackman(4, {.sym = false}, kWide), {0, 0.34, 1, 0.34});
  expect_near(windows::kaiser(5, {.beta = 4}, kWide), {0.088480526076449878, 0.63343177975593468, 1,
                                                       0.63343177975593468, 0.088480526076449878});
  expect_near(windows::nuttall(5, {}, kWide), {0.0003628, 0.2269824, 1, 0.2269824, 0.0003628});
  EXPECT_THROW(windows::exponential(4, {.center = 1}), InvalidArgument);
  EXPECT_THROW(windows::exponential(4, {.tau = 0}), InvalidArgument);
  EXPECT_THROW(windows::gaussian(4, {.std = -1}), InvalidArgument);
  EXPECT_THROW(windows::general_cosine(4, {}), InvalidArgument);
}

TEST(Histogram, IncludesTheLastEdgeAndSkipsWhatIsOutside) {
  const Tensor x = tensor({2.0, -1.0, 0.25, NAN, 3.0, 1.0}, kWide);
  const HistogramResult counted = histogram(x, tensor({-1.0, 0.0, 0.25, 2.0}, kWide));
  expect_near(counted.hist, {1, 0, 3});
  const HistogramResult equal = histogram(x, 2, {.range = {{0, 2}}, .density = true});
  expect_near(equal.bin_edges, {0, 1, 2});
  expect_near(equal.hist, {1.0 / 3, 2.0 / 3});
  expect_near(x.histogram(2, {.range = {{0, 2}}}).hist, {1, 2});
  expect_near(x.histogram(tensor({-1.0, 0.0, 2.0}, kWide)).hist, {1, 3});
  EXPECT_THROW(histogram(x, 3), InvalidArgument);  // NaN has no place in a range
  EXPECT_THROW(histogram(x, 0, {.range = {{0, 1}}}), InvalidArgument);
  EXPECT_THROW(histogram(tensor({1, 2}), 3), InvalidArgument);
  EXPECT_THROW(histogram(x, 3, {.range = {{2, 1}}}), InvalidArgument);
  EXPECT_THROW(histogram(x, 3, {.range = {{0, 1}}, .weight = ones({2}, kWide)}), InvalidArgument);
}

TEST(Histogram, OfPointsHasADimForEachCoordinate) {
  const Tensor points = reshape(tensor({0.0, 1, 1, 0, 2, 3, 2, 2}, kWide), {4, 2});
  const HistogramddResult counted = histogramdd(
      points, std::vector<Tensor>{tensor({0.0, 1, 2}, kWide), tensor({0.0, 2, 3}, kWide)},
      {.weight = tensor({1.0, 2, 4, 8}, kWide)});
  EXPECT_EQ(counted.hist.shape(), Shape({2, 2}));
  expect_near(counted.hist, {1, 0, 2, 12});
  EXPECT_THROW(histogramdd(points, std::vector<int64_t>{2}), InvalidArgument);
}

TEST(Histogram, DoesNotDependOnTheLayout) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor x = arange(7, {.dtype = float64, .placement = both, .sbp = sbp::split(0)});
    const HistogramResult counted = histogram(x, 3);
    expect_near(counted.hist, {2, 2, 3});
    expect_near(gradient(square(x))[0], {1, 2, 4, 6, 8, 10, 11});
  });
}

TEST(Gradient, IsExactForParabolasWithSecondOrderEdges) {
  const Tensor places = tensor({0.0, 1, 3, 4}, kWide);
  const Tensor x = square(places);
  expect_near(gradient(x, {.coordinates = {places}, .edge_order = 2})[0], {0, 2, 6, 8});
  expect_near(gradient(square(arange(4, kWide)), {.spacing = {2}})[0], {0.5, 1, 2, 2.5});
  EXPECT_EQ(gradient(tensor({1, 2, 4}))[0].dtype(), float32);
  EXPECT_THROW(gradient(ones({1})), InvalidArgument);
  EXPECT_THROW(gradient(ones({3}), {.edge_order = 3}), InvalidArgument);
  EXPECT_THROW(gradient(ones({3, 3}), {.dim = {0, -2}}), InvalidArgument);
  EXPECT_THROW(gradient(ones({3}), {.coordinates = {ones({2})}}), InvalidArgument);
}

TEST(NonzeroStatic, FillsAndCutsToItsSize) {
  const Tensor x = tensor({0, 1, 0, 2});
  EXPECT_EQ(nonzero_static(x, {.size = 3, .fill_value = -7}).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 3, -7}));
  EXPECT_EQ(nonzero_static(x, {.size = 1}).to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(nonzero_static(reshape(x, {2, 2}), {.size = 5}).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 1, 1, 1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(nonzero_static(zeros({0}), {.size = 2}).shape(), Shape({2, 1}));
  EXPECT_EQ(nonzero_static(ones({}), {.size = 2}).shape(), Shape({2, 0}));
  EXPECT_EQ(x.nonzero_static({.size = 1}).to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_THROW(nonzero_static(x, {.size = -1}), InvalidArgument);
}

TEST(LowRank, FactorsOfAMatrixOfLowRankRestoreIt) {
  manual_seed(6);
  const Tensor x = matmul(randn({2, 9, 3}, kWide), randn({2, 3, 7}, kWide));
  const LowrankSvd y = svd_lowrank(x, {.q = 4});
  EXPECT_EQ(y.U.shape(), Shape({2, 9, 4}));
  EXPECT_EQ(y.V.shape(), Shape({2, 7, 4}));
  const Tensor restored = matmul(mul(y.U, unsqueeze(y.S, -2)), y.V.mT());
  EXPECT_LT(max(abs(sub(restored, x))).item<double>(), 1e-12);
  EXPECT_EQ(svd_lowrank(x).S.shape(), Shape({2, 6}));
  EXPECT_THROW(svd_lowrank(ones({3})), InvalidArgument);
  EXPECT_THROW(svd_lowrank(x, {.q = -1}), InvalidArgument);
}

TEST(LowRank, PrincipalComponentsAreThoseOfTheCentredRows) {
  manual_seed(7);
  const Tensor x = add(randn({20, 2}, kWide), 100);
  const Tensor centred = sub(x, mean(x, 0, {.keepdim = true}));
  const LowrankSvd y = pca_lowrank(x, {.q = 2});
  EXPECT_NEAR(sum(square(y.S)).item<double>(), sum(square(centred)).item<double>(), 1e-9);
  EXPECT_GT(pca_lowrank(x, {.q = 2, .center = false}).S.to_vector<double>()[0], 400);
}

// PyTorch's values.
TEST(SegmentReduce, TakesLengthsOrOffsets) {
  const Tensor x = tensor({1.0, 2, 3, 4, 5}, kWide);
  const Tensor lengths = tensor({2, 0, 3});
  const Tensor offsets = tensor({0, 2, 2, 5});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_near(segment_reduce(x, "sum", {.lengths = lengths}), {3, 0, 12});
  expect_near(segment_reduce(x, "sum", {.offsets = offsets, .initial = 2}), {5, 2, 14});
  expect_near(segment_reduce(x, "mean", {.lengths = lengths, .initial = 2}), {2.5, 2, 14.0 / 3});
  EXPECT_TRUE(std::isnan(segment_reduce(x, "mean", {.lengths = lengths}).to_vector<double>()[1]));
  EXPECT_EQ(segment_reduce(x, "max", {.offsets = offsets}).to_vector<double>(),
            (std::vector<double>{2, -kInfinity, 5}));
  expect_near(segment_reduce(x, "min", {.lengths = lengths, .initial = 2}), {1, 2, 2});
  expect_near(segment_reduce(x, "prod", {.lengths = lengths}), {2, 1, 60});
  expect_near(segment_reduce(x, "sum", {.lengths = tensor({2}), .unsafe = true}), {3});
  expect_near(segment_reduce(x, "sum", {.offsets = tensor({1, 2, 4})}), {2, 7});
  expect_near(segment_reduce(ones({2, 3}, kWide), "sum",
                             {.lengths = reshape(tensor({3, 0, 1, 2}), {2, 2}), .axis = 1}),
              {3, 0, 1, 2});
  EXPECT_THROW(segment_reduce(x, "sum", {.lengths = tensor({2, 2})}), InvalidArgument);
  EXPECT_THROW(segment_reduce(x, "sum", {.lengths = tensor({-1, 6})}), InvalidArgument);
  EXPECT_THROW(segment_reduce(x, "std", {.lengths = tensor({5})}), InvalidArgument);
  EXPECT_THROW(segment_reduce(x, "sum", {}), InvalidArgument);
  EXPECT_THROW(segment_reduce(x, "sum", {.lengths = tensor({5}), .axis = 1}), InvalidArgument);
}

TEST(SegmentReduce, SharesTheGradientOfEqualExtrema) {
  const Tensor x = tensor({2.0, 2, 1}, {.dtype = float64, .requires_grad = true});
  segment_reduce(x, "max", {.lengths = tensor({3})}).sum().backward();
  expect_near(x.grad(), {0.5, 0.5, 0});
}

TEST(ConvTbc, IsTheConvolutionWithTimeFirst) {
  const Tensor x = randn({5, 2, 3}, kWide);
  const Tensor weight = randn({2, 3, 4}, kWide);
  const Tensor bias = randn({4}, kWide);
  const Tensor expected = permute(
      conv1d(permute(x, {1, 2, 0}), permute(weight, {2, 1, 0}), bias, {.padding = 1}), {2, 0, 1});
  EXPECT_EQ(conv_tbc(x, weight, bias, 1).to_vector<double>(),
            contiguous(expected).to_vector<double>());
  EXPECT_THROW(conv_tbc(randn({5, 2}), weight, bias), InvalidArgument);
}

TEST(EmbeddingRenorm, ShortensTheNamedRowsThatAreLonger) {
  const Tensor weight = reshape(tensor({3.0, 4, 0.3, 0.4, 6, 8}, kWide), {3, 2});
  embedding_renorm_(weight, tensor({0, 1, 0}), 1);
  const auto values = weight.to_vector<double>();
  EXPECT_NEAR(values[0], 0.6, 1e-6);
  EXPECT_EQ(values[2], 0.3);
  EXPECT_EQ(values[4], 6);
  EXPECT_THROW(embedding_renorm_(weight, tensor({0}), -1), InvalidArgument);
}

TEST(GroupedMm, MultipliesEachGroupWithItsMatrix) {
  const Tensor rows = arange(12, kWide).reshape({4, 3});
  const Tensor stack = arange(12, kWide).reshape({2, 3, 2});
  const Tensor offs = tensor({1, 3});
  const Tensor y = grouped_mm(rows, stack, {.offs = offs});
  expect_near(y, {10, 13, 100, 112, 172, 193, 0, 0});
  expect_near(grouped_mm(stack, rows.slice(0, 0, 2), {.offs = offs}),
              {3, 34, 47, 9, 44, 61, 15, 54, 75});
  const Tensor inner = grouped_mm(rows, rows.slice(0, 0, 3), {.offs = offs});
  EXPECT_EQ(inner.shape(), Shape({2, 4, 3}));
  expect_near(inner.select(0, 0).select(0, 1), {0, 3, 6});
  EXPECT_EQ(grouped_mm(stack, stack.mT()).shape(), Shape({2, 3, 3}));
  EXPECT_THROW(grouped_mm(rows, stack), InvalidArgument);
  EXPECT_THROW(grouped_mm(rows, stack, {.offs = tensor({3, 1})}), InvalidArgument);
  EXPECT_THROW(grouped_mm(rows, stack, {.offs = tensor({1, 5})}), InvalidArgument);
  EXPECT_THROW(grouped_mm(rows, stack, {.offs = tensor({1})}), InvalidArgument);
  EXPECT_THROW(grouped_mm(stack, stack, {.offs = offs}), InvalidArgument);
}

}  // namespace
}  // namespace flow

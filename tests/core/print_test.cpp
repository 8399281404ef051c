#include "core/print.h"

#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/tensor.h"

namespace {

using flow::Shape;
using flow::str;
using flow::Tensor;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A tensor over memory of its own, without any op.
template <class T>
Tensor tensor_of(const std::vector<T>& values, const Shape& shape) {
  auto memory = std::make_shared<std::unique_ptr<T[]>>(new T[values.size() + 1]);
  std::copy(values.begin(), values.end(), memory->get());
  auto storage = flow::Storage::wrap(memory->get(), values.size() * sizeof(T),
                                     [memory](void* /*data*/) mutable { memory.reset(); });
  return Tensor::make(flow::local_meta(shape, flow::dtype_of<T>, flow::DeviceType::kCpu),
                      std::move(storage));
}

Tensor floats(const std::vector<float>& values, const Shape& shape) {
  return tensor_of<float>(values, shape);
}

TEST(Print, FourDigitsAfterThePoint) {
  EXPECT_EQ(str(floats({1.5f, 2.25f, -3.f}, {3})), "tensor([ 1.5000,  2.2500, -3.0000])");
}

TEST(Print, WholeNumbersEndInAPoint) {
  EXPECT_EQ(str(floats({1, 2, 3, 4}, {2, 2})), "tensor([[1., 2.],\n        [3., 4.]])");
}

TEST(Print, WideRangeIsScientific) {
  EXPECT_EQ(str(floats({1, 2000}, {2})), "tensor([1.0000e+00, 2.0000e+03])");
  EXPECT_EQ(str(floats({0.5f, 600}, {2})), "tensor([5.0000e-01, 6.0000e+02])");
  EXPECT_EQ(str(floats({0.00001f}, {1})), "tensor([1.0000e-05])");
  EXPECT_EQ(str(floats({2e8f, 3e8f}, {2})), "tensor([2.0000e+08, 3.0000e+08])");
}

TEST(Print, ThreeDecadesAreStillFixed) {
  EXPECT_EQ(str(floats({0.5f, 500}, {2})), "tensor([  0.5000, 500.0000])");
}

TEST(Print, ZerosDoNotDecideTheNotation) {
  EXPECT_EQ(str(floats({0, 0.25f}, {2})), "tensor([0.0000, 0.2500])");
  EXPECT_EQ(str(floats({0, 0}, {2})), "tensor([0., 0.])");
}

TEST(Print, NanAndInfinityFitInWithoutWideningColumns) {
  EXPECT_EQ(str(floats({kNan, 1}, {2})), "tensor([nan, 1.])");
  EXPECT_EQ(str(floats({kInf, 1.5f, -kInf}, {3})), "tensor([   inf, 1.5000,   -inf])");
}

TEST(Print, NegativeZeroKeepsItsSign) {
  EXPECT_EQ(str(floats({-0.f, 1}, {2})), "tensor([-0., 1.])");
}

TEST(Print, ScalarHasNoBrackets) {
  EXPECT_EQ(str(floats({3.14159f}, {})), "tensor(3.1416)");
  EXPECT_EQ(str(tensor_of<int64_t>({-7}, {})), "tensor(-7)");
}

TEST(Print, IntegersAlignToTheWidest) {
  EXPECT_EQ(str(tensor_of<int64_t>({1, -20, 300}, {3})), "tensor([  1, -20, 300])");
}

TEST(Print, DtypeIsNamedUnlessTheValuesShowIt) {
  EXPECT_EQ(str(tensor_of<int32_t>({1, 2}, {2})), "tensor([1, 2], dtype=int32)");
  EXPECT_EQ(str(tensor_of<double>({0.5}, {1})), "tensor([0.5000], dtype=float64)");
  EXPECT_EQ(str(tensor_of<uint8_t>({200}, {1})), "tensor([200], dtype=uint8)");
  EXPECT_EQ(str(tensor_of<flow::BFloat16>({flow::BFloat16(1.5f)}, {1})),
            "tensor([1.5000], dtype=bfloat16)");
}

TEST(Print, BoolsAlign) {
  auto memory = std::make_shared<std::vector<uint8_t>>(std::vector<uint8_t>{1, 0});
  auto storage = flow::Storage::wrap(memory->data(), 2, [memory](void* /*data*/) {});
  const Tensor x =
      Tensor::make(flow::local_meta({2}, flow::bool_, flow::DeviceType::kCpu), std::move(storage));

  EXPECT_EQ(str(x), "tensor([ True, False])");
}

TEST(Print, EmptyTensorsShowWhatTheirValuesCannot) {
  EXPECT_EQ(str(floats({}, {0})), "tensor([])");
  EXPECT_EQ(str(floats({}, {2, 0})), "tensor([], size=(2, 0))");
  EXPECT_EQ(str(tensor_of<int64_t>({}, {0})), "tensor([], dtype=int64)");
}

TEST(Print, UndefinedTensorIsNamed) {
  EXPECT_EQ(str(Tensor()), "tensor(undefined)");
}

TEST(Print, MatricesOfATensorAreApartByALine) {
  EXPECT_EQ(str(floats({1, 2, 3, 4}, {2, 1, 2})), "tensor([[[1., 2.]],\n\n        [[3., 4.]]])");
}

TEST(Print, LongRowsWrap) {
  std::vector<int64_t> values(30);
  std::iota(values.begin(), values.end(), 0);

  EXPECT_EQ(str(tensor_of(values, {30})),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
}

TEST(Print, LargeTensorsShowTheirEdges) {
  std::vector<int64_t> values(1001);
  std::iota(values.begin(), values.end(), 0);

  EXPECT_EQ(str(tensor_of(values, {1001})), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
}

TEST(Print, LargeMatricesShowTheirCorners) {
  std::vector<float> values(40 * 30, 1.f);

  EXPECT_EQ(str(floats(values, {40, 30})),
            "tensor([[1., 1., 1.,  ..., 1., 1., 1.],\n"
            "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
            "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
            "        ...,\n"
            "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
            "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
            "        [1., 1., 1.,  ..., 1., 1., 1.]])");
}

TEST(Print, ThousandElementsAreShownInFull) {
  const std::string text = str(floats(std::vector<float>(1000, 0.f), {1000}));

  EXPECT_EQ(text.find("..."), std::string::npos);
}

TEST(Print, StridesAreFollowed) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto meta = flow::strided_meta({3, 2}, {1, 3}, flow::float32, flow::DeviceType::kCpu);

  EXPECT_EQ(str(Tensor::make(meta, x.impl().storage)),
            "tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]])");
}

TEST(Print, GradientsWantedAreShown) {
  const Tensor x = floats({1}, {1});
  x.impl().requires_grad = true;

  EXPECT_EQ(str(x), "tensor([1.], requires_grad=True)");
}

TEST(Print, SuffixesMoveToTheNextLineWhenTheyDoNotFit) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, {13});
  x.impl().requires_grad = true;

  EXPECT_EQ(str(x),
            "tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.],\n"
            "       requires_grad=True)");
}

TEST(Print, GlobalTensorShowsLayoutAndLocalPart) {
  const flow::Placement both("cpu", {0, 1});
  const auto meta = flow::global_meta({3, 2}, flow::float32, both, flow::sbp::split(0), 0);
  const Tensor part = floats({1, 2, 3, 4}, {2, 2});

  EXPECT_EQ(str(Tensor::make(meta, part.impl().storage)),
            "tensor([[1., 2.],\n"
            "        [3., 4.]], shape=(3, 2), sbp=S(0), placement=cpu:(0, 1))");
}

TEST(Print, RankOutsideThePlacementHasNoValues) {
  const flow::Placement other("cpu", {1});
  const auto meta = flow::global_meta({2}, flow::float32, other, flow::sbp::broadcast, 0);

  EXPECT_EQ(str(Tensor::make(meta, {})), "tensor(..., shape=(2,), sbp=B, placement=cpu:(1))");
}

TEST(Print, ValuesAreSeparatedBySpaces) {
  testing::internal::CaptureStdout();

  flow::print("loss", 0.5, Shape{2, 3}, true);

  EXPECT_EQ(testing::internal::GetCapturedStdout(), "loss 0.5 (2, 3) true\n");
}

// The texts are PyTorch's.
TEST(Print, OptionsChangeTheDigitsAndTheShortening) {
  const Tensor x = floats({1.23456789f, 100.5f, 0.00001f}, {3});
  std::vector<float> places(12);
  std::iota(places.begin(), places.end(), 0.f);
  const Tensor many = floats(places, {12});
  flow::set_printoptions({.precision = 2});
  EXPECT_EQ(str(x), "tensor([1.23e+00, 1.00e+02, 1.00e-05])");
  flow::set_printoptions({.profile = "default", .sci_mode = false});
  EXPECT_EQ(str(x), "tensor([  1.2346, 100.5000,   0.0000])");
  flow::set_printoptions({.sci_mode = true});
  EXPECT_EQ(str(floats({1.f, 2.f}, {2})), "tensor([1.0000e+00, 2.0000e+00])");
  flow::set_printoptions({.threshold = 5, .edgeitems = 2});
  EXPECT_EQ(str(many), "tensor([ 0.,  1.,  ..., 10., 11.])");
  flow::set_printoptions({.linewidth = 30});
  EXPECT_EQ(str(many), "tensor([ 0.,  1.,  ..., 10.,\n        11.])");
  flow::set_printoptions({.profile = "default"});
  EXPECT_EQ(str(x), "tensor([1.2346e+00, 1.0050e+02, 1.0000e-05])");
  EXPECT_THROW(flow::set_printoptions({.profile = "long"}), flow::InvalidArgument);
  EXPECT_THROW(flow::set_printoptions({.precision = -1}), flow::InvalidArgument);
}

}  // namespace

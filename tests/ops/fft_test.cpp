// Facts of Fourier transforms beyond the contract and the golden cases: definitions, round trips,
// lengths of every kind, errors, and complex numbers as real tensors.
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "boxing/ranks/run_ranks.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

const TensorOptions kDouble{.dtype = DType::kFloat64};

Tensor signal(const Shape& shape) {
  manual_seed(5);
  return randn(shape, kDouble);
}

// The sum of the definition.
Doubles transform_of(const Doubles& x, double sign) {
  const size_t n = x.size() / 2;
  Doubles y;
  for (size_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (size_t j = 0; j < n; ++j) {
      const double angle =
          sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      sum += std::complex<double>(x[2 * j], x[2 * j + 1]) * std::polar(1.0, angle);
    }
    y.push_back(sum.real());
    y.push_back(sum.imag());
  }
  return y;
}

TEST(Fft, TakesIntegers) {
  const Tensor x = tensor({{3, 1, 2}, {0, 5, 4}});

  EXPECT_TRUE(fft::rfft(x).equal(fft::rfft(x.to(float32))));
  EXPECT_TRUE(fft::rfftn(x.to(uint8)).equal(fft::rfftn(x.to(float32))));
  EXPECT_TRUE(fft::rfft(x > 1).equal(fft::rfft((x > 1).to(float32))));
}

TEST(Fft, IsTheSumOfItsDefinition) {
  // Powers of two, small primes, 7 to 31, larger primes, and products of these.
  for (const int64_t n :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 25, 31, 32, 37, 49, 60, 74, 97, 101, 128}) {
    const Tensor x = signal({n, 2});
    const Shape shape{n, 2};

    const Tensor forward = tensor(transform_of(x.to_vector<double>(), -1), shape);
    EXPECT_LT(distance(fft::fft(x), forward), 1e-12) << n;
    const Tensor backward = tensor(transform_of(x.to_vector<double>(), 1), shape);
    EXPECT_LT(distance(fft::ifft(x, {.norm = "forward"}), backward), 1e-12) << n;
    EXPECT_LT(distance(fft::ifft(fft::fft(x)), x), 1e-13) << n;
  }
}

TEST(Fft, OfRealSignalsIsTheFirstHalf) {
  for (const int64_t n : {1, 2, 3, 4, 7, 10, 30, 53, 106}) {
    const Tensor x = signal({3, n});
    const Tensor all = fft::fft(fft::complex(x));

    EXPECT_LT(distance(fft::rfft(x), narrow(all, 1, 0, n / 2 + 1)), 1e-12) << n;
    EXPECT_LT(distance(fft::irfft(fft::rfft(x), {.n = n}), x), 1e-13) << n;
    EXPECT_LT(distance(fft::hfft(fft::ihfft(x), {.n = n}), x), 1e-13) << n;
  }
}

TEST(Fft, RealSignalsIgnoreTheImaginaryPartsOfTheirEnds) {
  const Tensor x = signal({4, 2});
  Tensor other = x.clone();
  other[0][1].fill_(100.0);
  other[3][1].fill_(-100.0);

  EXPECT_LT(distance(fft::irfft(x), fft::irfft(other)), 1e-15);
  EXPECT_LT(distance(fft::hfft(x), fft::hfft(other)), 1e-15);
}

TEST(Fft, OfFloatsIsAsPreciseAsFloats) {
  for (const int64_t n : {4096, 1155, 997}) {
    const Tensor x = signal({n, 2});

    const Tensor wide = fft::fft(x), narrow = fft::fft(x.to(float32));

    EXPECT_EQ(narrow.dtype(), float32);
    EXPECT_LT(distance(narrow.to(float64), wide), 1e-6 * amax(flow::abs(wide)).item()) << n;
  }
}

TEST(Fft, OfSeveralDimsTransformsEach) {
  const Tensor x = signal({3, 4, 5, 2});

  const Tensor expected = fft::fft(fft::fft(fft::fft(x, {.dim = 0}), {.dim = 1}), {.dim = 2});
  EXPECT_LT(distance(fft::fftn(x), expected), 1e-12);
  EXPECT_LT(distance(fft::ifftn(fft::fftn(x)), x), 1e-13);
  EXPECT_LT(distance(fft::ifft2(fft::fft2(x)), x), 1e-13);
  const Tensor real = signal({3, 4, 5});
  EXPECT_LT(distance(fft::irfftn(fft::rfftn(real), {.s = Ints{3, 4, 5}}), real), 1e-13);
  EXPECT_LT(distance(fft::irfft2(fft::rfft2(real), {.s = Ints{4, 5}}), real), 1e-13);
}

TEST(Fft, CutsAndContinuesWithZeros) {
  const Tensor x = signal({6, 2});

  EXPECT_LT(distance(fft::fft(x, {.n = 4}), fft::fft(narrow(x, 0, 0, 4))), 1e-14);
  EXPECT_LT(distance(fft::fft(x, {.n = 9}), fft::fft(cat({x, zeros({3, 2}, kDouble)}))), 1e-14);
}

TEST(Fft, OfAnEmptyBatchIsEmpty) {
  EXPECT_EQ(fft::fft(zeros({0, 4, 2})).shape(), (Shape{0, 4, 2}));
  EXPECT_EQ(fft::rfft(zeros({4, 0}), {.dim = 0}).shape(), (Shape{3, 0, 2}));
  EXPECT_EQ(fft::irfft(zeros({0, 3, 2})).shape(), (Shape{0, 4}));
}

TEST(Fft, HasGradientsOfEveryOrder) {
  const auto check = [&](const std::function<Tensor(const std::vector<Tensor>&)>& f,
                         const Shape& shape) {
    const std::vector<Tensor> x{signal(shape).requires_grad_()};
    EXPECT_NO_THROW(gradcheck(f, x)) << shape;
    EXPECT_NO_THROW(gradgradcheck(f, x)) << shape;
  };
  for (const int64_t n : {5, 6}) {
    check([](const std::vector<Tensor>& x) { return square(fft::fft(x[0])); }, {n, 2});
    check([](const std::vector<Tensor>& x) { return square(fft::rfft(x[0])); }, {2, n});
    check([n](const std::vector<Tensor>& x) { return square(fft::irfft(x[0], {.n = n})); },
          {n / 2 + 1, 2});
    check([n](const std::vector<Tensor>& x) { return square(fft::hfft(x[0], {.n = n})); },
          {n / 2 + 1, 2});
  }
}

TEST(Fft, OfGlobalTensorsIsOneRanks) {
  const Tensor x = signal({4, 6, 2});
  const Doubles whole = fft::fft(x).to_vector<double>();
  const Doubles across = fft::fft(x, {.dim = 0}).to_vector<double>();

  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    const Tensor split = x.to_global(both, sbp::broadcast).to_global(both, sbp::split(0));
    const Tensor y = fft::fft(split);
    EXPECT_EQ(y.sbp()[0], sbp::split(0));
    const Doubles rows = y.to_vector<double>(),
                  columns = fft::fft(split, {.dim = 0}).to_vector<double>();
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(rows[i], whole[i], 1e-13);
      EXPECT_NEAR(columns[i], across[i], 1e-13);
    }
  });
}

TEST(Fft, ErrorsSayWhatIsWrong) {
  EXPECT_NE(message_of([] { fft::fft(zeros({3})); }).find("[fft] takes complex numbers as real"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              fft::rfft(zeros({3, 0}));
            }).find("[rfft] needs at least one point"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              fft::irfft(zeros({1, 2}));
            }).find("at least one point"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              fft::fft(zeros({3, 2}), {.norm = "both"});
            }).find("norm is \"both\""),
            std::string::npos);
  EXPECT_NE(
      message_of([] { fft::rfft(zeros({3}, {.dtype = float16})); }).find("float32 or float64"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              fft::fftn(zeros({3, 4, 2}), {.dim = Ints{0, 0}});
            }).find("twice"),
            std::string::npos);
  EXPECT_NE(message_of([] { fft::fftfreq(0); }).find("[fftfreq] needs n >= 1"), std::string::npos);
}

TEST(Fft, FrequenciesAndShifts) {
  EXPECT_EQ(fft::fftfreq(4, 0.5).to_vector<double>(), (Doubles{0, 0.5, -1, -0.5}));
  EXPECT_EQ(fft::fftfreq(5, 0.2).to_vector<float>(), (std::vector<float>{0, 1, 2, -2, -1}));
  EXPECT_EQ(fft::rfftfreq(4).to_vector<double>(), (Doubles{0, 0.25, 0.5}));
  EXPECT_EQ(fft::fftshift(arange(5)).to_vector<double>(), (Doubles{3, 4, 0, 1, 2}));
  EXPECT_EQ(fft::ifftshift(arange(5)).to_vector<double>(), (Doubles{2, 3, 4, 0, 1}));
  const Tensor z = fft::complex(arange(3).to(float64));
  EXPECT_EQ(fft::real(fft::fftshift(z, {.is_complex = true})).to_vector<double>(),
            (Doubles{2, 0, 1}));
}

TEST(Fft, ConvolvesByAProductOfSpectra) {
  const Tensor a = tensor({1.0, 2.0, 3.0, 0.0}, kDouble),
               b = tensor({1.0, -1.0, 0.0, 0.0}, kDouble);

  const Tensor y = fft::irfft(fft::mul(fft::rfft(a), fft::rfft(b)));

  EXPECT_LT(distance(y, tensor({1.0, 1.0, 1.0, -3.0}, kDouble)), 1e-14);
}

TEST(Fft, ComplexNumbersHaveMagnitudesAndAngles) {
  const Tensor z = fft::complex(tensor({3.0, 0.0, -1.0}), tensor({4.0, 0.0, 0.0})).requires_grad_();

  EXPECT_EQ(fft::abs(z).to_vector<double>(), (Doubles{5, 0, 1}));
  EXPECT_NEAR(fft::angle(z).to_vector<double>()[2], std::numbers::pi, 1e-6);
  const Tensor back = fft::polar(fft::abs(z), fft::angle(z));
  EXPECT_LT(distance(back.detach(), z.detach()), 1e-6);
  EXPECT_EQ(fft::imag(fft::conj(z)).to_vector<double>(), (Doubles{-4, 0, 0}));
  (fft::abs(z) + fft::angle(z)).sum().backward();
  EXPECT_TRUE(isfinite(z.grad()).all().item<bool>());
}

TEST(Stft, IsInvertedByIstft) {
  const Tensor x = signal({2, 200});
  const Tensor window = hann_window(40, {}, kDouble);
  for (const bool onesided : {true, false}) {
    const Tensor y = stft(x, 40, {.hop_length = 10, .window = window, .onesided = onesided});

    EXPECT_EQ(y.shape(), (Shape{2, onesided ? 21 : 40, 21, 2}));
    const Tensor back =
        istft(y, 40, {.hop_length = 10, .window = window, .onesided = onesided, .length = 200});
    EXPECT_LT(distance(back, x), 1e-13);
  }
}

// Threads share what is prepared for a length, so it must not be written.
TEST(Fft, OfOnePointIsTheIdentityInAllThreads) {
  const Tensor x = signal({200000, 1, 2});

  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(distance(fft::fft(x, {.dim = 1}), x), 0);
}

TEST(Stft, ErrorsSayWhatIsWrong) {
  const Tensor y = zeros({5, 3, 2});
  EXPECT_NE(message_of([&] { istft(y, 8, {.window = zeros({8})}); }).find("add up to 0"),
            std::string::npos);
  EXPECT_NE(message_of([] { stft(zeros({3}), 8, {.center = false}); }).find("fewer than n_fft"),
            std::string::npos);
  EXPECT_NE(message_of([] { stft(zeros({30}), 8, {.window = ones({7})}); }).find("(win_length)"),
            std::string::npos);
}

Tensor doubled(const Tensor& x) {
  const Tensor window = hann_window(8, {}, kDouble);
  return istft(stft(x, 8, {.window = window}) * 2, 8, {.window = window});
}

struct DoubledSpectrum : nn::Graph<DoubledSpectrum> {
  Tensor build(const Tensor& x) { return doubled(x); }
};

TEST(Stft, RunsInAGraph) {
  const Tensor x = signal({32});
  DoubledSpectrum graph;

  EXPECT_LT(distance(graph(x), doubled(x)), 1e-14);
  EXPECT_LT(distance(doubled(x), x * 2), 1e-13);
}

}  // namespace
}  // namespace flow

// Sizes that no memory holds end in an error that names the function and the line of the call, not
// in an exception of the C++ library, an overflow or a loop without end.
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

namespace flow {
namespace {

struct SizedCall {
  const char* function;
  std::function<void(int64_t size)> call;
};

// `size` outputs of one dim.
void interpolated(int64_t size, const std::string& mode, const Shape& shape, bool antialias) {
  interpolate(ones(shape), {.size = {size}, .mode = mode, .antialias = antialias});
}

std::vector<SizedCall> sampled() {
  return {
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "nearest", {1, 1, 3}, false);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "nearest-exact", {1, 1, 3}, false);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "linear", {1, 1, 3}, false);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "area", {1, 1, 3}, false);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "bilinear", {1, 1, 3, 3}, true);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolated(n, "bicubic", {1, 1, 3, 3}, false);
       }},
      {"interpolate",
       [](int64_t n) {
         interpolate(ones({1, 1, 3}), {.scale_factor = {static_cast<double>(n)}});
       }},
  };
}

std::vector<SizedCall> made_of_lists() {
  return {
      {"tensor_split", [](int64_t n) { tensor_split(ones({4}), n); }},
      {"vander", [](int64_t n) { vander(ones({2}), {.N = n}); }},
      {"vander", [](int64_t n) { linalg::vander(ones({2}), n); }},
      {"fftfreq", [](int64_t n) { fft::fftfreq(n); }},
      {"rfftfreq", [](int64_t n) { fft::rfftfreq(n); }},
      {"hann_window", [](int64_t n) { hann_window(n); }},
      {"kaiser_window", [](int64_t n) { kaiser_window(n); }},
      {"gaussian", [](int64_t n) { signal::windows::gaussian(n); }},
      {"combinations", [](int64_t n) { combinations(ones({2}), n, true); }},
      {"tril_indices", [](int64_t n) { tril_indices(n, 3); }},
      {"tril_indices", [](int64_t n) { tril_indices(2, n, n); }},
      {"triu_indices", [](int64_t n) { triu_indices(3, n); }},
      {"triu_indices", [](int64_t n) { triu_indices(n, 3, -n); }},
  };
}

// The sanitizers end the program if `new` finds no memory, so only sizes that no vector has remain.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array kSizes = {std::numeric_limits<int64_t>::max()};
#else
constexpr std::array kSizes = {int64_t{1} << 45, int64_t{1} << 62,
                               std::numeric_limits<int64_t>::max()};
#endif

TEST(HugeSizes, AreErrorsOfTheCall) {
  for (const std::vector<SizedCall>& calls : {sampled(), made_of_lists()}) {
    for (const SizedCall& call : calls) {
      for (const int64_t size : kSizes) {
        std::optional<Error> error;
        try {
          call.call(size);
        } catch (const InvalidArgument& thrown) {
          error = thrown;
        } catch (const OutOfMemory& thrown) {
          error = thrown;
        }
        ASSERT_TRUE(error.has_value()) << call.function << ' ' << size;
        EXPECT_EQ(error->message().find(std::string("[") + call.function + "] "), 0U)
            << error->what();
        EXPECT_NE(std::string(error->site().file()).find("huge_sizes_test.cpp"), std::string::npos)
            << error->what();
      }
    }
  }
}

TEST(HugeSizes, OfAKernelsListAreErrorsOfItsOp) {
  try {
    histc(ones({2}), {.bins = int64_t{1} << 62});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find("[histc] "), 0U) << error.what();
  }
}

// Offsets far outside of a small matrix have a meaning.
TEST(HugeSizes, DiagonalsFarOutsideOfAMatrix) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

  EXPECT_EQ(tril_indices(2, 3, kFar).shape(), (Shape{2, 6}));
  EXPECT_EQ(tril_indices(2, 3, -kFar).shape(), (Shape{2, 0}));
  EXPECT_EQ(triu_indices(2, 3, kFar).shape(), (Shape{2, 0}));
  EXPECT_EQ(triu_indices(2, 3, -kFar).shape(), (Shape{2, 6}));
  EXPECT_EQ(tril_indices(int64_t{1} << 59, 0).shape(), (Shape{2, 0}));
}

}  // namespace
}  // namespace flow

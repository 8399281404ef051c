#include "tests/support/expect_tensor.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/extrema.h"
#include "tests/support/largest_difference.h"

namespace flow {

void expect_values(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const auto values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isfinite(expected[i])) {
      EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
    } else {
      EXPECT_TRUE(values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i])))
          << "element " << i << " is " << values[i] << ", not " << expected[i];
    }
  }
}

void expect_rows(const Tensor& actual, const std::vector<double>& expected, int64_t columns,
                 double tolerance) {
  const auto values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  const auto width = static_cast<size_t>(columns);
  for (size_t row = 0; row < expected.size(); row += width) {
    double largest = 0;
    double error = 0;
    for (size_t i = row; i < row + width; ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      error = larger_difference(error, std::fabs(values[i] - expected[i]));
    }
    EXPECT_LE(error, tolerance * largest) << "row " << row / width << " of " << width;
  }
}

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return a.numel() == 0 ? 0 : amax(abs(a - b)).item();
}

void expect_refused(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << text;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace flow

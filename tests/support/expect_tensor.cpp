#include "tests/support/expect_tensor.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"

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

void expect_refused(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << text;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace flow

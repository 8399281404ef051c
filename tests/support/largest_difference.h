// Differences that tests compare with a tolerance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace flow {

// The larger one; infinite if `difference` is NaN, which std::max would drop.
inline double larger_difference(double largest, double difference) {
  return std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
}

// The largest difference of two elements at the same place; infinite if one of them is NaN.
template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = larger_difference(largest, static_cast<double>(std::abs(a[i] - b[i])));
  return largest;
}

}  // namespace flow

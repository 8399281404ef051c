// A matrix product for tests of gemm.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"
#include "tests/support/largest_difference.h"

namespace flow::ops {

// A product with its operands. Rows of all three matrices are `padding` elements longer than
// needed; the padding and C are filled with NaN.
template <class T>
struct Product {
  std::vector<T> a, b, c;
  GemmTask<T> task;

  Product(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, int64_t padding = 0) {
    std::mt19937 random(7);
    const int64_t a_rows = ta == Transpose::kYes ? k : m;
    const int64_t a_columns = ta == Transpose::kYes ? m : k;
    const int64_t b_rows = tb == Transpose::kYes ? n : k;
    const int64_t b_columns = tb == Transpose::kYes ? k : n;
    a = filled(a_rows, a_columns, padding, random);
    b = filled(b_rows, b_columns, padding, random);
    c.assign(static_cast<std::size_t>(m * (n + padding)), std::numeric_limits<T>::quiet_NaN());
    task = {.transpose_a = ta,
            .transpose_b = tb,
            .m = m,
            .n = n,
            .k = k,
            .a = a.data(),
            .lda = a_columns + padding,
            .b = b.data(),
            .ldb = b_columns + padding,
            .c = c.data(),
            .ldc = n + padding};
  }

  static std::vector<T> filled(int64_t rows, int64_t columns, int64_t padding,
                               std::mt19937& random) {
    std::uniform_real_distribution<T> uniform(T{-1}, T{1});
    std::vector<T> values;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        values.push_back(uniform(random));
      values.insert(values.end(), static_cast<std::size_t>(padding),
                    std::numeric_limits<T>::quiet_NaN());
    }
    return values;
  }

  Product copy() const {
    Product other = *this;
    other.task.a = other.a.data();
    other.task.b = other.b.data();
    other.task.c = other.c.data();
    return other;
  }

  // C without its padding.
  std::vector<T> results() const {
    std::vector<T> values;
    for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i) {
      if (i % task.ldc < task.n) values.push_back(c[static_cast<size_t>(i)]);
    }
    return values;
  }

  // The largest difference from the reference. The padding of C must still be NaN.
  double error() const {
    std::vector<T> expected(c.size(), T{0});
    GemmTask<T> reference = task;
    reference.c = expected.data();
    gemm_with(GemmBackend::kReference, reference);
    double worst = 0.0;
    for (int64_t i = 0; i < task.m; ++i) {
      for (int64_t j = 0; j < task.ldc; ++j) {
        const auto at = static_cast<std::size_t>(i * task.ldc + j);
        if (j < task.n) {
          const double difference = std::abs(static_cast<double>(c[at] - expected[at]));
          worst = larger_difference(worst, difference);
        } else if (!std::isnan(c[at])) {
          worst = std::numeric_limits<double>::infinity();
        }
      }
    }
    return worst;
  }
};

// Loops for gemm_parallel that run on the calling thread.
inline constexpr auto one_thread = [](int64_t begin, int64_t end, int64_t, const auto& fn) {
  fn(begin, end);
};

}  // namespace flow::ops

#include "ops/fft/plain_line.h"

#include <cmath>
#include <numbers>

namespace flow::ops {

namespace {

using Complex = std::complex<double>;

int64_t smallest_prime_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

std::vector<Complex> roots_of_one(int64_t points, bool inverse) {
  const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(points);
  std::vector<Complex> roots(static_cast<size_t>(points));
  for (int64_t j = 0; j < points; ++j)
    roots[static_cast<size_t>(j)] = std::polar(1.0, step * static_cast<double>(j));
  return roots;
}

}  // namespace

PlainLine::PlainLine(int64_t points, bool inverse)
    : roots_(std::make_shared<const std::vector<Complex>>(roots_of_one(points, inverse))) {}

int64_t PlainLine::scratch_bytes() const {
  return static_cast<int64_t>(roots_->size() * sizeof(Complex));
}

void PlainLine::run(const Complex* in, Complex* out, std::byte* scratch) const {
  transform(in, 1, static_cast<int64_t>(roots_->size()), out, reinterpret_cast<Complex*>(scratch));
}

// With p parts of m points each, of which part r holds the points r, r + p, …, and Z_r the
// transform of part r:  y[k + q m] = sum over r of w^(r (k + q m)) Z_r[k], w = exp(∓2 π i /
// points).
void PlainLine::transform(const Complex* in, int64_t stride, int64_t points, Complex* out,
                          Complex* parts) const {
  if (points == 1) {
    *out = *in;
    return;
  }
  const int64_t p = smallest_prime_factor(points), m = points / p;
  for (int64_t r = 0; r < p; ++r)
    transform(in + r * stride, stride * p, m, out + r * m, parts);
  for (int64_t k = 0; k < m; ++k) {
    for (int64_t r = 0; r < p; ++r)
      parts[r] = out[k + r * m];
    for (int64_t q = 0; q < p; ++q) {
      Complex sum = 0;
      for (int64_t r = 0; r < p; ++r)
        sum += parts[r] * (*roots_)[static_cast<size_t>(r * (k + q * m) % points * stride)];
      out[k + q * m] = sum;
    }
  }
}

}  // namespace flow::ops

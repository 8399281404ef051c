// Lengths with small prime factors, with 7, 11 and 13, and large primes: KissFFT computes each kind
// in another way.
#include "ops/fft/fft.h"

#include "core/dispatch.h"
#include "ops/fft/fft_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

constexpr DTypeSet kWide = only(DType::kFloat32) | only(DType::kFloat64);
constexpr DTypeSet kSignals = kWide | kIntegers | only(DType::kBool);  // which are cast

void add_complex(Samples& samples) {
  for (const int64_t dim : {0, 1}) {
    samples.push_back({"fft_c2c", {in({5, 3, 2})}, kSignals, [dim](const Inputs& x) {
                         fft::fft(x[0], {.dim = dim});
                       }});
  }
  samples.push_back({"fft_c2c",
                     {in({2, 5, 2})},
                     kSignals,
                     [](const Inputs& x) { fft::ifft(x[0], {.norm = "ortho"}); },
                     "inverse"});
  for (const int64_t points : {360, 1001, 97}) {
    samples.push_back({"fft_c2c",
                       {in({40, points, 2})},
                       kSignals,
                       [](const Inputs& x) { fft::fft(x[0]); },
                       "many",
                       true});
  }
}

void add_real(Samples& samples) {
  for (const int64_t points : {5, 6}) {
    samples.push_back(
        {"fft_r2c", {in({2, points})}, kSignals, [](const Inputs& x) { fft::rfft(x[0]); }});
    samples.push_back(
        {"fft_c2r", {in({2, points / 2 + 1, 2})}, kSignals, [points](const Inputs& x) {
           fft::irfft(x[0], {.n = points});
         }});
  }
  samples.push_back({"fft_r2c",
                     {in({5, 2, 3})},
                     kSignals,
                     [](const Inputs& x) { fft::ihfft(x[0], {.dim = 0, .norm = "ortho"}); },
                     "conjugate"});
  samples.push_back({"fft_c2r",
                     {in({5, 3, 2})},
                     kSignals,
                     [](const Inputs& x) { fft::hfft(x[0], {.dim = 0, .norm = "forward"}); },
                     "conjugate"});
  for (const int64_t points : {720, 693, 101, 2 * 101}) {
    samples.push_back({"fft_r2c",
                       {in({40, points})},
                       kSignals,
                       [](const Inputs& x) { fft::rfft(x[0]); },
                       "many",
                       true});
    samples.push_back({"fft_c2r",
                       {in({40, points / 2 + 1, 2})},
                       kSignals,
                       [points](const Inputs& x) { fft::irfft(x[0], {.n = points}); },
                       "many",
                       true});
  }
}

}  // namespace

Samples fft_samples() {
  Samples samples;
  samples.push_back({"checked_overlap", {in({2, 5}, 0.5, 2)}, kWide, [](const Inputs& x) {
                       dispatch(ops::kCheckedOverlap, {&x[0]}, Site::here());
                     }});
  add_complex(samples);
  add_real(samples);
  return samples;
}

}  // namespace flow::contract

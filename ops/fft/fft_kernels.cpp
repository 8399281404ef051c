// Fourier transforms on the CPU, by plain loops and by KissFFT. The lines along the transformed dim
// are independent, and threads share them.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/fft/fft_op.h"
#include "ops/fft/plain_line.h"
#include "ops/kernel/contiguous.h"
#include "ops/local_parts.h"
#if FLOW_WITH_KISSFFT
#include "ops/fft/kiss_line.h"
#endif

namespace flow::ops {

void register_fft(KernelTable& table);

namespace {

enum class Kind { kC2c, kR2c, kC2r };

// What a kernel prepares for a call. A line is transformed as `length` complex numbers.
template <class Line>
struct FftState {
  using Complex = std::complex<typename Line::Real>;

  FftState(const FftAttrs& attrs, int64_t size, bool inverse)
      : points(attrs.points), length(size), line(size, inverse) {}

  int64_t outer = 1;  // the lines before the dim, and those after it
  int64_t inner = 1;
  int64_t points;
  int64_t length;
  Line line;
  std::vector<Complex> turns;  // exp(-2 π i k / points) up to points / 2, of real signals in halves

  int64_t frequencies() const { return points / 2 + 1; }

  bool is_halved() const { return length != points; }

  // Two lines, and the memory of the transform.
  int64_t scratch_bytes() const {
    return 2 * (length + 1) * static_cast<int64_t>(sizeof(Complex)) + line.scratch_bytes();
  }
};

template <class Complex>
struct Buffers {
  Complex* in;
  Complex* out;
  std::byte* rest;
};

// Calls fn(line, outer index, inner index, buffers) for all lines.
template <class Line, class Fn>
void for_each_line(const KernelContext& ctx, const FftState<Line>& state, const Fn& fn) {
  using Complex = typename FftState<Line>::Complex;
  constexpr int64_t kGrain = 1 << 13;  // points
  const int64_t grain = std::max<int64_t>(1, kGrain / state.length);
  ctx.pool().parallel_for(0, state.outer * state.inner, grain, [&](int64_t begin, int64_t end) {
    const Ref<Storage> memory = ctx.scratch(static_cast<size_t>(state.scratch_bytes()));
    auto* const in = reinterpret_cast<Complex*>(memory->data());
    Complex* const out = in + state.length + 1;
    const Buffers<Complex> buffers{in, out, reinterpret_cast<std::byte*>(out + state.length + 1)};
    const Line line = state.line.for_thread();
    for (int64_t i = begin; i < end; ++i)
      fn(line, i / state.inner, i % state.inner, buffers);
  });
}

template <class Line>
void run_c2c(const KernelContext& ctx) {
  using T = typename Line::Real;
  using Complex = std::complex<T>;
  const auto& state = ctx.state_as<FftState<Line>>();
  const auto scale = static_cast<T>(ctx.attrs_as<FftAttrs>().scale);
  const int64_t n = state.points, stride = state.inner;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  const auto* const source = reinterpret_cast<const Complex*>(x.data());
  auto* const target = reinterpret_cast<Complex*>(y.data());
  for_each_line(ctx, state, [&](const Line& line, int64_t outer, int64_t inner, const auto& own) {
    const Complex* const from = source + outer * n * stride + inner;
    Complex* const to = target + outer * n * stride + inner;
    if (stride == 1) {
      line.run(from, to, own.rest);
      for (int64_t k = 0; k < n; ++k)
        to[k] *= scale;
      return;
    }
    for (int64_t j = 0; j < n; ++j)
      own.in[j] = from[j * stride];
    line.run(own.in, own.out, own.rest);
    for (int64_t k = 0; k < n; ++k)
      to[k * stride] = own.out[k] * scale;
  });
  y.finish(ctx);
}

// True if frequency k stands for itself and its conjugate.
bool is_paired(int64_t k, int64_t points) {
  return k != 0 && 2 * k != points;
}

// In halves, z[j] = x[2 j] + i x[2 j + 1] has the transform Z, of which
//   y[k] = (Z[k] + conj(Z[-k])) / 2 + exp(-2 π i k / n) (Z[k] - conj(Z[-k])) / (2 i).
template <class Line>
void run_r2c(const KernelContext& ctx) {
  using T = typename Line::Real;
  using Complex = std::complex<T>;
  const auto& state = ctx.state_as<FftState<Line>>();
  const auto& attrs = ctx.attrs_as<FftAttrs>();
  const auto scale = static_cast<T>(attrs.scale), paired = static_cast<T>(attrs.paired) * scale;
  const int64_t n = state.points, m = state.frequencies(), h = state.length;
  const int64_t stride = state.inner;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  auto* const target = reinterpret_cast<Complex*>(y.data());
  for_each_line(ctx, state, [&](const Line& line, int64_t outer, int64_t inner, const auto& own) {
    const T* const from = x.data() + outer * n * stride + inner;
    Complex* const to = target + outer * m * stride + inner;
    for (int64_t j = 0; j < h; ++j) {
      own.in[j] = state.is_halved() ? Complex(from[2 * j * stride], from[(2 * j + 1) * stride])
                                    : Complex(from[j * stride], 0);
    }
    line.run(own.in, own.out, own.rest);
    for (int64_t k = 0; k < m; ++k) {
      Complex value = own.out[k % h];
      if (state.is_halved()) {
        const Complex other = std::conj(own.out[(h - k) % h]);
        const Complex odd = (value - other) * Complex(0, T(-0.5));
        value = (value + other) * T(0.5) + state.turns[static_cast<size_t>(k)] * odd;
      }
      value *= is_paired(k, n) ? paired : scale;
      to[k * stride] = attrs.inverse ? std::conj(value) : value;
    }
  });
  y.finish(ctx);
}

// In halves, the real and imaginary parts of the transform of
//   Z[k] = x[k] + conj(x[h - k]) + i exp(2 π i k / n) (x[k] - conj(x[h - k]))
// are the elements 2 j and 2 j + 1.
template <class Line>
void run_c2r(const KernelContext& ctx) {
  using T = typename Line::Real;
  using Complex = std::complex<T>;
  const auto& state = ctx.state_as<FftState<Line>>();
  const auto& attrs = ctx.attrs_as<FftAttrs>();
  const auto scale = static_cast<T>(attrs.scale), paired = static_cast<T>(attrs.paired) * scale;
  const int64_t n = state.points, m = state.frequencies(), h = state.length;
  const int64_t stride = state.inner;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  const auto* const source = reinterpret_cast<const Complex*>(x.data());
  for_each_line(ctx, state, [&](const Line& line, int64_t outer, int64_t inner, const auto& own) {
    const Complex* const from = source + outer * m * stride + inner;
    T* const to = y.data() + outer * n * stride + inner;
    const auto frequency = [&](int64_t k) -> Complex {
      const Complex value = from[k * stride];
      if (!is_paired(k, n)) return {value.real() * scale, 0};
      return (attrs.inverse ? value : std::conj(value)) * paired;
    };
    for (int64_t k = 0; k < h; ++k) {
      if (state.is_halved()) {
        const Complex value = frequency(k), other = std::conj(frequency(h - k));
        const Complex turn = std::conj(state.turns[static_cast<size_t>(k)]) * Complex(0, 1);
        own.in[k] = value + other + turn * (value - other);
      } else {
        own.in[k] = k < m ? frequency(k) : std::conj(frequency(n - k));
      }
    }
    line.run(own.in, own.out, own.rest);
    for (int64_t j = 0; j < h; ++j) {
      if (state.is_halved()) {
        to[2 * j * stride] = own.out[j].real();
        to[(2 * j + 1) * stride] = own.out[j].imag();
      } else {
        to[j * stride] = own.out[j].real();
      }
    }
  });
  y.finish(ctx);
}

template <class Line, Kind kKind>
KernelChoice choose(const KernelQuery& query) {
  using T = typename Line::Real;
  using Complex = std::complex<T>;
  const auto& attrs = query.attrs_as<FftAttrs>();
  const bool is_halved = Line::kHalves && kKind != Kind::kC2c && attrs.points % 2 == 0;
  // The sign of a real signal's transform is that of its conjugate.
  const bool inverse = kKind == Kind::kC2c ? attrs.inverse : kKind == Kind::kC2r;
  const auto state =
      std::make_shared<FftState<Line>>(attrs, is_halved ? attrs.points / 2 : attrs.points, inverse);
  const Shape& shape = query.input(0).local_shape;
  const int64_t num_dims = shape.size() - (kKind == Kind::kR2c ? 0 : 1);
  for (int64_t i = 0; i < num_dims; ++i) {
    if (i < attrs.dim) state->outer *= shape[i];
    if (i > attrs.dim) state->inner *= shape[i];
  }
  if (is_halved) {
    const double step = -2 * std::numbers::pi / static_cast<double>(attrs.points);
    for (int64_t k = 0; k < state->frequencies(); ++k)
      state->turns.push_back(Complex(std::polar(1.0, step * static_cast<double>(k))));
  }
  KernelScratch scratch = contiguous_scratch(query, dtype_of<T>);
  scratch.push_back({state->scratch_bytes(), state->outer * state->inner});
  constexpr KernelFn kFn = kKind == Kind::kC2c   ? run_c2c<Line>
                           : kKind == Kind::kR2c ? run_r2c<Line>
                                                 : run_c2r<Line>;
  return with_scratch({kFn, state}, scratch);
}

template <class T>
void run_checked_overlap(const KernelContext& ctx) {
  constexpr T kLeast = 1e-11F;
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  for (int64_t i = 0; i < ctx.out(0).numel(); ++i) {
    if (!(x.data()[i] >= kLeast)) {  // also NaN
      throw InvalidArgument(
          "[istft] the weights of the windows add up to 0 at an element of the signal; use a "
          "window without zeros, a smaller hop_length, or center = true",
          ctx.site);
    }
    y.data()[i] = x.data()[i];
  }
  y.finish(ctx);
}

KernelChoice select_checked_overlap(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const bool is_double = query.input(0).dtype == DType::kFloat64;
  const KernelFn fn = is_double ? run_checked_overlap<double> : run_checked_overlap<float>;
  return with_scratch({fn}, contiguous_scratch(query, query.input(0).dtype));
}

template <Kind kKind>
KernelChoice select_plain(const KernelQuery& query) {
  return parts_fit(query) ? choose<PlainLine, kKind>(query) : KernelChoice{};
}

#if FLOW_WITH_KISSFFT
template <Kind kKind>
KernelChoice select_kissfft(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  if (query.input(0).dtype == DType::kFloat64) return choose<KissLine<double>, kKind>(query);
  return choose<KissLine<float>, kKind>(query);
}
#endif

}  // namespace

void register_fft(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  table.add(kFftC2c, kCpu, {"reference", select_plain<Kind::kC2c>});
  table.add(kFftR2c, kCpu, {"reference", select_plain<Kind::kR2c>});
  table.add(kFftC2r, kCpu, {"reference", select_plain<Kind::kC2r>});
  table.add(kCheckedOverlap, kCpu, {"reference", select_checked_overlap});
#if FLOW_WITH_KISSFFT
  table.add(kFftC2c, kCpu, {"kissfft", select_kissfft<Kind::kC2c>});
  table.add(kFftR2c, kCpu, {"kissfft", select_kissfft<Kind::kR2c>});
  table.add(kFftC2r, kCpu, {"kissfft", select_kissfft<Kind::kC2r>});
#endif
}

}  // namespace flow::ops

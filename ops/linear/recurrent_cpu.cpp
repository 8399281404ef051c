// Kernels of ops/linear/recurrent_op.h. They process one row of all gates at a time, which stays in
// the first-level cache.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/vector_math.h"
#include "ops/linear/recurrent_op.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

void register_recurrent_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 14;

// The number of elements of a row that are processed at a time if results overwrite operands.
constexpr int64_t kChunk = 256;

// y[i] = f(x[i]…), by vectors or one by one.
template <bool kVectors, class T, class F, class... X>
void each(T* y, int64_t n, const F& f, const X*... x) {
  if constexpr (kVectors) {
    map(y, n, f, x...);
  } else {
    for (int64_t i = 0; i < n; ++i)
      y[i] = f(x[i]...);
  }
}

struct Sigmoid {
  double operator()(double x) const { return 1 / (1 + std::exp(-x)); }

  float operator()(float x) const { return 1 / (1 + std::exp(-x)); }

  template <class T>
  Vec<T> operator()(Vec<T> x) const {
    return sigmoid(x);
  }
};

struct Tanh {
  double operator()(double x) const { return std::tanh(x); }

  float operator()(float x) const { return std::tanh(x); }

  template <class T>
  Vec<T> operator()(Vec<T> x) const {
    return tanh(x);
  }
};

constexpr Sigmoid kSigmoid;
constexpr Tanh kTanh;

// The number 1 in the type of x.
template <class T>
Vec<T> one_like(Vec<T> /*x*/) {
  return Vec<T>::fill(T{1});
}

template <class T>

requires std::is_floating_point_v<T> T one_like(T /*x*/) {
  return 1;
}

template <class Fn>
void for_rows(const KernelContext& ctx, const Fn& fn) {
  const int64_t width = ctx.in(2).shape().back();
  const int64_t rows = width == 0 ? 0 : ctx.in(2).numel() / width;
  ctx.pool().parallel_for(0, rows, kGrain / std::max<int64_t>(4 * width, 1) + 1,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row)
                              fn(row, width);
                          });
}

template <bool kVectors, class T>
void lstm(const KernelContext& ctx) {
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1), cell(ctx, 2);
  const ContiguousOutput<T> h(ctx, 0), c(ctx, 1);
  for_rows(ctx, [&](int64_t row, int64_t n) {
    const T* x = a.data() + row * 4 * n;
    const T* s = b.data() + row * 4 * n;
    T* fresh = c.data() + row * n;
    each<kVectors>(
        fresh, n,
        [](auto xi, auto si, auto xf, auto sf, auto xg, auto sg, auto old) {
          return kSigmoid(xf + sf) * old + kSigmoid(xi + si) * kTanh(xg + sg);
        },
        x, s, x + n, s + n, x + 2 * n, s + 2 * n, cell.data() + row * n);
    each<kVectors>(
        h.data() + row * n, n,
        [](auto xo, auto so, auto now) { return kSigmoid(xo + so) * kTanh(now); }, x + 3 * n,
        s + 3 * n, static_cast<const T*>(fresh));
  });
  h.finish(ctx);
  c.finish(ctx);
}

// A gradient that was not given counts as zeros.
template <class T>
class Gradient {
 public:
  Gradient(const KernelContext& ctx, int input) {
    if (ctx.has_input(input)) {
      given_.emplace(ctx, input);
    } else {
      zeros_.resize(static_cast<size_t>(ctx.in(2).shape().back()));
    }
  }

  const T* row(int64_t row, int64_t n) const {
    return given_ ? given_->data() + row * n : zeros_.data();
  }

 private:
  std::optional<ContiguousInput<T>> given_;
  std::vector<T> zeros_;
};

template <bool kVectors, class T>
void lstm_backward(const KernelContext& ctx) {
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1), cell(ctx, 2);
  const Gradient<T> dh(ctx, 3), dc(ctx, 4);
  const ContiguousOutput<T> dgates(ctx, 0), dcell(ctx, 1);
  for_rows(ctx, [&](int64_t row, int64_t n) {
    const T* x = a.data() + row * 4 * n;
    const T* s = b.data() + row * 4 * n;
    const T* old = cell.data() + row * n;
    T* di = dgates.data() + row * 4 * n;
    T* df = di + n;
    T* dg = di + 2 * n;
    T* d_o = di + 3 * n;
    T* d = dcell.data() + row * n;
    // The gates are stored in the memory of their gradients, and tanh of the cell in that of d.
    const auto gate = [](auto u, auto v) { return kSigmoid(u + v); };
    each<kVectors>(di, n, gate, x, s);
    each<kVectors>(df, n, gate, x + n, s + n);
    each<kVectors>(
        dg, n, [](auto u, auto v) { return kTanh(u + v); }, x + 2 * n, s + 2 * n);
    each<kVectors>(d_o, n, gate, x + 3 * n, s + 3 * n);
    const auto as_input = [](const T* p) { return p; };
    each<kVectors>(
        d, n, [](auto i, auto f, auto g, auto c) { return kTanh(f * c + i * g); }, as_input(di),
        as_input(df), as_input(dg), old);
    const T* dhidden = dh.row(row, n);
    std::array<T, kChunk> through;
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t count = std::min(kChunk, n - at);
      each<kVectors>(
          through.data(), count,
          [](auto dy, auto dnow, auto o, auto t) { return dnow + dy * o * (one_like(t) - t * t); },
          dhidden + at, dc.row(row, n) + at, as_input(d_o) + at, as_input(d) + at);
      each<kVectors>(
          d_o + at, count, [](auto dy, auto o, auto t) { return dy * t * o * (one_like(o) - o); },
          dhidden + at, as_input(d_o) + at, as_input(d) + at);
      each<kVectors>(
          d + at, count, [](auto u, auto f) { return u * f; }, as_input(through.data()),
          as_input(df) + at);
      each<kVectors>(
          df + at, count, [](auto u, auto c, auto f) { return u * c * f * (one_like(f) - f); },
          as_input(through.data()), old + at, as_input(df) + at);
      std::array<T, kChunk> input_gate;
      std::copy_n(di + at, count, input_gate.data());
      each<kVectors>(
          di + at, count, [](auto u, auto g, auto i) { return u * g * i * (one_like(i) - i); },
          as_input(through.data()), as_input(dg) + at, as_input(input_gate.data()));
      each<kVectors>(
          dg + at, count, [](auto u, auto i, auto g) { return u * i * (one_like(g) - g * g); },
          as_input(through.data()), as_input(input_gate.data()), as_input(dg) + at);
    }
  });
  dgates.finish(ctx);
  dcell.finish(ctx);
}

template <bool kVectors, class T>
void gru(const KernelContext& ctx) {
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1), hidden(ctx, 2);
  const ContiguousOutput<T> y(ctx, 0);
  for_rows(ctx, [&](int64_t row, int64_t n) {
    const T* x = a.data() + row * 3 * n;
    const T* s = b.data() + row * 3 * n;
    each<kVectors>(
        y.data() + row * n, n,
        [](auto xr, auto sr, auto xz, auto sz, auto xn, auto sn, auto h) {
          const auto fresh = kTanh(xn + kSigmoid(xr + sr) * sn);
          return fresh + kSigmoid(xz + sz) * (h - fresh);
        },
        x, s, x + n, s + n, x + 2 * n, s + 2 * n, hidden.data() + row * n);
  });
  y.finish(ctx);
}

template <bool kVectors, class T>
void gru_backward(const KernelContext& ctx) {
  const ContiguousInput<T> a(ctx, 0), b(ctx, 1), hidden(ctx, 2), dy(ctx, 3);
  const ContiguousOutput<T> dx(ctx, 0), ds(ctx, 1), dh(ctx, 2);
  for_rows(ctx, [&](int64_t row, int64_t n) {
    const T* x = a.data() + row * 3 * n;
    const T* s = b.data() + row * 3 * n;
    const T* h = hidden.data() + row * n;
    const T* own = dy.data() + row * n;
    T* to_x = dx.data() + row * 3 * n;
    T* to_s = ds.data() + row * 3 * n;
    std::array<T, kChunk> reset, keep, fresh;
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t count = std::min(kChunk, n - at);
      const T* r = reset.data();
      const T* z = keep.data();
      const T* m = fresh.data();
      const auto gate = [](auto u, auto v) { return kSigmoid(u + v); };
      each<kVectors>(reset.data(), count, gate, x + at, s + at);
      each<kVectors>(keep.data(), count, gate, x + n + at, s + n + at);
      each<kVectors>(
          fresh.data(), count, [](auto u, auto v, auto w) { return kTanh(u + v * w); },
          x + 2 * n + at, r, s + 2 * n + at);
      T* dn = to_x + 2 * n + at;
      each<kVectors>(
          dn, count,
          [](auto d, auto u, auto v) { return d * (one_like(u) - u) * (one_like(v) - v * v); },
          own + at, z, m);
      const T* from_new = dn;
      each<kVectors>(
          to_s + 2 * n + at, count, [](auto d, auto u) { return d * u; }, from_new, r);
      each<kVectors>(
          to_x + n + at, count,
          [](auto d, auto u, auto v, auto old) { return d * (old - v) * u * (one_like(u) - u); },
          own + at, z, m, h + at);
      each<kVectors>(
          to_x + at, count, [](auto d, auto w, auto u) { return d * w * u * (one_like(u) - u); },
          from_new, s + 2 * n + at, r);
      each<kVectors>(
          dh.data() + row * n + at, count, [](auto d, auto u) { return d * u; }, own + at, z);
    }
    std::copy_n(to_x, 2 * n, to_s);
  });
  dx.finish(ctx);
  ds.finish(ctx);
  dh.finish(ctx);
}

template <KernelFn kFloat, KernelFn kDouble>
KernelChoice select_rows(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  constexpr std::array kKernels = {kFloat, kDouble};
  return {kKernels[query.input(2).dtype == DType::kFloat64 ? 1 : 0]};
}

template <bool kVectors>
void add_kernels(KernelTable& table, const char* name) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  // Elements are computed one by one in double, whatever the dtype.
  using F = std::conditional_t<kVectors, float, double>;
  table.add(kLstmGates, kCpu, {name, select_rows<lstm<kVectors, F>, lstm<kVectors, double>>});
  table.add(kLstmGatesBackward, kCpu,
            {name, select_rows<lstm_backward<kVectors, F>, lstm_backward<kVectors, double>>});
  table.add(kGruGates, kCpu, {name, select_rows<gru<kVectors, F>, gru<kVectors, double>>});
  table.add(kGruGatesBackward, kCpu,
            {name, select_rows<gru_backward<kVectors, F>, gru_backward<kVectors, double>>});
}

}  // namespace

void register_recurrent_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  add_kernels<false>(table, "reference");
#endif
  add_kernels<true>(table, FLOW_ISA_NAME);
}

#include "ops/kernel/isa_end.h"

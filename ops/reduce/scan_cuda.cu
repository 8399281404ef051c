// Running sums and products on CUDA devices, in double or int64. A team of threads computes each
// line, and each thread a stretch of it; if lines are adjacent in memory, one thread computes each
// line.
#include "ops/kernel/rows_cuda.cuh"
#include "ops/reduce/scan_op.h"

namespace flow::ops {

void register_scan_cuda(KernelTable& table);

namespace {

template <class T>
using Running = std::conditional_t<kIsFloat<T>, double, int64_t>;
template <class T>
using Result = std::conditional_t<kIsFloat<T>, T, int64_t>;

template <class T>
__device__ Running<T> running(T x) {
  return static_cast<Running<T>>(widen(x));
}

template <class T>
__device__ Result<T> result(Running<T> x) {
  return narrow<Result<T>>(static_cast<Wide<Result<T>>>(x));
}

// Integers wrap around.
struct Add {
  template <class C>
  static __device__ C join(C a, C b) {
    if constexpr (std::is_same_v<C, double>) {
      return a + b;
    } else {
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  }

  static constexpr int64_t kStart = 0;
};

struct Multiply {
  template <class C>
  static __device__ C join(C a, C b) {
    if constexpr (std::is_same_v<C, double>) {
      return a * b;
    } else {
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
  }

  static constexpr int64_t kStart = 1;
};

constexpr int64_t kScanThreads = 128;

// What the elements of a stretch do to the value before it.
template <class C, class Join>
struct Stretch {
  C total;

  static __device__ Stretch of_none() { return {static_cast<C>(Join::kStart)}; }

  __device__ void add(C x) { total = Join::template join<C>(total, x); }

  __device__ C after(C before) const { return Join::template join<C>(before, total); }
};

// A product of floats may be outside of the range of double although the running product never is,
// such as that of large elements after a zero: it is value * 2^exponent.
template <>
struct Stretch<double, Multiply> {
  double value;  // less than 1 in size, if it is finite
  int64_t exponent;

  static __device__ Stretch of_none() { return {1, 0}; }

  __device__ void add(double x) {
    int shift = 0;
    value = std::frexp(value * x, &shift);
    exponent += shift;
  }

  __device__ double after(double before) const {
    constexpr int64_t kMost = 5000;  // more than the exponents of all doubles
    const int64_t shift = exponent < -kMost ? -kMost : exponent > kMost ? kMost : exponent;
    return std::ldexp(value * before, static_cast<int>(shift));
  }
};

template <class T, class Join>
struct Scan {
  const T* x;
  Result<T>* y;
  Slices slices;
  bool reverse;

  __device__ int64_t place(int64_t begin, int64_t i) const {
    return begin + (reverse ? slices.size - 1 - i : i) * slices.inner;
  }

  __device__ void operator()(int64_t line, Alone /*thread*/) const {
    run(slices.begin(line), 0, slices.size, static_cast<Running<T>>(Join::kStart));
  }

  __device__ void operator()(int64_t line, Team team) const {
    using C = Running<T>;
    __shared__ Stretch<C, Join> stretches[kScanThreads];
    const int64_t begin = slices.begin(line);
    const int64_t stretch = (slices.size + team.step() - 1) / team.step();
    const int64_t first = std::min(slices.size, team.first() * stretch);
    const int64_t last = std::min(slices.size, first + stretch);
    auto own = Stretch<C, Join>::of_none();
    for (int64_t i = first; i < last; ++i)
      own.add(running(x[place(begin, i)]));
    __syncthreads();  // stretches of the line before are read
    stretches[threadIdx.x] = own;
    __syncthreads();
    C before = static_cast<C>(Join::kStart);
    for (unsigned t = 0; t < threadIdx.x; ++t)
      before = stretches[t].after(before);
    run(begin, first, last, before);
  }

 private:
  __device__ void run(int64_t begin, int64_t first, int64_t last, Running<T> value) const {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = place(begin, i);
      value = Join::template join<Running<T>>(value, running(x[at]));
      y[at] = result<T>(value);
    }
  }
};

template <class T, class Join>
void scan(const KernelContext& ctx, const DenseInput& x, int64_t dim, bool reverse) {
  const Slices slices(ctx.in(0).shape(), dim);
  if (ctx.in(0).numel() == 0) return;
  const Scan<T, Join> f{x.as<T>(), ctx.out(0).as<Result<T>>(), slices, reverse};
  if (slices.inner >= 32) {
    return for_each_element(ctx, slices.count(), AloneCall<Scan<T, Join>>{f});
  }
  cuda::launch(team_kernel<Scan<T, Join>>, cuda::blocks_for(slices.count(), 1),
               static_cast<unsigned>(kScanThreads), 0, cuda::stream_of(ctx), f, slices.count());
}

void cumsum(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<CumsumAttrs>();
  const DenseInput x(ctx, 0);
  dispatch_all(ctx.in(0).meta->dtype,
               [&]<class T>() { scan<T, Add>(ctx, x, attrs.dim, attrs.reverse); });
}

void cumprod(const KernelContext& ctx) {
  const DenseInput x(ctx, 0);
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    scan<T, Multiply>(ctx, x, ctx.attrs_as<CumprodAttrs>().dim, false);
  });
}

// dx[k] = (x[0] … x[k - 1]) s[k] with s[k] = dy[k] + x[k + 1] s[k + 1]. There is no division, so
// zeros are not a special case. `sums` holds s. A stretch adds x[k] s[k] of its first element, its
// carry, to s of the element before, which is linear in the carry of the stretch after it.
template <class T>
struct CumprodBackward {
  const T* dy;
  const T* x;
  T* dx;
  double* sums;
  Slices slices;

  __device__ void operator()(int64_t line, Alone /*thread*/) const {
    run(slices.begin(line), 0, slices.size, 0, 1);
  }

  __device__ void operator()(int64_t line, Team team) const {
    __shared__ Stretch<double, Multiply> stretches[kScanThreads];
    __shared__ double carries[kScanThreads];
    const int64_t begin = slices.begin(line);
    const int64_t stretch = (slices.size + team.step() - 1) / team.step();
    const int64_t first = std::min(slices.size, team.first() * stretch);
    const int64_t last = std::min(slices.size, first + stretch);
    auto own = Stretch<double, Multiply>::of_none();
    for (int64_t k = first; k < last; ++k)
      own.add(running(x[begin + k * slices.inner]));
    __syncthreads();  // those of the line before are read
    stretches[threadIdx.x] = own;
    carries[threadIdx.x] = carry_of(begin, first, last, 0);
    __syncthreads();
    double carry = 0;
    for (unsigned t = blockDim.x - 1; t > threadIdx.x; --t)
      carry = carries[t] + stretches[t].after(carry);
    double before = 1;
    for (unsigned t = 0; t < threadIdx.x; ++t)
      before = stretches[t].after(before);
    run(begin, first, last, carry, before);
  }

 private:
  // The carry of a stretch, from that of the stretch after it.
  __device__ double carry_of(int64_t begin, int64_t first, int64_t last, double carry) const {
    for (int64_t k = last - 1; k >= first; --k) {
      const int64_t at = begin + k * slices.inner;
      carry = running(x[at]) * (running(dy[at]) + carry);
    }
    return carry;
  }

  __device__ void run(int64_t begin, int64_t first, int64_t last, double carry,
                      double before) const {
    for (int64_t k = last - 1; k >= first; --k) {
      const int64_t at = begin + k * slices.inner;
      sums[at] = running(dy[at]) + carry;
      carry = running(x[at]) * sums[at];
    }
    for (int64_t k = first; k < last; ++k) {
      const int64_t at = begin + k * slices.inner;
      dx[at] = result<T>(before * sums[at]);
      before *= running(x[at]);
    }
  }
};

void cumprod_backward(const KernelContext& ctx) {
  const DenseInput dy(ctx, 0);
  const DenseInput x(ctx, 1);
  const Slices slices(ctx.in(1).shape(), ctx.attrs_as<CumprodAttrs>().dim);
  if (ctx.in(1).numel() == 0) return;
  const ScratchArray<double> sums(ctx, ctx.in(1).numel());
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    using Backward = CumprodBackward<T>;
    const Backward f{dy.as<T>(), x.as<T>(), ctx.out(0).as<T>(), sums.data(), slices};
    if (slices.inner >= 32 || slices.size < kScanThreads) {
      return for_each_element(ctx, slices.count(), AloneCall<Backward>{f});
    }
    cuda::launch(team_kernel<Backward>, cuda::blocks_for(slices.count(), 1),
                 static_cast<unsigned>(kScanThreads), 0, cuda::stream_of(ctx), f, slices.count());
  });
}

}  // namespace

void register_scan_cuda(KernelTable& table) {
  table.add(kCumsum, DeviceType::kCuda, {"cuda", always<cumsum>});
  table.add(kCumprod, DeviceType::kCuda, {"cuda", always<cumprod>});
  table.add(kCumprodBackward, DeviceType::kCuda, {"cuda", always<cumprod_backward>});
}

}  // namespace flow::ops

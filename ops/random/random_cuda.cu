// CUDA kernels of ops/random/random.h. They draw the same elements as ops/random/random_cpu.cpp,
// with one thread for each element. Bits and uniform numbers are the same as on the CPU, because
// sums of a product are std::fma on both; normal numbers differ by the rounding of log, sin and
// cos.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/device/cuda_draw.h"
#include "core/device/device_memory.h"
#include "core/device/host_device.h"
#include "ops/kernel/element_cuda.cuh"
#include "ops/random/random_op.h"

namespace flow::ops {

namespace {

// The offset in memory and the logical index of the i-th local element (row-major).
struct DrawnPart {
  int64_t numel = 0;
  int num_dims = 0;
  int64_t size[kMaxDims] = {};
  int64_t begin[kMaxDims] = {};
  int64_t logical[kMaxDims] = {};  // strides
  int64_t memory[kMaxDims] = {};
};

DrawnPart drawn_part(const TensorMeta& meta) {
  DrawnPart part;
  part.numel = meta.local_numel;
  part.num_dims = static_cast<int>(meta.local_shape.size());
  const Strides logical = contiguous_strides(meta.shape);
  for (int d = 0; d < part.num_dims; ++d) {
    part.size[d] = meta.local_shape[d];
    part.begin[d] = meta.local_begin[d];
    part.logical[d] = logical[d];
    part.memory[d] = meta.strides[d];
  }
  return part;
}

struct Drawn {
  int64_t logical;
  int64_t memory;
};

__device__ Drawn drawn_at(const DrawnPart& part, int64_t i) {
  Drawn at = {0, 0};
  for (int d = part.num_dims - 1; d >= 0; --d) {
    const int64_t index = i % part.size[d];
    i /= part.size[d];
    at.logical += (part.begin[d] + index) * part.logical[d];
    at.memory += index * part.memory[d];
  }
  return at;
}

// ---- element i of a draw

__device__ uint32_t lane_of(const RandomStream& random, int64_t i) {
  const auto lanes = philox(random, static_cast<uint64_t>(i) / 4);
  return lanes[static_cast<size_t>(i & 3)];
}

struct LanePair {
  uint32_t low, high;
};

__device__ LanePair lanes_of(const RandomStream& random, int64_t i) {
  const auto lanes = philox(random, static_cast<uint64_t>(i) / 2);
  const auto first = static_cast<size_t>(2 * (i & 1));
  return {lanes[first], lanes[first + 1]};
}

struct UniformFloat {
  float a, scale;
  uint32_t mask;  // the bits that an element keeps

  __device__ float operator()(const RandomStream& random, int64_t i) const {
    return std::fma(scale, uniform_float(lane_of(random, i) & mask), a);
  }
};

struct UniformDouble {
  double a, scale;

  __device__ double operator()(const RandomStream& random, int64_t i) const {
    const LanePair lanes = lanes_of(random, i);
    return std::fma(scale, uniform_double(lanes.low, lanes.high), a);
  }
};

// Box and Muller (1958), applied to the pairs of lanes of a block: even elements use the cosine,
// odd ones the sine.
struct NormalFloat {
  float mean, std;

  __device__ float operator()(const RandomStream& random, int64_t i) const {
    const auto lanes = philox(random, static_cast<uint64_t>(i) / 4);
    const auto first = static_cast<size_t>(i & 2);
    const float u = uniform_float(lanes[first]) + 0x1p-24F;  // in (0, 1]
    const float angle = 6.2831853071795864769F * uniform_float(lanes[first + 1]);
    const float radius = std::sqrt(-2.0F * std::log(u)) * std;
    return std::fma(radius, (i & 1) == 0 ? std::cos(angle) : std::sin(angle), mean);
  }
};

struct NormalDouble {
  double mean, std;

  __device__ double operator()(const RandomStream& random, int64_t i) const {
    const auto lanes = philox(random, static_cast<uint64_t>(i) / 2);
    const double u = uniform_double(lanes[0], lanes[1]) + 0x1p-53;
    const double angle = 6.2831853071795864769 * uniform_double(lanes[2], lanes[3]);
    const double radius = std * std::sqrt(-2 * std::log(u));
    return std::fma(radius, (i & 1) == 0 ? std::cos(angle) : std::sin(angle), mean);
  }
};

// low + ⌊bits · range / 2^w⌋ (Lemire 2019, without the rejection step).
struct NarrowIntegers {
  int64_t low;
  uint64_t range;  // at most 2^32

  __device__ int64_t operator()(const RandomStream& random, int64_t i) const {
    return low + static_cast<int64_t>(uint64_t{lane_of(random, i)} * range >> 32);
  }
};

// The upper word of a product of words, from the products of its halves.
FLOW_HOST_DEVICE uint64_t upper_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = static_cast<uint32_t>(a);
  const uint64_t a1 = a >> 32;
  const uint64_t b0 = static_cast<uint32_t>(b);
  const uint64_t b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const uint64_t other = a0 * b1 + static_cast<uint32_t>(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

struct WideIntegers {
  int64_t low;
  uint64_t range;

  __device__ int64_t operator()(const RandomStream& random, int64_t i) const {
    const LanePair lanes = lanes_of(random, i);
    const uint64_t bits = uint64_t{lanes.high} << 32 | lanes.low;
    return static_cast<int64_t>(static_cast<uint64_t>(low) + upper_product(bits, range));
  }
};

template <class T, class Draw>
__global__ void fill(DrawnPart part, cuda::DeviceDraw drawn, Draw draw, T* y) {
  const RandomStream random = drawn.stream();
  for (int64_t i = grid_thread(); i < part.numel; i += grid_threads()) {
    const Drawn at = drawn_at(part, i);
    y[at.memory] = narrow<T>(static_cast<DeviceCompute<T>>(draw(random, at.logical)));
  }
}

template <class Draw>
void fill_dtype(const KernelContext& ctx, const Draw& draw) {
  const TensorView& y = ctx.out(0);
  dispatch_all(y.meta->dtype, [&]<class T>() {
    cuda::launch(fill<T, Draw>, cuda::blocks_for(y.numel()), cuda::kBlockThreads, 0,
                 cuda::stream_of(ctx), drawn_part(*y.meta), cuda::draw_of(ctx), draw, y.as<T>());
  });
}

void fill_uniform(const KernelContext& ctx, double from, double to) {
  const DType dtype = ctx.out(0).meta->dtype;
  if (dtype == DType::kFloat64) return fill_dtype(ctx, UniformDouble{from, to - from});
  // Without this mask, numbers just below 1 would be rounded to 1 in 16 bits.
  const int kept = dtype == DType::kFloat16 ? 11 : dtype == DType::kBFloat16 ? 8 : 32;
  fill_dtype(ctx, UniformFloat{static_cast<float>(from), static_cast<float>(to - from),
                               ~uint32_t{0} << (32 - kept)});
}

void fill_normal(const KernelContext& ctx, double mean, double std) {
  if (ctx.out(0).meta->dtype == DType::kFloat64) {
    fill_dtype(ctx, NormalDouble{mean, std});
  } else {
    fill_dtype(ctx, NormalFloat{static_cast<float>(mean), static_cast<float>(std)});
  }
}

void uniform(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_uniform(ctx, attrs.a, attrs.b);
}

void normal(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_normal(ctx, attrs.a, attrs.b);
}

void uniform_fill(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawInPlaceAttrs>();
  fill_uniform(ctx, attrs.a, attrs.b);
}

void normal_fill(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawInPlaceAttrs>();
  fill_normal(ctx, attrs.a, attrs.b);
}

void randint(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<RandintAttrs>();
  const uint64_t range = static_cast<uint64_t>(attrs.high) - static_cast<uint64_t>(attrs.low);
  if (range <= uint64_t{1} << 32) {
    fill_dtype(ctx, NarrowIntegers{attrs.low, range});
  } else {
    fill_dtype(ctx, WideIntegers{attrs.low, range});
  }
}

// p may have other strides than y. What is no probability gives NaN, because a kernel cannot raise
// an error.
template <class T, class Draw>
__global__ void choose(DrawnPart to, DrawnPart from, cuda::DeviceDraw drawn, Draw draw, const T* p,
                       T* y) {
  const RandomStream random = drawn.stream();
  for (int64_t i = grid_thread(); i < to.numel; i += grid_threads()) {
    const Drawn at = drawn_at(to, i);
    const auto chance = widen(p[drawn_at(from, i).memory]);
    const bool is_fit = chance >= 0 && chance <= 1;  // false for NaN
    const bool is_one = draw(random, at.logical) < chance;
    y[at.memory] = narrow<T>(static_cast<DeviceCompute<T>>(is_fit ? (is_one ? 1 : 0) : NAN));
  }
}

template <class T, class Draw>
void run_choose(const KernelContext& ctx, const Draw& draw) {
  const TensorView& y = ctx.out(0);
  cuda::launch(choose<T, Draw>, cuda::blocks_for(y.numel()), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), drawn_part(*y.meta), drawn_part(*ctx.in(0).meta),
               cuda::draw_of(ctx), draw, ctx.in(0).as<T>(), y.as<T>());
}

void bernoulli(const KernelContext& ctx) {
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      run_choose<T>(ctx, UniformDouble{0, 1});
    } else {
      run_choose<T>(ctx, UniformFloat{0, 1, ~uint32_t{0}});
    }
  });
}

// The keys are sorted on the host: all ranks sort the same keys and keep their part.
void randperm(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const auto n = static_cast<size_t>(y.meta->shape[0]);
  std::vector<int64_t> keys(n);
  for (size_t i = 0; i < n; ++i) {
    const auto lanes = philox(ctx.random, i / 2);
    const uint64_t bits = uint64_t{lanes[2 * (i % 2) + 1]} << 32 | lanes[2 * (i % 2)];
    const auto least = static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
    keys[i] = static_cast<int64_t>(least + upper_product(bits, ~uint64_t{0}));
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  const auto begin = static_cast<size_t>(y.meta->local_begin[0]);
  const auto count = static_cast<size_t>(y.numel());
  const Ref<Storage> host = allocate_staging(ctx.rank, y.meta->local_bytes());
  dispatch_all(y.meta->dtype, [&]<class T>() {
    T* out = reinterpret_cast<T*>(host->data());
    for (size_t i = 0; i < count; ++i) {
      if constexpr (kIsHalf<T>) {
        out[i] = T(static_cast<float>(order[begin + i]));
      } else {
        out[i] = static_cast<T>(order[begin + i]);
      }
    }
  });
  copy_bytes(ctx.rank, y.data, DeviceType::kCuda, host->data(), DeviceType::kCpu,
             y.meta->local_bytes());
}

}  // namespace

void register_random_cuda(KernelTable& table) {
  table.add(kUniform, DeviceType::kCuda, {"cuda", always<uniform>});
  table.add(kNormal, DeviceType::kCuda, {"cuda", always<normal>});
  table.add(kRandint, DeviceType::kCuda, {"cuda", always<randint>});
  table.add(kUniformFill, DeviceType::kCuda, {"cuda", always<uniform_fill>});
  table.add(kNormalFill, DeviceType::kCuda, {"cuda", always<normal_fill>});
  table.add(kBernoulli, DeviceType::kCuda, {"cuda", always<bernoulli>});
  table.add(kRandperm, DeviceType::kCuda, {"cuda", always<randperm>});
}

}  // namespace flow::ops

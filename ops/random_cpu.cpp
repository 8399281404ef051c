// Kernels of ops/random.h. Every element is computed from its own Philox block, so a run of logical
// indices can start anywhere; whole groups of blocks are made at once and the wanted part is kept.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/context.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/random_op.h"
#include "ops/vector_math.h"

#include "ops/isa_begin.h"

namespace {

// Blocks made together: enough for the widest vectors, small enough for the first cache.
constexpr int64_t kBlocks = 64;
// Elements a thread takes at least.
constexpr int64_t kGrain = 1 << 15;

// lanes[4 b + l] is lane l of block first + b.
void philox_group(const RandomStream& random, uint64_t first, uint32_t* lanes) {
  std::array<uint32_t, kBlocks> c0, c1, c2, c3;
  for (size_t b = 0; b < kBlocks; ++b) {
    c0[b] = static_cast<uint32_t>(first + b);
    c1[b] = static_cast<uint32_t>((first + b) >> 32);
    c2[b] = static_cast<uint32_t>(random.seed >> 32);
    c3[b] = static_cast<uint32_t>(random.stream >> 32) ^ static_cast<uint32_t>(random.rank);
  }
  uint32_t k0 = static_cast<uint32_t>(random.seed);
  uint32_t k1 = static_cast<uint32_t>(random.stream);
  for (int round = 0; round < 10; ++round) {
    for (size_t b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[b];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
      c0[b] = n0;
      c2[b] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (size_t b = 0; b < kBlocks; ++b) {
    lanes[4 * b] = c0[b];
    lanes[4 * b + 1] = c1[b];
    lanes[4 * b + 2] = c2[b];
    lanes[4 * b + 3] = c3[b];
  }
}

constexpr size_t kLanes = 4 * kBlocks;

// Box and Muller 1958 on the pairs of a block: even elements take the cosine, odd ones the sine.
void normals_of(const uint32_t* lanes, float mean, float std, float* out) {
  std::array<float, kLanes / 2> radius, angle;
  for (size_t i = 0; i < kLanes / 2; ++i) {
    radius[i] = uniform_float(lanes[2 * i]) + 0x1p-24F;  // in (0, 1]
    angle[i] = 6.2831853071795864769F * uniform_float(lanes[2 * i + 1]);
  }
  std::array<float, kLanes / 2> cosine, sine;
  for (size_t i = 0; i < kLanes / 2; i += Vec<float>::kLanes) {
    const Vec<float> r =
        sqrt(Vec<float>::fill(-2.0F) * log(Vec<float>::load(&radius[i]))) * Vec<float>::fill(std);
    const Vec<float> a = Vec<float>::load(&angle[i]);
    (Vec<float>::fill(mean) + r * cos(a)).store(&cosine[i]);
    (Vec<float>::fill(mean) + r * sin(a)).store(&sine[i]);
  }
  for (size_t i = 0; i < kLanes / 2; ++i) {
    out[2 * i] = cosine[i];
    out[2 * i + 1] = sine[i];
  }
}

// One double of two pairs of lanes: block b gives elements 2 b and 2 b + 1.
void normals_of(const uint32_t* lanes, double mean, double std, double* out) {
  for (size_t b = 0; b < kBlocks; ++b) {
    const double u = uniform_double(lanes[4 * b], lanes[4 * b + 1]) + 0x1p-53;
    const double v = uniform_double(lanes[4 * b + 2], lanes[4 * b + 3]);
    const double radius = std * std::sqrt(-2 * std::log(u));
    out[2 * b] = mean + radius * std::cos(2 * M_PI * v);
    out[2 * b + 1] = mean + radius * std::sin(2 * M_PI * v);
  }
}

// What a draw makes of the lanes of kBlocks blocks; kElements of them.
struct UniformFloat {
  using Element = float;
  static constexpr size_t kElements = kLanes;
  float a, scale;

  UniformFloat(double from, double to)
      : a(static_cast<float>(from)), scale(static_cast<float>(to - from)) {}

  void make(const uint32_t* lanes, float* out) const {
    for (size_t i = 0; i < kElements; ++i)
      out[i] = a + scale * uniform_float(lanes[i]);
  }
};

struct UniformDouble {
  using Element = double;
  static constexpr size_t kElements = kLanes / 2;
  double a, scale;

  UniformDouble(double from, double to) : a(from), scale(to - from) {}

  void make(const uint32_t* lanes, double* out) const {
    for (size_t i = 0; i < kElements; ++i) {
      out[i] = a + scale * uniform_double(lanes[2 * i], lanes[2 * i + 1]);
    }
  }
};

template <class T>
struct Normal {
  using Element = T;
  static constexpr size_t kElements = sizeof(T) == 4 ? kLanes : kLanes / 2;
  T mean, std;

  Normal(double a, double b) : mean(static_cast<T>(a)), std(static_cast<T>(b)) {}

  void make(const uint32_t* lanes, T* out) const { normals_of(lanes, mean, std, out); }
};

// low + ⌊bits · range / 2^w⌋ (Lemire 2019, without the rejection step).
struct NarrowIntegers {
  using Element = int64_t;
  static constexpr size_t kElements = kLanes;
  int64_t low;
  uint64_t range;  // at most 2^32

  void make(const uint32_t* lanes, int64_t* out) const {
    for (size_t i = 0; i < kElements; ++i) {
      out[i] = low + static_cast<int64_t>(static_cast<uint64_t>(lanes[i]) * range >> 32);
    }
  }
};

struct WideIntegers {
  using Element = int64_t;
  static constexpr size_t kElements = kLanes / 2;
  int64_t low;
  uint64_t range;

  void make(const uint32_t* lanes, int64_t* out) const {
    __extension__ using Wide = unsigned __int128;
    for (size_t i = 0; i < kElements; ++i) {
      const uint64_t bits = static_cast<uint64_t>(lanes[2 * i + 1]) << 32 | lanes[2 * i];
      const auto scaled = static_cast<uint64_t>(static_cast<Wide>(bits) * range >> 64);
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + scaled);
    }
  }
};

template <class T, class S>
T convert_draw(S value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Calls use(i, element) for the logical indices first … first + count - 1, i counted from 0.
template <class Draw, class Use>
void draw_run(const Draw& draw, const RandomStream& random, int64_t first, int64_t count,
              const Use& use) {
  constexpr auto kElements = static_cast<int64_t>(Draw::kElements);
  std::array<uint32_t, kLanes> lanes;
  std::array<typename Draw::Element, Draw::kElements> made;
  int64_t done = 0;
  while (done < count) {
    const int64_t group = (first + done) / kElements;
    const int64_t skipped = (first + done) % kElements;
    philox_group(random, static_cast<uint64_t>(group * kBlocks), lanes.data());
    draw.make(lanes.data(), made.data());
    const int64_t taken = std::min(count - done, kElements - skipped);
    for (int64_t i = 0; i < taken; ++i)
      use(done + i, made[static_cast<size_t>(skipped + i)]);
    done += taken;
  }
}

// The local part as runs of consecutive logical indices: trailing dims that are whole are one run.
struct Runs {
  int64_t count = 1;   // runs
  int64_t length = 1;  // elements of each
  int64_t outer = 0;   // dims before the run's

  explicit Runs(const TensorMeta& meta) {
    outer = meta.local_shape.size();
    bool whole = true;
    while (outer > 0 && whole) {
      --outer;
      length *= meta.local_shape[outer];
      whole = meta.local_shape[outer] == meta.shape[outer];
    }
    for (int64_t d = 0; d < outer; ++d)
      count *= meta.local_shape[d];
  }

  // The logical index of run r's first element.
  int64_t first(const TensorMeta& meta, int64_t r) const {
    const Strides logical = contiguous_strides(meta.shape);
    int64_t index = 0;
    for (int64_t d = meta.shape.size() - 1; d >= 0; --d) {
      int64_t at = meta.local_begin[d];
      if (d < outer) {
        at += r % meta.local_shape[d];
        r /= meta.local_shape[d];
      }
      index += at * logical[d];
    }
    return index;
  }
};

// The offset in memory of the i-th element (row-major) of a strided part.
int64_t offset_of(const TensorMeta& meta, int64_t i) {
  int64_t offset = 0;
  for (int64_t d = meta.local_shape.size() - 1; d >= 0; --d) {
    offset += i % meta.local_shape[d] * meta.strides[d];
    i /= meta.local_shape[d];
  }
  return offset;
}

// Writes f(local element number, drawn element) over the output's local part.
template <class T, class Draw, class F>
void fill_output(const KernelContext& ctx, const Draw& draw, const F& f) {
  const TensorView& y = ctx.out(0);
  const TensorMeta& meta = *y.meta;
  if (meta.local_numel == 0) return;
  const Runs runs(meta);
  T* out = y.as<T>();
  for (int64_t r = 0; r < runs.count; ++r) {
    const int64_t first = runs.first(meta, r);
    ctx.pool().parallel_for(0, runs.length, kGrain, [&](int64_t begin, int64_t end) {
      const int64_t start = r * runs.length + begin;
      draw_run(draw, ctx.random, first + begin, end - begin, [&](int64_t i, auto element) {
        const int64_t at = meta.is_contiguous ? start + i : offset_of(meta, start + i);
        out[at] = f(start + i, element);
      });
    });
  }
}

template <class Draw>
void fill_dtype(const KernelContext& ctx, const Draw& draw) {
  dispatch_all(ctx.out(0).meta->dtype, [&]<class T>() {
    fill_output<T>(ctx, draw, [](int64_t, auto element) { return convert_draw<T>(element); });
  });
}

template <template <class> class Draw>
void fill_floating(const KernelContext& ctx, double a, double b) {
  if (ctx.out(0).meta->dtype == DType::kFloat64) {
    fill_dtype(ctx, Draw<double>(a, b));
  } else {
    fill_dtype(ctx, Draw<float>(a, b));
  }
}

template <class T>
using Uniform = std::conditional_t<std::is_same_v<T, double>, UniformDouble, UniformFloat>;

void uniform(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_floating<Uniform>(ctx, attrs.a, attrs.b);
}

void normal(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_floating<Normal>(ctx, attrs.a, attrs.b);
}

void uniform_fill(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawInPlaceAttrs>();
  fill_floating<Uniform>(ctx, attrs.a, attrs.b);
}

void normal_fill(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawInPlaceAttrs>();
  fill_floating<Normal>(ctx, attrs.a, attrs.b);
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

void bernoulli(const KernelContext& ctx) {
  const TensorView& p = ctx.in(0);
  dispatch_floating(p.meta->dtype, [&]<class T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* chances = p.as<T>();
    fill_output<T>(ctx, Uniform<Wide>(0, 1), [&](int64_t i, auto element) {
      const int64_t at = p.meta->is_contiguous ? i : offset_of(*p.meta, i);
      return T(element < static_cast<Wide>(chances[at]) ? Wide{1} : Wide{0});
    });
  });
}

// All ranks order the same keys and keep their part.
void randperm(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const int64_t n = y.meta->shape[0];
  std::vector<int64_t> keys(static_cast<size_t>(n));
  const WideIntegers all{std::numeric_limits<int64_t>::min(), ~uint64_t{0}};
  draw_run(all, ctx.random, 0, n,
           [&](int64_t i, int64_t key) { keys[static_cast<size_t>(i)] = key; });
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  const int64_t begin = y.meta->local_begin[0];
  dispatch_all(y.meta->dtype, [&]<class T>() {
    for (int64_t i = 0; i < y.numel(); ++i) {
      y.as<T>()[i] = convert_draw<T>(order[static_cast<size_t>(begin + i)]);
    }
  });
}

}  // namespace

void register_random_cpu(KernelTable& table) {
  // One kernel a set: the baseline's is the reference, its normals differ by rounding alone.
  constexpr const char* kName = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kUniform, DeviceType::kCpu, {kName, always<uniform>});
  table.add(kNormal, DeviceType::kCpu, {kName, always<normal>});
  table.add(kRandint, DeviceType::kCpu, {kName, always<randint>});
  table.add(kUniformFill, DeviceType::kCpu, {kName, always<uniform_fill>});
  table.add(kNormalFill, DeviceType::kCpu, {kName, always<normal_fill>});
  table.add(kBernoulli, DeviceType::kCpu, {kName, always<bernoulli>});
  if (FLOW_ISA == 0) table.add(kRandperm, DeviceType::kCpu, {kName, always<randperm>});
}

#include "ops/isa_end.h"

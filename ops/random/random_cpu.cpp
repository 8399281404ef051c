// Kernels of ops/random/random.h. Sums of a product are std::fma, so that they round once for every
// instruction set and on every device.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/vector_math.h"
#include "ops/random/draw_runs.h"
#include "ops/random/random_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

// The least number of elements per thread.
constexpr int64_t kGrain = 1 << 15;

// Box and Muller (1958), applied to the pairs of lanes of a block: even elements use the cosine,
// odd ones the sine.
void normals_of(const uint32_t* lanes, float mean, float std, float* out) {
  std::array<float, kDrawLanes / 2> radius, angle;
  for (size_t i = 0; i < kDrawLanes / 2; ++i) {
    radius[i] = uniform_float(lanes[2 * i]) + 0x1p-24F;  // in (0, 1]
    angle[i] = 6.2831853071795864769F * uniform_float(lanes[2 * i + 1]);
  }
  std::array<float, kDrawLanes / 2> cosine, sine;
  for (size_t i = 0; i < kDrawLanes / 2; i += Vec<float>::kLanes) {
    const Vec<float> r =
        sqrt(Vec<float>::fill(-2.0F) * log(Vec<float>::load(&radius[i]))) * Vec<float>::fill(std);
    const Vec<float> a = Vec<float>::load(&angle[i]);
    r.store(&radius[i]);
    cos(a).store(&cosine[i]);
    sin(a).store(&sine[i]);
  }
  for (size_t i = 0; i < kDrawLanes / 2; ++i) {
    out[2 * i] = std::fma(radius[i], cosine[i], mean);
    out[2 * i + 1] = std::fma(radius[i], sine[i], mean);
  }
}

// One double of two pairs of lanes: block b gives elements 2 b and 2 b + 1.
void normals_of(const uint32_t* lanes, double mean, double std, double* out) {
  for (size_t b = 0; b < kDrawBlocks; ++b) {
    const double u = uniform_double(lanes[4 * b], lanes[4 * b + 1]) + 0x1p-53;
    const double v = uniform_double(lanes[4 * b + 2], lanes[4 * b + 3]);
    const double radius = std * std::sqrt(-2 * std::log(u));
    out[2 * b] = std::fma(radius, std::cos(2 * M_PI * v), mean);
    out[2 * b + 1] = std::fma(radius, std::sin(2 * M_PI * v), mean);
  }
}

// The values that a draw computes from the lanes of kDrawBlocks blocks: kElements of them.
struct UniformFloat {
  using Element = float;
  static constexpr size_t kElements = kDrawLanes;
  float a, scale;
  // The bits that an element keeps. Without this mask, numbers just below 1 would be rounded to 1
  // in 16 bits.
  uint32_t mask = ~uint32_t{0};

  UniformFloat(double from, double to)
      : a(static_cast<float>(from)), scale(static_cast<float>(to - from)) {}

  void keep_bits(int count) { mask <<= 32 - count; }

  void make(const uint32_t* lanes, float* out) const {
    for (size_t i = 0; i < kElements; ++i)
      out[i] = std::fma(scale, uniform_float(lanes[i] & mask), a);
  }
};

struct UniformDouble {
  using Element = double;
  static constexpr size_t kElements = kDrawLanes / 2;
  double a, scale;

  UniformDouble(double from, double to) : a(from), scale(to - from) {}

  void make(const uint32_t* lanes, double* out) const {
    for (size_t i = 0; i < kElements; ++i)
      out[i] = std::fma(scale, uniform_double(lanes[2 * i], lanes[2 * i + 1]), a);
  }
};

template <class T>
struct Normal {
  using Element = T;
  static constexpr size_t kElements = sizeof(T) == 4 ? kDrawLanes : kDrawLanes / 2;
  T mean, std;

  Normal(double a, double b) : mean(static_cast<T>(a)), std(static_cast<T>(b)) {}

  void make(const uint32_t* lanes, T* out) const { normals_of(lanes, mean, std, out); }
};

// low + ⌊bits · range / 2^w⌋ (Lemire 2019, without the rejection step).
struct NarrowIntegers {
  using Element = int64_t;
  static constexpr size_t kElements = kDrawLanes;
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
  static constexpr size_t kElements = kDrawLanes / 2;
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
  std::array<uint32_t, kDrawLanes> lanes;
  std::array<typename Draw::Element, Draw::kElements> made;
  int64_t done = 0;
  while (done < count) {
    const int64_t group = (first + done) / kElements;
    const int64_t skipped = (first + done) % kElements;
    philox_group(random, static_cast<uint64_t>(group * kDrawBlocks), lanes.data());
    draw.make(lanes.data(), made.data());
    const int64_t taken = std::min(count - done, kElements - skipped);
    for (int64_t i = 0; i < taken; ++i)
      use(done + i, made[static_cast<size_t>(skipped + i)]);
    done += taken;
  }
}

// Writes f(local index, drawn element) to the local part of the output.
template <class T, class Draw, class F>
void fill_output(const KernelContext& ctx, const Draw& draw, const F& f) {
  const TensorView& y = ctx.out(0);
  const TensorMeta& meta = *y.meta;
  if (meta.local_numel == 0) return;
  const LogicalRuns runs(meta);
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

void fill_uniform(const KernelContext& ctx, double from, double to) {
  const DType dtype = ctx.out(0).meta->dtype;
  if (!is_half(dtype)) return fill_floating<Uniform>(ctx, from, to);
  UniformFloat draw(from, to);
  draw.keep_bits(dtype == DType::kFloat16 ? 11 : 8);
  fill_dtype(ctx, draw);
}

void uniform(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_uniform(ctx, attrs.a, attrs.b);
}

void normal(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawAttrs>();
  fill_floating<Normal>(ctx, attrs.a, attrs.b);
}

void uniform_fill(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<DrawInPlaceAttrs>();
  fill_uniform(ctx, attrs.a, attrs.b);
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

[[noreturn, gnu::noinline]] void refuse_chance(double chance) {
  throw InvalidArgument(str("[bernoulli] an element is ", chance, "; give probabilities, 0 to 1"));
}

void bernoulli(const KernelContext& ctx) {
  const TensorView& p = ctx.in(0);
  dispatch_floating(p.meta->dtype, [&]<class T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* chances = p.as<T>();
    fill_output<T>(ctx, Uniform<Wide>(0, 1), [&](int64_t i, auto element) {
      const int64_t at = p.meta->is_contiguous ? i : offset_of(*p.meta, i);
      const Wide chance = static_cast<Wide>(chances[at]);
      const bool is_fit = chance >= Wide{0} && chance <= Wide{1};  // false for NaN
      if (!is_fit) refuse_chance(static_cast<double>(chance));
      return T(element < chance ? Wide{1} : Wide{0});
    });
  });
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

void checked_spreads(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  dispatch_floating(x.meta->dtype, [&]<class T>() {
    for (int64_t i = 0; i < y.numel(); ++i) {
      const T spread = x.as<T>()[offset_of(*x.meta, i)];
      if (!(to_double(spread) >= 0)) {  // also NaN
        throw InvalidArgument(str("[normal] std must not be negative; got ", to_double(spread)));
      }
      y.as<T>()[offset_of(*y.meta, i)] = spread;
    }
  });
}

void checked_weights(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const Shape& part = x.meta->local_shape;
  const int64_t row_size = part.empty() ? 1 : part[part.size() - 1];
  dispatch_floating(x.meta->dtype, [&]<class T>() {
    double row_sum = 0;
    for (int64_t i = 0; i < y.numel(); ++i) {
      const T weight = x.as<T>()[offset_of(*x.meta, i)];
      const double wide = to_double(weight);
      if (!(wide >= 0) || !std::isfinite(wide)) {
        throw InvalidArgument(
            str("[multinomial] weights must be finite and not negative; received ", wide));
      }
      row_sum = i % row_size == 0 ? wide : row_sum + wide;
      if ((i + 1) % row_size == 0 && row_sum == 0)
        throw InvalidArgument("[multinomial] each row needs a positive weight; received zeros");
      y.as<T>()[offset_of(*y.meta, i)] = weight;
    }
  });
}

struct DrawnKey {
  uint64_t key;
  int64_t place;
};

// Orders uniformly drawn keys, equal ones by place: by as many of the highest bits as make most
// keys differ, digit by digit, and then by insertion, which moves few. Returns `keys` or `sorted`,
// whichever holds the result.
std::span<DrawnKey> sort_keys(std::span<DrawnKey> keys, std::span<DrawnKey> sorted) {
  constexpr int kDigitBits = 11;
  constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
  const int bits = static_cast<int>(std::bit_width(keys.size()));
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  for (int pass = passes; pass > 0; --pass) {
    const auto digit = [&](const DrawnKey& x) {
      return static_cast<size_t>(x.key >> (64 - pass * kDigitBits) & (kDigits - 1));
    };
    std::array<size_t, kDigits> next{};
    for (const DrawnKey& x : keys)
      ++next[digit(x)];
    size_t before = 0;
    for (size_t& count : next)
      before += std::exchange(count, before);
    for (const DrawnKey& x : keys)
      sorted[next[digit(x)]++] = x;
    std::swap(keys, sorted);
  }
  for (size_t i = 1; i < keys.size(); ++i) {
    const DrawnKey moved = keys[i];
    size_t to = i;
    for (; to > 0 && keys[to - 1].key > moved.key; --to)
      keys[to] = keys[to - 1];
    keys[to] = moved;
  }
  return keys;
}

// All ranks order the same keys and keep their part.
void randperm(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const int64_t n = y.meta->shape[0];
  const auto count = static_cast<size_t>(n);
  const Ref<Storage> memory = ctx.scratch(2 * count * sizeof(DrawnKey));
  auto* drawn = reinterpret_cast<DrawnKey*>(memory->data());
  const WideIntegers all{std::numeric_limits<int64_t>::min(), ~uint64_t{0}};
  draw_run(all, ctx.random, 0, n, [&](int64_t i, int64_t key) {
    // The order of signed keys.
    drawn[i] = {static_cast<uint64_t>(key) ^ uint64_t{1} << 63, i};
  });
  const std::span<DrawnKey> keys = sort_keys({drawn, count}, {drawn + count, count});
  const int64_t begin = y.meta->local_begin[0];
  dispatch_all(y.meta->dtype, [&]<class T>() {
    for (int64_t i = 0; i < y.numel(); ++i)
      y.as<T>()[i] = convert_draw<T>(keys[static_cast<size_t>(begin + i)].place);
  });
}

}  // namespace

void register_random_cpu(KernelTable& table) {
  // There is one kernel for each instruction set. The baseline's kernel is the reference; the
  // normal numbers of the others differ only by rounding.
  constexpr const char* kName = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kUniform, DeviceType::kCpu, {kName, always<uniform>});
  table.add(kNormal, DeviceType::kCpu, {kName, always<normal>});
  table.add(kRandint, DeviceType::kCpu, {kName, always<randint>});
  table.add(kUniformFill, DeviceType::kCpu, {kName, always<uniform_fill>});
  table.add(kNormalFill, DeviceType::kCpu, {kName, always<normal_fill>});
  table.add(kBernoulli, DeviceType::kCpu, {kName, always<bernoulli>});
  if (FLOW_ISA != 0) return;
  table.add(kRandperm, DeviceType::kCpu, {kName, always<randperm>});
  table.add(kCheckedSpreads, DeviceType::kCpu, {kName, always<checked_spreads>});
  table.add(kCheckedWeights, DeviceType::kCpu, {kName, always<checked_weights>});
}

#include "ops/kernel/isa_end.h"

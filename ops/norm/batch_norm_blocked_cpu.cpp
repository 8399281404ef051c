// batch_norm, and hardtanh after it, on oneDNN's blocked layouts, so that chains of convolutions
// are not reordered. As in batch_norm_cpu.cpp: sums in double, x read once for them and once for
// the result.
//
// The images are divided into groups by the sizes alone, and the sums of the groups are added in
// order, so the bits do not depend on the threads. A few threads share the groups, as they share
// the parts of a convolution, so each reads what it wrote; otherwise they share the channels.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/vector.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/vendor/onednn.h"

#include "ops/kernel/isa_begin.h"

void register_batch_norm_blocked_cpu(KernelTable& table);

namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::kLanes;

struct BlockedNormState {
  ChannelBlocks blocks;
  int64_t groups = 1;  // of images
  // Converts dy to the layout of x; null if dy already has it.
  std::shared_ptr<const OneDnnKernel> reorder;
  size_t reordered_bytes = 0;

  int64_t vectors() const { return blocks.lanes / kLanes; }

  int64_t units() const { return blocks.blocks() * vectors(); }

  double count() const { return static_cast<double>(blocks.batch * blocks.positions); }
};

// One vector of channels: its position in the tensor, and its channels [first, first + used).
struct Unit {
  Unit(const BlockedNormState& state, int64_t index)
      : block(index / state.vectors()),
        lane(index % state.vectors() * kLanes),
        first(block * state.blocks.lanes + lane),
        used(std::clamp<int64_t>(state.blocks.channels - first, 0, kLanes)) {}

  // The offset of its first element in image n.
  int64_t offset(const ChannelBlocks& blocks, int64_t n) const {
    return (n * blocks.blocks() + block) * blocks.positions * blocks.lanes + lane;
  }

  int64_t block;
  int64_t lane;
  int64_t first;
  int64_t used;
};

// The images [begin, end).
struct Images {
  static Images of_group(const BlockedNormState& state, int64_t group) {
    const int64_t batch = state.blocks.batch;
    return {batch * group / state.groups, batch * (group + 1) / state.groups};
  }

  int64_t begin;
  int64_t end;
};

// sum(a b) and sum(a) of each channel of a unit.
struct ChannelSums {
  void add(const ChannelSums& other) {
    for (int64_t i = 0; i < kLanes; ++i) {
      products[i] += other.products[i];
      totals[i] += other.totals[i];
    }
  }

  double products[kLanes];
  double totals[kLanes];
};

struct Chain {
  Vec<double> low_products, high_products, low_totals, high_totals;

  // g++ 12 compiles a constructor that is not written without the region's instruction set. Unless
  // it is inlined, it takes a vector that zero() returns from another place.
  Chain() { low_products = high_products = low_totals = high_totals = Vec<double>::zero(); }

  [[gnu::always_inline]] void add(V a, V b) {
    const Vec<double> low = widen_low(a);
    const Vec<double> high = widen_high(a);
    low_products = fma(low, widen_low(b), low_products);
    high_products = fma(high, widen_high(b), high_products);
    low_totals = low_totals + low;
    high_totals = high_totals + high;
  }
};

// `a` and `b` give the vector at an offset of the tensor.
template <class A, class B>
ChannelSums sum_unit(const ChannelBlocks& blocks, const Unit& unit, Images images, const A& a,
                     const B& b) {
  Chain even;
  Chain odd;
  for (int64_t n = images.begin; n < images.end; ++n) {
    int64_t at = unit.offset(blocks, n);
    int64_t position = 0;
    for (; position + 2 <= blocks.positions; position += 2) {
      even.add(a(at), b(at));
      odd.add(a(at + blocks.lanes), b(at + blocks.lanes));
      at += 2 * blocks.lanes;
    }
    if (position < blocks.positions) even.add(a(at), b(at));
  }
  ChannelSums sums;
  (even.low_products + odd.low_products).store(sums.products);
  (even.high_products + odd.high_products).store(sums.products + kLanes / 2);
  (even.low_totals + odd.low_totals).store(sums.totals);
  (even.high_totals + odd.high_totals).store(sums.totals + kLanes / 2);
  return sums;
}

// Reads all units for sums, then again for the results. A pass has
//   ChannelSums sum(unit, images),
//   Factors factors(unit, sums), what the results of a unit need of the sums over all images, and
//   void write(unit, factors, images).
template <class Pass>
class TwoPasses {
 public:
  using Factors = typename Pass::Factors;

  // `memory` has bytes(state) bytes.
  TwoPasses(const BlockedNormState& state, const Pass& pass, std::byte* memory)
      : state_(state),
        pass_(pass),
        sums_(reinterpret_cast<ChannelSums*>(memory)),
        factors_(reinterpret_cast<Factors*>(sums_ + state.units() * state.groups)) {}

  static int64_t bytes(const BlockedNormState& state) {
    return state.units() *
           static_cast<int64_t>(sizeof(ChannelSums) * static_cast<size_t>(state.groups) +
                                sizeof(Factors));
  }

  void run(ThreadPool& pool) {
    if (pool.num_threads() == 1 || pool.num_threads() > state_.groups) {
      share_units(pool);
    } else {
      share_images(pool);
    }
  }

 private:
  void share_units(ThreadPool& pool) {
    pool.parallel_for(0, state_.units(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        for (int64_t group = 0; group < state_.groups; ++group)
          sum(index, group);
        set_factors(index);
        pass_.write(Unit(state_, index), factors_[index], {0, state_.blocks.batch});
      }
    });
  }

  void share_images(ThreadPool& pool) {
    pool.parallel_for(0, state_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group)
        for (int64_t index = 0; index < state_.units(); ++index)
          sum(index, group);
    });
    for (int64_t index = 0; index < state_.units(); ++index)
      set_factors(index);
    pool.parallel_for(0, state_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group)
        for (int64_t index = 0; index < state_.units(); ++index)
          pass_.write(Unit(state_, index), factors_[index], Images::of_group(state_, group));
    });
  }

  void sum(int64_t index, int64_t group) {
    sums_[index * state_.groups + group] =
        pass_.sum(Unit(state_, index), Images::of_group(state_, group));
  }

  void set_factors(int64_t index) {
    ChannelSums* sums = sums_ + index * state_.groups;
    for (int64_t group = 1; group < state_.groups; ++group)
      sums[0].add(sums[group]);
    factors_[index] = pass_.factors(Unit(state_, index), sums[0]);
  }

  const BlockedNormState& state_;
  const Pass& pass_;
  ChannelSums* sums_;  // of each unit, those of its groups
  Factors* factors_;   // of each unit
};

template <class Pass>
void run_passes(const KernelContext& ctx, const Pass& pass) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const Ref<Storage> memory = ctx.scratch(static_cast<size_t>(TwoPasses<Pass>::bytes(state)));
  TwoPasses<Pass>(state, pass, memory->data()).run(ctx.pool());
}

// The elements of a tensor.
struct Plain {
  const float* data;

  [[gnu::always_inline]] V operator()(int64_t at) const { return V::load(data + at); }
};

// What follows batch_norm: nothing, or hardtanh as in ops/elementwise/activation_cpu.cpp.
struct Identity {
  using Attrs = BatchNormAttrs;

  explicit Identity(const Attrs& /*attrs*/) {}

  [[gnu::always_inline]] V operator()(V x) const { return x; }
};

struct Clamped {
  using Attrs = BatchNormHardtanhAttrs;

  float low;
  float high;

  explicit Clamped(const Attrs& attrs)
      : low(static_cast<float>(attrs.min_val)), high(static_cast<float>(attrs.max_val)) {}

  [[gnu::always_inline]] V operator()(V x) const {
    return min(V::fill(high), max(V::fill(low), x));
  }

  // The gradient. y is strictly between the bounds where x is.
  [[gnu::always_inline]] V slope(V dy, V y) const {
    const V below_high = select(y >= V::fill(high), V::zero(), dy);
    return select(y <= V::fill(low), V::zero(), below_high);
  }
};

// The gradient that passes through hardtanh.
struct Passed {
  const float* dy;
  const float* y;
  Clamped clamped;

  [[gnu::always_inline]] V operator()(int64_t at) const {
    return clamped.slope(V::load(dy + at), V::load(y + at));
  }
};

// y = f((x - mean) scale + shift); padding gets 0.
template <class F>
class Forward {
 public:
  struct Factors {
    float mean[kLanes];
    float scale[kLanes];
    float shift[kLanes];
  };

  explicit Forward(const KernelContext& ctx)
      : state_(ctx.state_as<BlockedNormState>()),
        x_(ctx.in(0).as<float>()),
        weight_(ctx.has_input(1) ? ctx.in(1).as<float>() : nullptr),
        bias_(ctx.has_input(2) ? ctx.in(2).as<float>() : nullptr),
        y_(ctx.out(0).as<float>()),
        moments_(ctx.out(1).as<double>()),
        eps_(ctx.attrs_as<typename F::Attrs>().eps),
        f_(ctx.attrs_as<typename F::Attrs>()) {}

  ChannelSums sum(const Unit& unit, Images images) const {
    return sum_unit(state_.blocks, unit, images, Plain{x_}, Plain{x_});
  }

  Factors factors(const Unit& unit, const ChannelSums& sums) const {
    Factors factors = {};
    for (int64_t i = 0; i < unit.used; ++i) {
      const int64_t c = unit.first + i;
      const double mean = sums.totals[i] / state_.count();
      const double var = std::max(sums.products[i] / state_.count() - mean * mean, 0.0);
      moments_[c] = mean;
      moments_[state_.blocks.channels + c] = var;
      factors.mean[i] = static_cast<float>(mean);
      const double factor = weight_ != nullptr ? static_cast<double>(weight_[c]) : 1.0;
      factors.scale[i] = static_cast<float>(factor / std::sqrt(var + eps_));
      factors.shift[i] = bias_ != nullptr ? bias_[c] : 0;
    }
    return factors;
  }

  void write(const Unit& unit, const Factors& factors, Images images) const {
    const ChannelBlocks& blocks = state_.blocks;
    const F f = f_;
    const V mean = V::load(factors.mean);
    const V scale = V::load(factors.scale);
    const V shift = V::load(factors.shift);
    for (int64_t n = images.begin; n < images.end; ++n) {
      const int64_t first = unit.offset(blocks, n);
      const float* source = x_ + first;
      float* target = y_ + first;
      for (int64_t position = 0; position < blocks.positions; ++position) {
        f(fma(V::load(source) - mean, scale, shift)).store(target);
        source += blocks.lanes;
        target += blocks.lanes;
      }
    }
  }

 private:
  const BlockedNormState& state_;
  const float* x_;
  const float* weight_;
  const float* bias_;
  float* y_;
  double* moments_;
  double eps_;
  F f_;
};

// dx = s (dy - a) - k (x - mean), where `Dy` gives the vector of dy at an offset; padding gets 0.
template <class Dy>
class Backward {
 public:
  struct Factors {
    float s[kLanes];
    float a[kLanes];
    float k[kLanes];
    float mean[kLanes];
  };

  // The inputs from `x_input` are x, moments and weight.
  Backward(const KernelContext& ctx, const Dy& dy, int x_input, double eps)
      : state_(ctx.state_as<BlockedNormState>()),
        dy_(dy),
        x_(ctx.in(x_input).as<float>()),
        moments_(ctx.in(x_input + 1).as<double>()),
        weight_(ctx.has_input(x_input + 2) ? ctx.in(x_input + 2).as<float>() : nullptr),
        dx_(ctx.out(0).as<float>()),
        dweight_(ctx.out(1).as<float>()),
        dbias_(ctx.out(2).as<float>()),
        eps_(eps) {}

  ChannelSums sum(const Unit& unit, Images images) const {
    return sum_unit(state_.blocks, unit, images, dy_, Plain{x_});
  }

  Factors factors(const Unit& unit, const ChannelSums& sums) const {
    Factors factors = {};
    for (int64_t i = 0; i < unit.used; ++i) {
      const int64_t c = unit.first + i;
      const double mean = moments_[c];
      const double r = 1 / std::sqrt(moments_[state_.blocks.channels + c] + eps_);
      const double through_h = (sums.products[i] - mean * sums.totals[i]) * r;
      const double s = (weight_ != nullptr ? static_cast<double>(weight_[c]) : 1.0) * r;
      dweight_[c] = static_cast<float>(through_h);
      dbias_[c] = static_cast<float>(sums.totals[i]);
      factors.s[i] = static_cast<float>(s);
      factors.a[i] = static_cast<float>(sums.totals[i] / state_.count());
      factors.k[i] = static_cast<float>(s * r * through_h / state_.count());
      factors.mean[i] = static_cast<float>(mean);
    }
    return factors;
  }

  void write(const Unit& unit, const Factors& factors, Images images) const {
    const ChannelBlocks& blocks = state_.blocks;
    const Dy dy = dy_;
    const V s = V::load(factors.s);
    const V a = V::load(factors.a);
    const V k = V::load(factors.k);
    const V mean = V::load(factors.mean);
    for (int64_t n = images.begin; n < images.end; ++n) {
      const int64_t first = unit.offset(blocks, n);
      for (int64_t position = 0; position < blocks.positions; ++position) {
        const int64_t at = first + position * blocks.lanes;
        (s * (dy(at) - a) - k * (V::load(x_ + at) - mean)).store(dx_ + at);
      }
    }
  }

 private:
  const BlockedNormState& state_;
  Dy dy_;
  const float* x_;
  const double* moments_;
  const float* weight_;
  float* dx_;
  float* dweight_;
  float* dbias_;
  double eps_;
};

template <class F>
void run_batch_norm(const KernelContext& ctx) {
  run_passes(ctx, Forward<F>(ctx));
}

void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BlockedNormState>();
  const float* dy = ctx.in(0).as<float>();
  Ref<Storage> memory;
  if (state.reorder != nullptr) {
    memory = ctx.scratch(state.reordered_bytes + state.reorder->scratch_bytes());
    state.reorder->run({.source = dy,
                        .destination = memory->data(),
                        .scratch = memory->data() + state.reordered_bytes});
    dy = reinterpret_cast<const float*>(memory->data());
  }
  run_passes(ctx, Backward<Plain>(ctx, {dy}, 1, ctx.attrs_as<BatchNormAttrs>().eps));
}

void run_clamped_backward(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<BatchNormHardtanhAttrs>();
  const Passed dy{ctx.in(0).as<float>(), ctx.in(1).as<float>(), Clamped(attrs)};
  run_passes(ctx, Backward<Passed>(ctx, dy, 2, attrs.eps));
}

// lanes = 0 where the layout is not one of whole vectors of channels. Groups have so many positions
// that their sums cost little; a power of two is shared evenly by two or four threads.
BlockedNormState state_for(const TensorMeta& x) {
  constexpr int64_t kMostGroups = 8;
  constexpr int64_t kLeastPositions = 64;
  BlockedNormState state;
  state.blocks = channel_blocks(*x.blocked, x.local_shape);
  ChannelBlocks& blocks = state.blocks;
  if (blocks.lanes % kLanes != 0) blocks.lanes = 0;
  if (blocks.lanes == 0) return state;
  const int64_t most = std::min(kMostGroups, blocks.batch);
  const int64_t groups = std::clamp<int64_t>(blocks.batch * blocks.positions / kLeastPositions, 1,
                                             std::max<int64_t>(most, 1));
  state.groups = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(groups)));
  return state;
}

template <class Pass>
ScratchBlock memory_of(const BlockedNormState& state) {
  return {TwoPasses<Pass>::bytes(state)};
}

// Applies to float32 x in blocks of whole vectors of channels. The result gets the layout of x.
template <bool kBackward>
KernelChoice select_blocked(const KernelQuery& query) {
  const TensorMeta& x = query.input(kBackward ? 1 : 0);
  if (x.blocked == nullptr || x.dtype != DType::kFloat32) return {};
  const TensorMeta& moments = kBackward ? query.input(2) : query.output(1);
  if (moments.local_shape[0] != 2) return {};
  BlockedNormState state = state_for(x);
  if (state.blocks.lanes == 0) return {};
  for (int i = 1; i < static_cast<int>(query.inputs.size()); ++i) {
    const bool is_x = kBackward && i == 1;
    if (!is_x && query.has_input(i) && !query.input(i).is_contiguous) return {};
  }
  if constexpr (kBackward) {
    const TensorMeta& dy = query.input(0);
    if (dy.blocked != x.blocked) {
      if (dy.blocked == nullptr && !dy.is_contiguous) return {};
      state.reorder =
          make_onednn(ReorderSpec{.shape = x.local_shape, .from = dy.blocked, .to = x.blocked});
      state.reordered_bytes = x.blocked->bytes;
    }
  }
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  outputs[0] = with_blocked(outputs[0], x.blocked);
  KernelScratch scratch = {
      memory_of<std::conditional_t<kBackward, Backward<Plain>, Forward<Identity>>>(state)};
  if (state.reorder != nullptr) {
    scratch.push_back(
        {static_cast<int64_t>(state.reordered_bytes + state.reorder->scratch_bytes())});
  }
  return with_scratch(
      {kBackward ? run_backward : run_batch_norm<Identity>,
       std::make_shared<const BlockedNormState>(std::move(state)), std::move(outputs)},
      std::move(scratch));
}

// The same with hardtanh, for tensors that all have the layout of x. The padding is zero only if
// the bounds contain zero.
template <bool kBackward>
KernelChoice select_clamped(const KernelQuery& query) {
  const int x_input = kBackward ? 2 : 0;
  const TensorMeta& x = query.input(x_input);
  const auto& attrs = query.attrs_as<BatchNormHardtanhAttrs>();
  if (x.blocked == nullptr || x.dtype != DType::kFloat32) return {};
  if (attrs.min_val > 0 || attrs.max_val < 0) return {};
  BlockedNormState state = state_for(x);
  if (state.blocks.lanes == 0) return {};
  for (int i = 0; i < x_input; ++i) {
    if (query.input(i).blocked != x.blocked) return {};
  }
  for (int i = x_input + 1; i < static_cast<int>(query.inputs.size()); ++i) {
    if (query.has_input(i) && !query.input(i).is_contiguous) return {};
  }
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  outputs[0] = with_blocked(outputs[0], x.blocked);
  const ScratchBlock scratch =
      memory_of<std::conditional_t<kBackward, Backward<Passed>, Forward<Clamped>>>(state);
  return with_scratch(
      {kBackward ? run_clamped_backward : run_batch_norm<Clamped>,
       std::make_shared<const BlockedNormState>(std::move(state)), std::move(outputs)},
      {scratch});
}

}  // namespace

void register_batch_norm_blocked_cpu(KernelTable& table) {
  table.add(kBatchNorm, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<false>, true});
  table.add(kBatchNormBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_blocked<true>, true});
  table.add(kBatchNormHardtanh, DeviceType::kCpu, {FLOW_ISA_NAME, select_clamped<false>, true});
  table.add(kBatchNormHardtanhBackward, DeviceType::kCpu,
            {FLOW_ISA_NAME, select_clamped<true>, true});
}

#include "ops/kernel/isa_end.h"

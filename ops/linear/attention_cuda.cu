// Attention on CUDA devices, for operands that attention_tiles_cuda.cu does not take. A warp takes
// a few queries and walks the keys they see, one at a time: its lanes share the width, scores are
// joined by shuffles, and the softmax is kept running (Milakov and Gimelshein 2018, "Online
// normalizer calculation for softmax"), so that scores are never stored. Gradients compute scores
// again from logsumexp: dq by queries, dk and dv by keys, each sum in a fixed order.
#include "ops/linear/attention_cuda.cuh"
#include "ops/linear/attention_layout.h"
#include "ops/local_parts.h"

namespace flow::ops {

void register_attention_cuda(KernelTable& table);

namespace {

// The elements of a row that the lanes of a warp hold: column c is in lane c % 32.
template <class C, int kSlots>
struct LaneRow {
  C value[kSlots];

  __device__ void clear() {
    for (int i = 0; i < kSlots; ++i)
      value[i] = 0;
  }

  template <class T>
  __device__ void load(const T* row, const Matrices<const T>& m) {
    for (int i = 0; i < kSlots; ++i) {
      const int64_t c = threadIdx.x + 32 * i;
      value[i] = c < m.width ? widen(row[c * m.column_stride]) : C{0};
    }
  }

  template <class T>
  __device__ void store(T* row, const Matrices<T>& m) const {
    for (int i = 0; i < kSlots; ++i) {
      const int64_t c = threadIdx.x + 32 * i;
      if (c < m.width) row[c * m.column_stride] = narrow<T>(value[i]);
    }
  }

  // += factor other
  __device__ void add(C factor, const LaneRow& other) {
    for (int i = 0; i < kSlots; ++i)
      value[i] += factor * other.value[i];
  }

  __device__ void scale(C factor) {
    for (int i = 0; i < kSlots; ++i)
      value[i] *= factor;
  }

  __device__ C dot(const LaneRow& other, Team team) const {
    C sum = 0;
    for (int i = 0; i < kSlots; ++i)
      sum += value[i] * other.value[i];
    return team.sum(sum);
  }
};

template <class T, int kSlots, int kRows>
struct AttendRows {
  AttentionSizes sizes;
  Matrices<const T> q, k, v;
  Matrices<T> y;
  Wide<T>* lse;
  int64_t groups;  // of kRows queries, of each matrix

  __device__ void operator()(int64_t item, Team team) const {
    using C = Wide<T>;
    using Row = LaneRow<C, kSlots>;
    const auto [b, group] = divide(item, groups);
    const int64_t first = group * kRows;
    Row query[kRows];
    Row sum[kRows];
    C largest[kRows];
    C total[kRows];
    for (int r = 0; r < kRows; ++r) {
      query[r].clear();
      sum[r].clear();
      largest[r] = -std::numeric_limits<C>::infinity();
      total[r] = 0;
      if (first + r < sizes.queries) query[r].load(q.matrix(b) + (first + r) * q.row_stride, q);
      query[r].scale(static_cast<C>(sizes.scale));
    }
    const T* const keys = k.matrix(b);
    const T* const values = v.matrix(b);
    const int64_t end = sizes.visible_keys(first + kRows - 1);
    for (int64_t j = 0; j < end; ++j) {
      Row key;
      Row value;
      key.load(keys + j * k.row_stride, k);
      value.load(values + j * v.row_stride, v);
      for (int r = 0; r < kRows; ++r) {
        const C score = query[r].dot(key, team);
        if (j >= sizes.visible_keys(first + r)) continue;
        if (largest[r] < score) {
          const C shrink = std::exp(largest[r] - score);
          total[r] *= shrink;
          sum[r].scale(shrink);
          largest[r] = score;
        }
        const bool is_nothing = score == -std::numeric_limits<C>::infinity();
        const C weight = is_nothing ? C{0} : std::exp(score - largest[r]);
        total[r] += weight;
        sum[r].add(weight, value);
      }
    }
    for (int r = 0; r < kRows && first + r < sizes.queries; ++r) {
      sum[r].scale(C{1} / total[r]);
      sum[r].store(y.matrix(b) + (first + r) * y.row_stride, y);
      if (team.leads()) lse[b * sizes.queries + first + r] = largest[r] + std::log(total[r]);
    }
  }
};

// dot(dy, y) of each query.
template <class T, int kSlots>
struct DotRows {
  AttentionSizes sizes;
  Matrices<const T> dy, y;
  Wide<T>* dots;

  __device__ void operator()(int64_t item, Team team) const {
    const auto [b, row] = divide(item, sizes.queries);
    LaneRow<Wide<T>, kSlots> left;
    LaneRow<Wide<T>, kSlots> right;
    left.load(dy.matrix(b) + row * dy.row_stride, dy);
    right.load(y.matrix(b) + row * y.row_stride, y);
    const Wide<T> dot = left.dot(right, team);
    if (team.leads()) dots[item] = dot;
  }
};

// The operands of the gradient.
template <class T>
struct BackwardOperands {
  AttentionSizes sizes;
  Matrices<const T> dy, q, k, v;
  const Wide<T>* lse;
  const Wide<T>* dots;
};

// dq of one query.
template <class T, int kSlots>
struct QueryGradients {
  BackwardOperands<T> in;
  Matrices<T> dq;

  __device__ void operator()(int64_t item, Team team) const {
    using C = Wide<T>;
    using Row = LaneRow<C, kSlots>;
    const auto [b, row] = divide(item, in.sizes.queries);
    const C scale = static_cast<C>(in.sizes.scale);
    Row query, gradient, sum;
    query.load(in.q.matrix(b) + row * in.q.row_stride, in.q);
    gradient.load(in.dy.matrix(b) + row * in.dy.row_stride, in.dy);
    sum.clear();
    const int64_t end = in.sizes.visible_keys(row);
    for (int64_t j = 0; j < end; ++j) {
      Row key, value;
      key.load(in.k.matrix(b) + j * in.k.row_stride, in.k);
      value.load(in.v.matrix(b) + j * in.v.row_stride, in.v);
      const C p = std::exp(scale * query.dot(key, team) - in.lse[item]);
      sum.add(p * (gradient.dot(value, team) - in.dots[item]) * scale, key);
    }
    sum.store(dq.matrix(b) + row * dq.row_stride, dq);
  }
};

// dk and dv of one key.
template <class T, int kSlots>
struct KeyGradients {
  BackwardOperands<T> in;
  Matrices<T> dk, dv;

  __device__ void operator()(int64_t item, Team team) const {
    using C = Wide<T>;
    using Row = LaneRow<C, kSlots>;
    const auto [b, row] = divide(item, in.sizes.keys);
    const C scale = static_cast<C>(in.sizes.scale);
    Row key, value, key_sum, value_sum;
    key.load(in.k.matrix(b) + row * in.k.row_stride, in.k);
    value.load(in.v.matrix(b) + row * in.v.row_stride, in.v);
    key_sum.clear();
    value_sum.clear();
    for (int64_t i = in.sizes.first_seeing(row); i < in.sizes.queries; ++i) {
      Row query, gradient;
      query.load(in.q.matrix(b) + i * in.q.row_stride, in.q);
      gradient.load(in.dy.matrix(b) + i * in.dy.row_stride, in.dy);
      const int64_t at = b * in.sizes.queries + i;
      const C p = std::exp(scale * query.dot(key, team) - in.lse[at]);
      value_sum.add(p, gradient);
      key_sum.add(p * (gradient.dot(value, team) - in.dots[at]) * scale, query);
    }
    key_sum.store(dk.matrix(b) + row * dk.row_stride, dk);
    value_sum.store(dv.matrix(b) + row * dv.row_stride, dv);
  }
};

constexpr int64_t kMostColumns = 1024;

// Calls fn with the number of slots a lane needs for rows of `width`, as a type.
template <class Fn>
void dispatch_slots(int64_t width, const Fn& fn) {
  if (width <= 32) return fn(std::integral_constant<int, 1>());
  if (width <= 64) return fn(std::integral_constant<int, 2>());
  if (width <= 128) return fn(std::integral_constant<int, 4>());
  if (width <= 256) return fn(std::integral_constant<int, 8>());
  fn(std::integral_constant<int, 32>());
}

void attend(const KernelContext& ctx) {
  const AttentionSizes sizes(*ctx.in(0).meta, *ctx.in(1).meta, ctx.attrs_as<AttentionAttrs>());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    const Matrices<const T> q(ctx.in(0)), k(ctx.in(1)), v(ctx.in(2));
    dispatch_slots(
        std::max(q.width, v.width), [&]<int kSlots>(std::integral_constant<int, kSlots>) {
          constexpr int kRows = kSlots <= 2 ? 4 : kSlots == 4 ? 2 : 1;
          const int64_t groups = (sizes.queries + kRows - 1) / kRows;
          for_each_row(ctx, sizes.batch * groups, 32,
                       AttendRows<T, kSlots, kRows>{sizes, q, k, v, Matrices<T>(ctx.out(0)),
                                                    ctx.out(1).as<Wide<T>>(), groups});
        });
  });
}

void attend_backward(const KernelContext& ctx) {
  const AttentionSizes sizes(*ctx.in(1).meta, *ctx.in(2).meta, ctx.attrs_as<AttentionAttrs>());
  const DenseInput lse(ctx, 5);
  const int64_t queries = sizes.batch * sizes.queries;
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    const ScratchArray<Wide<T>> dots(ctx, queries);
    const BackwardOperands<T> in{sizes,
                                 Matrices<const T>(ctx.in(0)),
                                 Matrices<const T>(ctx.in(1)),
                                 Matrices<const T>(ctx.in(2)),
                                 Matrices<const T>(ctx.in(3)),
                                 lse.as<Wide<T>>(),
                                 dots.data()};
    dispatch_slots(std::max(in.q.width, in.v.width), [&]<int kSlots>(
                                                         std::integral_constant<int, kSlots>) {
      for_each_row(ctx, queries, 32,
                   DotRows<T, kSlots>{sizes, in.dy, Matrices<const T>(ctx.in(4)), dots.data()});
      for_each_row(ctx, queries, 32, QueryGradients<T, kSlots>{in, Matrices<T>(ctx.out(0))});
      for_each_row(ctx, sizes.batch * sizes.keys, 32,
                   KeyGradients<T, kSlots>{in, Matrices<T>(ctx.out(1)), Matrices<T>(ctx.out(2))});
    });
  });
}

template <bool kBackward>
KernelChoice select(const KernelQuery& query) {
  constexpr int kFirst = kBackward ? 1 : 0;
  const Shape& q = query.input(kFirst).local_shape;
  const Shape& v = query.input(kFirst + 2).local_shape;
  if (!parts_fit(query) || std::max(q.back(), v.back()) > kMostColumns) return {};
  return {kBackward ? attend_backward : attend, nullptr, attention_outputs(query)};
}

}  // namespace

void register_attention_cuda(KernelTable& table) {
  table.add(kAttention, DeviceType::kCuda, {"cuda", select<false>});
  table.add(kAttentionBackward, DeviceType::kCuda, {"cuda", select<true>});
}

}  // namespace flow::ops

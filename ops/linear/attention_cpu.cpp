// Attention on the CPU, a block of queries at a time: their scores stay in cache and are never
// stored as a whole (Dao et al. 2022, "FlashAttention", without the blocking over keys, whose rows
// of scores fit the second cache here). The backward kernel computes them again from logsumexp.
// Causal blocks leave out the keys that none of their queries sees.

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math.h"
#include "ops/linear/attention_layout.h"
#include "ops/linear/attention_op.h"
#include "ops/linear/gemm.h"
#include "ops/local_parts.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

// The sizes of the local parts, and their offsets among the logical queries and keys.
struct AttentionState {
  int64_t batch = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;        // of queries and keys
  int64_t value_width = 0;  // of values and results
  int64_t first_query = 0;
  int64_t first_key = 0;
};

std::shared_ptr<const AttentionState> prepare_attention(const TensorMeta& q, const TensorMeta& k,
                                                        const TensorMeta& v) {
  const int64_t rows = q.dim() - 2;
  AttentionState state{.queries = q.local_shape[rows],
                       .keys = k.local_shape[rows],
                       .width = q.local_shape[rows + 1],
                       .value_width = v.local_shape[rows + 1],
                       .first_query = q.local_begin[rows],
                       .first_key = k.local_begin[rows]};
  for (int64_t i = 0; i < rows; ++i)
    state.batch *= q.local_shape[i];
  return std::make_shared<const AttentionState>(state);
}

// The number of keys of this part that query `row` of this part sees.
int64_t visible_keys(const AttentionState& state, bool is_causal, int64_t row) {
  if (!is_causal) return state.keys;
  return std::clamp<int64_t>(state.first_query + row + 1 - state.first_key, 0, state.keys);
}

// The offset of matrix `index` of the batch.
int64_t batch_offset(const TensorMeta& meta, int64_t index) {
  int64_t offset = 0;
  for (int64_t d = meta.dim() - 3; d >= 0; --d) {
    offset += index % meta.local_shape[d] * meta.strides[d];
    index /= meta.local_shape[d];
  }
  return offset;
}

#if FLOW_ISA == 0

// Matrix `index` of the batch as doubles, row-major.
template <class T>
std::vector<double> matrix_of(const TensorView& view, int64_t index) {
  const TensorMeta& meta = *view.meta;
  const int64_t rows = meta.local_shape[meta.dim() - 2];
  const int64_t columns = meta.local_shape[meta.dim() - 1];
  std::vector<double> values;
  const T* first = view.as<T>() + batch_offset(meta, index);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      values.push_back(static_cast<double>(static_cast<Wide<T>>(
          first[i * meta.strides[meta.dim() - 2] + j * meta.strides[meta.dim() - 1]])));
    }
  }
  return values;
}

template <class T>
void store_matrix(const TensorView& view, int64_t index, const std::vector<double>& values) {
  T* target = view.as<T>() + index * static_cast<int64_t>(values.size());
  for (const double value : values)
    *target++ = static_cast<T>(static_cast<Wide<T>>(value));
}

double dot_plainly(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

template <class T>
void attention_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<AttentionState>();
  const auto& attrs = ctx.attrs_as<AttentionAttrs>();
  for (int64_t b = 0; b < state.batch; ++b) {
    const auto q = matrix_of<T>(ctx.in(0), b);
    const auto k = matrix_of<T>(ctx.in(1), b);
    const auto v = matrix_of<T>(ctx.in(2), b);
    std::vector<double> y(static_cast<size_t>(state.queries * state.value_width));
    auto* lse = ctx.out(1).as<Wide<T>>() + b * state.queries;
    for (int64_t i = 0; i < state.queries; ++i) {
      std::vector<double> p(static_cast<size_t>(visible_keys(state, attrs.is_causal, i)));
      double largest = -HUGE_VAL;
      for (size_t j = 0; j < p.size(); ++j) {
        p[j] = attrs.scale * dot_plainly(q.data() + i * state.width,
                                         k.data() + static_cast<int64_t>(j) * state.width,
                                         state.width);
        largest = std::max(largest, p[j]);
      }
      double total = 0;
      for (double& weight : p)
        total += weight = std::exp(weight - largest);
      lse[i] = static_cast<Wide<T>>(largest + std::log(total));
      for (int64_t e = 0; e < state.value_width; ++e) {
        double sum = 0;
        for (size_t j = 0; j < p.size(); ++j)
          sum += p[j] * v[j * static_cast<size_t>(state.value_width) + static_cast<size_t>(e)];
        y[static_cast<size_t>(i * state.value_width + e)] = sum / total;
      }
    }
    store_matrix<T>(ctx.out(0), b, y);
  }
}

// The i-th element of a (batch..., rows) tensor with any strides.
template <class C>
double row_value(const TensorView& view, int64_t index) {
  int64_t offset = 0;
  for (int64_t d = view.shape().size() - 1; d >= 0; --d) {
    offset += index % view.shape()[d] * view.strides()[d];
    index /= view.shape()[d];
  }
  return static_cast<double>(view.as<C>()[offset]);
}

template <class T>
void attention_backward_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<AttentionState>();
  const auto& attrs = ctx.attrs_as<AttentionAttrs>();
  const int64_t width = state.width;
  const int64_t value_width = state.value_width;
  for (int64_t b = 0; b < state.batch; ++b) {
    const auto dy = matrix_of<T>(ctx.in(0), b);
    const auto q = matrix_of<T>(ctx.in(1), b);
    const auto k = matrix_of<T>(ctx.in(2), b);
    const auto v = matrix_of<T>(ctx.in(3), b);
    const auto y = matrix_of<T>(ctx.in(4), b);
    std::vector<double> dq(q.size());
    std::vector<double> dk(k.size());
    std::vector<double> dv(v.size());
    for (int64_t i = 0; i < state.queries; ++i) {
      const double* own_dy = dy.data() + i * value_width;
      const double* own_q = q.data() + i * width;
      const double d = dot_plainly(own_dy, y.data() + i * value_width, value_width);
      const double lse = row_value<Wide<T>>(ctx.in(5), b * state.queries + i);
      for (int64_t j = 0; j < visible_keys(state, attrs.is_causal, i); ++j) {
        const double* own_k = k.data() + j * width;
        const double p = std::exp(attrs.scale * dot_plainly(own_q, own_k, width) - lse);
        const double dp = dot_plainly(own_dy, v.data() + j * value_width, value_width);
        const double ds = p * (dp - d) * attrs.scale;
        for (int64_t c = 0; c < width; ++c) {
          dq[static_cast<size_t>(i * width + c)] += ds * own_k[c];
          dk[static_cast<size_t>(j * width + c)] += ds * own_q[c];
        }
        for (int64_t e = 0; e < value_width; ++e)
          dv[static_cast<size_t>(j * value_width + e)] += p * own_dy[e];
      }
    }
    store_matrix<T>(ctx.out(0), b, dq);
    store_matrix<T>(ctx.out(1), b, dk);
    store_matrix<T>(ctx.out(2), b, dv);
  }
}

template <bool kBackward>
KernelChoice select_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  constexpr int kFirst = kBackward ? 1 : 0;
  KernelChoice choice{nullptr, prepare_attention(query.input(kFirst), query.input(kFirst + 1),
                                                 query.input(kFirst + 2))};
  dispatch_floating(query.output(0).dtype, [&]<class T>() {
    choice.fn = kBackward ? attention_backward_plainly<T> : attention_plainly<T>;
  });
  return choice;
}

#endif

// ---- through ops/linear/gemm.h

// Small blocks skip more of the keys that causal queries do not see.
constexpr int64_t kQueryBlock = 32;

template <class C>
struct Matrix {
  C* data;
  int64_t stride;  // of rows; columns are contiguous

  C* row(int64_t i) const { return data + i * stride; }
};

// Memory of one thread, allocated from front to back.
template <class C>
class Workspace {
 public:
  Workspace(const KernelContext& ctx, int64_t size)
      : storage_(ctx.scratch(static_cast<size_t>(size) * sizeof(C))),
        next_(reinterpret_cast<C*>(storage_->data())) {}

  C* take(int64_t size) {
    C* const taken = next_;
    next_ += size;
    return taken;
  }

 private:
  Ref<Storage> storage_;
  C* next_;
};

// Returns true if gemm can read matrices of this tensor without a copy.
template <class T>
bool is_readable(const TensorMeta& meta) {
  const int64_t rows = meta.dim() - 2;
  return !kIsHalf<T> && (meta.strides[rows + 1] == 1 || meta.local_shape[rows + 1] == 1) &&
         (meta.strides[rows] >= meta.local_shape[rows + 1] || meta.local_shape[rows] == 1);
}

// Matrix `index` of the batch: its memory, or a dense copy in `buffer`.
template <class T>
Matrix<const Wide<T>> matrix(const TensorView& view, int64_t index, Wide<T>* buffer) {
  const TensorMeta& meta = *view.meta;
  const int64_t rows = meta.dim() - 2;
  const T* first = view.as<T>() + batch_offset(meta, index);
  const int64_t columns = meta.local_shape[rows + 1];
  if constexpr (!kIsHalf<T>) {
    if (is_readable<T>(meta)) return {first, std::max(meta.strides[rows], columns)};
  }
  for (int64_t i = 0; i < meta.local_shape[rows]; ++i) {
    const T* row = first + i * meta.strides[rows];
    for (int64_t j = 0; j < columns; ++j)
      buffer[i * columns + j] = static_cast<Wide<T>>(row[j * meta.strides[rows + 1]]);
  }
  return {buffer, columns};
}

// Matrix `index` of an output, whose rows are contiguous.
template <class T>
Matrix<T> output_matrix(const TensorView& view, int64_t index) {
  const TensorMeta& meta = *view.meta;
  const int64_t rows = meta.dim() - 2;
  return {view.as<T>() + batch_offset(meta, index),
          std::max(meta.strides[rows], meta.local_shape[rows + 1])};
}

template <class T>
int64_t copy_size(const TensorMeta& meta) {
  if (is_readable<T>(meta)) return 0;
  return meta.local_shape[meta.local_shape.size() - 2] * meta.local_shape.back();
}

template <class T>
int64_t copy_size(const TensorView& view) {
  return copy_size<T>(*view.meta);
}

// The elements of scratch memory that a thread needs; the first inputs are those of the kernel.
template <class T, bool kBackward>
int64_t workspace_size(const AttentionState& state, std::span<const MetaPtr> inputs) {
  const int64_t block = std::min(kQueryBlock, state.queries);
  int64_t size = kBackward ? 2 * block * state.keys + state.queries * state.width +
                                 state.keys * (state.width + state.value_width)
                           : block * (state.keys + state.value_width);
  for (const MetaPtr meta : inputs.first(kBackward ? 5 : 3))
    size += copy_size<T>(*meta);
  return size;
}

// c = alpha op(a) op(b) + beta c.
template <class C>
void product(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, C alpha,
             Matrix<const C> a, Matrix<const C> b, C beta, Matrix<C> c) {
  gemm(ta, tb, m, n, k, alpha, a.data, std::max<int64_t>(a.stride, 1), b.data,
       std::max<int64_t>(b.stride, 1), beta, c.data, std::max<int64_t>(c.stride, 1));
}

template <class T>
void run_attention(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<AttentionState>();
  const auto& attrs = ctx.attrs_as<AttentionAttrs>();
  const int64_t block = std::min(kQueryBlock, state.queries);
  const int64_t space = copy_size<T>(ctx.in(0)) + copy_size<T>(ctx.in(1)) +
                        copy_size<T>(ctx.in(2)) + block * (state.keys + state.value_width);
  ctx.pool().parallel_for(0, state.batch, 1, [&](int64_t begin, int64_t end) {
    Workspace<C> workspace(ctx, space);
    C* const q_copy = workspace.take(copy_size<T>(ctx.in(0)));
    C* const k_copy = workspace.take(copy_size<T>(ctx.in(1)));
    C* const v_copy = workspace.take(copy_size<T>(ctx.in(2)));
    C* const scores = workspace.take(block * state.keys);
    C* const result = workspace.take(block * state.value_width);
    for (int64_t b = begin; b < end; ++b) {
      const auto q = matrix<T>(ctx.in(0), b, q_copy);
      const auto k = matrix<T>(ctx.in(1), b, k_copy);
      const auto v = matrix<T>(ctx.in(2), b, v_copy);
      const auto y = output_matrix<T>(ctx.out(0), b);
      C* const lse = ctx.out(1).as<C>() + b * state.queries;
      for (int64_t first = 0; first < state.queries; first += block) {
        const int64_t rows = std::min(block, state.queries - first);
        const int64_t keys = visible_keys(state, attrs.is_causal, first + rows - 1);
        product<C>(Transpose::kNo, Transpose::kYes, rows, keys, state.width,
                   static_cast<C>(attrs.scale), {q.row(first), q.stride}, k, 0, {scores, keys});
        C scale[kQueryBlock];
        for (int64_t i = 0; i < rows; ++i) {
          C* const row = scores + i * keys;
          const int64_t seen = visible_keys(state, attrs.is_causal, first + i);
          const C largest = row_max<C>(seen, [&](auto at) { return at.get(row); });
          const V shift = V::fill(largest);
          const C total = row_sum<C>(seen, [&](auto at) {
            const V e = exp(at.get(row) - shift);
            at.put(row, e);
            return at.keep(e, 0);
          });
          std::fill(row + seen, row + keys, C{0});
          lse[first + i] = largest + std::log(total);
          scale[i] = C{1} / total;
        }
        product<C>(Transpose::kNo, Transpose::kNo, rows, state.value_width, keys, 1, {scores, keys},
                   v, 0, {result, state.value_width});
        for (int64_t i = 0; i < rows; ++i) {
          const C* const source = result + i * state.value_width;
          const V factor = V::fill(scale[i]);
          map(
              y.row(first + i), state.value_width, [&](V x) { return x * factor; }, source);
        }
      }
    }
  });
}

// Where a gradient of one batch matrix is added up: in place, or in `buffer` for 16-bit types.
template <class T>
Matrix<Wide<T>> gradient_target(const Matrix<T>& output, Wide<T>* buffer, int64_t width) {
  if constexpr (kIsHalf<T>) {
    return {buffer, width};
  } else {
    return output;
  }
}

template <class T>
void run_backward(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<AttentionState>();
  const auto& attrs = ctx.attrs_as<AttentionAttrs>();
  const int64_t block = std::min(kQueryBlock, state.queries);
  const int64_t q_size = state.queries * state.width;
  const int64_t k_size = state.keys * state.width;
  const int64_t v_size = state.keys * state.value_width;
  int64_t space = 2 * block * state.keys + q_size + k_size + v_size;
  for (int i = 0; i < 5; ++i)
    space += copy_size<T>(ctx.in(i));
  const auto scale = static_cast<C>(attrs.scale);
  ctx.pool().parallel_for(0, state.batch, 1, [&](int64_t begin, int64_t end) {
    Workspace<C> workspace(ctx, space);
    C* const weights = workspace.take(block * state.keys);
    C* const slopes = workspace.take(block * state.keys);
    C* const q_sum = workspace.take(q_size);
    C* const k_sum = workspace.take(k_size);
    C* const v_sum = workspace.take(v_size);
    C* copies[5];
    for (int i = 0; i < 5; ++i)
      copies[i] = workspace.take(copy_size<T>(ctx.in(i)));
    for (int64_t b = begin; b < end; ++b) {
      const auto dy = matrix<T>(ctx.in(0), b, copies[0]);
      const auto q = matrix<T>(ctx.in(1), b, copies[1]);
      const auto k = matrix<T>(ctx.in(2), b, copies[2]);
      const auto v = matrix<T>(ctx.in(3), b, copies[3]);
      const auto y = matrix<T>(ctx.in(4), b, copies[4]);
      const C* const lse = ctx.in(5).as<C>() + b * state.queries;
      const auto q_out = output_matrix<T>(ctx.out(0), b);
      const auto k_out = output_matrix<T>(ctx.out(1), b);
      const auto v_out = output_matrix<T>(ctx.out(2), b);
      const Matrix<C> dq = gradient_target(q_out, q_sum, state.width);
      const Matrix<C> dk = gradient_target(k_out, k_sum, state.width);
      const Matrix<C> dv = gradient_target(v_out, v_sum, state.value_width);
      // The loop starts at the last block, which sees most keys and so writes dk and dv; the others
      // add to them.
      const int64_t num_blocks = block > 0 ? (state.queries + block - 1) / block : 0;
      const int64_t most = visible_keys(state, attrs.is_causal, state.queries - 1);
      for (int64_t j = num_blocks > 0 ? most : 0; j < state.keys; ++j) {
        std::fill_n(dk.row(j), state.width, C{0});
        std::fill_n(dv.row(j), state.value_width, C{0});
      }
      for (int64_t i_block = num_blocks - 1; i_block >= 0; --i_block) {
        const int64_t first = i_block * block;
        const int64_t rows = std::min(block, state.queries - first);
        const int64_t keys = visible_keys(state, attrs.is_causal, first + rows - 1);
        const C beta = i_block == num_blocks - 1 ? C{0} : C{1};
        const Matrix<const C> own_q{q.row(first), q.stride};
        const Matrix<const C> own_dy{dy.row(first), dy.stride};
        product<C>(Transpose::kNo, Transpose::kYes, rows, keys, state.width, scale, own_q, k, 0,
                   {weights, keys});
        product<C>(Transpose::kNo, Transpose::kYes, rows, keys, state.value_width, 1, own_dy, v, 0,
                   {slopes, keys});
        for (int64_t i = 0; i < rows; ++i) {
          const C* const own_y = y.row(first + i);
          const C* const gradient = own_dy.row(i);
          const V d = V::fill(row_sum<C>(
              state.value_width, [&](auto at) { return at.get(gradient) * at.get(own_y); }));
          const V shift = V::fill(lse[first + i]);
          const V factor = V::fill(scale);
          C* const p = weights + i * keys;
          C* const ds = slopes + i * keys;
          const int64_t seen = visible_keys(state, attrs.is_causal, first + i);
          for_row<C>(seen, [&](auto at) {
            const V weight = exp(at.get(p) - shift);
            at.put(ds, weight * (at.get(ds) - d) * factor);
            at.put(p, weight);
          });
          std::fill(p + seen, p + keys, C{0});
          std::fill(ds + seen, ds + keys, C{0});
        }
        product<C>(Transpose::kNo, Transpose::kNo, rows, state.width, keys, 1, {slopes, keys}, k, 0,
                   {dq.row(first), dq.stride});
        product<C>(Transpose::kYes, Transpose::kNo, keys, state.width, rows, 1, {slopes, keys},
                   own_q, beta, dk);
        product<C>(Transpose::kYes, Transpose::kNo, keys, state.value_width, rows, 1,
                   {weights, keys}, own_dy, beta, dv);
      }
      if constexpr (kIsHalf<T>) {
        const auto narrow_rows = [](const Matrix<T>& to, const Matrix<C>& from, int64_t rows,
                                    int64_t width) {
          for (int64_t i = 0; i < rows; ++i)
            map(
                to.row(i), width, [](V x) { return x; }, from.row(i));
        };
        narrow_rows(q_out, dq, state.queries, state.width);
        narrow_rows(k_out, dk, state.keys, state.width);
        narrow_rows(v_out, dv, state.keys, state.value_width);
      }
    }
  });
}

template <bool kBackward>
KernelChoice select_fast(const KernelQuery& query) {
  if (kBackward && !query.input(5).is_contiguous) return {};
  constexpr int kFirst = kBackward ? 1 : 0;
  KernelChoice choice{nullptr, prepare_attention(query.input(kFirst), query.input(kFirst + 1),
                                                 query.input(kFirst + 2))};
  choice.outputs = attention_outputs(query);
  dispatch_floating(query.output(0).dtype,
                    [&]<class T>() { choice.fn = kBackward ? run_backward<T> : run_attention<T>; });
  const auto& state = *static_cast<const AttentionState*>(choice.state.get());
  const int64_t bytes = dispatch_floating(query.output(0).dtype, [&]<class T>() {
    return workspace_size<T, kBackward>(state, query.inputs) *
           static_cast<int64_t>(sizeof(Wide<T>));
  });
  return with_scratch(std::move(choice), {{bytes, state.batch}});
}

template <bool kBackward>
void add_kernels(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  table.add(op, DeviceType::kCpu, {"reference", select_reference<kBackward>});
#endif
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<kBackward>});
}

}  // namespace

void register_attention_cpu(KernelTable& table);

void register_attention_cpu(KernelTable& table) {
  add_kernels<false>(table, kAttention);
  add_kernels<true>(table, kAttentionBackward);
}

#include "ops/kernel/isa_end.h"

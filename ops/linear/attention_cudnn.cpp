// Attention by cuDNN 9, which takes it as a graph of operations (the pattern of its frontend's
// scaled dot product attention) and runs each graph as one or two kernels. Gradients are
// deterministic: gradients of scores go through memory, for dq = ds k. FLOW_CUDA_DETERMINISTIC=0
// lets dq be summed by atomics instead, which is faster and gives other bits in each run.
#include "ops/linear/attention_cudnn.h"

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"
#include "core/env.h"
#include "core/log.h"
#include "ops/linear/attention_layout.h"
#include "ops/linear/attention_op.h"
#include "ops/local_parts.h"
#include "ops/vendor/cudnn_graph.h"

namespace flow::ops {

namespace {

using Dims = CudnnGraph::Dims;
using Id = CudnnGraph::Id;

constexpr int64_t kPackElements = 8;  // 16 bytes
constexpr int64_t kMostColumns = 128;
constexpr int64_t kLeastRows = 64;  // below, one kernel of flow is as fast and needs no plan

// (batch, heads, rows, columns) of an operand.
struct Operand {
  Dims size;
  Dims stride;

  // The view of the transposed matrices.
  Operand transposed() const {
    return {{size[0], size[1], size[3], size[2]}, {stride[0], stride[1], stride[3], stride[2]}};
  }
};

Operand operand_of(const TensorMeta& meta) {
  const Shape& shape = meta.local_shape;
  const int64_t num_dims = shape.size();
  Operand operand{{1, 1, 1, 1}, {0, 0, 0, 1}};
  for (int64_t i = 0; i < num_dims; ++i) {
    const auto to = static_cast<size_t>(4 - num_dims + i);
    operand.size[to] = shape[i];
    operand.stride[to] = meta.strides[i];
  }
  // The library wants strides of dims of size 1 that are like the others.
  int64_t rest = operand.size[3] * operand.size[2];
  for (const size_t i : {size_t{2}, size_t{1}, size_t{0}}) {
    if (operand.size[i] == 1) operand.stride[i] = i == 2 ? operand.size[3] : rest;
    rest = std::max(rest, operand.size[i] * operand.stride[i]);
  }
  return operand;
}

bool fits(const TensorMeta& meta) {
  const int64_t num_dims = meta.local_shape.size();
  if (num_dims < 2 || num_dims > 4 || meta.local_numel == 0 ||
      meta.local_numel >= int64_t{1} << 31) {
    return false;
  }
  const Operand operand = operand_of(meta);
  if (operand.stride[3] != 1 || operand.size[3] % kPackElements != 0 ||
      operand.size[3] > kMostColumns || operand.size[2] < kLeastRows) {
    return false;
  }
  for (size_t i = 0; i < 3; ++i)
    if (operand.stride[i] <= 0 || operand.stride[i] % kPackElements != 0) return false;
  return true;
}

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

// A graph's tensors in memory, and what each is of a call.
enum class Role : uint8_t {
  kQ,
  kK,
  kV,
  kY,
  kLse,
  kDy,
  kDq,
  kDk,
  kDv,
  kScale,
  kMasked,
  kOne,
  kDots,
  kDqSums
};

struct AttentionPlan {
  std::unique_ptr<CudnnPlan> plan;
  std::vector<Role> roles;
  std::vector<int64_t> ids;
  size_t dots_bytes = 0;
  size_t dq_sums_bytes = 0;
};

// Adds the operations that forward and backward share.
class Builder {
 public:
  Builder(const Dims& q, const Dims& k, DType dtype)
      : type_(data_type(dtype)), scores_{q[0], q[1], q[2], k[2]}, rows_{q[0], q[1], q[2], 1} {}

  CudnnGraph& graph() { return graph_; }

  cudnnDataType_t type() const { return type_; }

  Id given(Role role, const Operand& operand) {
    return keep(role, graph_.tensor(type_, operand.size, operand.stride));
  }

  // A float32 number for each row.
  Id given_rows(Role role) {
    return keep(role,
                graph_.tensor(CUDNN_DATA_FLOAT, rows_, {rows_[1] * rows_[2], rows_[2], 1, 1}));
  }

  Id given_floats(Role role, const Dims& size) {
    return keep(role, graph_.tensor(CUDNN_DATA_FLOAT, size,
                                    {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1}));
  }

  Id number(Role role) { return keep(role, graph_.number()); }

  Id scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return graph_.between(type, scores_); }

  // 16-bit scores with exchanged rows and columns.
  Id transposed_scores() {
    const int64_t rows = scores_[2], columns = scores_[3];
    return graph_.between(type_, {scores_[0], scores_[1], columns, rows},
                          {scores_[1] * rows * columns, rows * columns, 1, columns});
  }

  Id row_numbers() { return graph_.between(CUDNN_DATA_FLOAT, rows_); }

  Id pointwise(cudnnPointwiseMode_t mode, Id x, Id b = CudnnGraph::kNone) {
    const Id y = scores();
    graph_.apply(mode, x, b, y);
    return y;
  }

  Id product(Id a, Id b) {
    const Id c = scores();
    graph_.multiply(a, b, c);
    return c;
  }

  // x where the row sees the column.
  Id masked(Id x) {
    const Id row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32);
    graph_.index(2, x, row);
    graph_.index(3, x, column);
    const Id sees = scores(CUDNN_DATA_BOOLEAN);
    graph_.at_least(row, column, sees);
    const Id y = scores();
    graph_.apply(CUDNN_POINTWISE_BINARY_SELECT, x, number(Role::kMasked), y, sees);
    return y;
  }

  AttentionPlan plan(RankContext& rank) {
    made_.plan = graph_.plan(rank);
    return std::move(made_);
  }

  AttentionPlan& made() { return made_; }

 private:
  Id keep(Role role, Id id) {
    made_.roles.push_back(role);
    made_.ids.push_back(id);
    return id;
  }

  CudnnGraph graph_;
  cudnnDataType_t type_;
  Dims scores_;
  Dims rows_;
  AttentionPlan made_;
};

// y = softmax(scale q k^T) v, with the logarithm of the sum of exp of each row.
AttentionPlan plan_forward(const KernelContext& ctx) {
  const Operand q = operand_of(*ctx.in(0).meta), k = operand_of(*ctx.in(1).meta),
                v = operand_of(*ctx.in(2).meta);
  Builder b(q.size, k.size, ctx.in(0).meta->dtype);
  CudnnGraph& graph = b.graph();
  const Id x = b.product(b.given(Role::kQ, q), b.given(Role::kK, k.transposed()));
  Id s = b.pointwise(CUDNN_POINTWISE_MUL, x, b.number(Role::kScale));
  if (ctx.attrs_as<AttentionAttrs>().is_causal) s = b.masked(s);
  const Id largest = b.row_numbers();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, s, largest);
  const Id e = b.pointwise(CUDNN_POINTWISE_EXP, b.pointwise(CUDNN_POINTWISE_SUB, s, largest));
  const Id sum = b.row_numbers();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, e, sum);
  const Id log = b.row_numbers();
  graph.apply(CUDNN_POINTWISE_LOG, sum, CudnnGraph::kNone, log);
  graph.apply(CUDNN_POINTWISE_ADD, largest, log, b.given_rows(Role::kLse));
  const Id p = b.scores(b.type());
  graph.apply(CUDNN_POINTWISE_DIV, e, sum, p);
  graph.multiply(p, b.given(Role::kV, v), b.given(Role::kY, operand_of(*ctx.out(0).meta)));
  return b.plan(ctx.rank);
}

// With d = sum(dy y) of each row, p the weights and ds = p (dy v^T - d) scale:
// dv = p^T dy, dk = ds^T q, dq = ds k.
AttentionPlan plan_backward(const KernelContext& ctx, bool uses_atomics) {
  const Operand dy = operand_of(*ctx.in(0).meta), q = operand_of(*ctx.in(1).meta),
                k = operand_of(*ctx.in(2).meta), v = operand_of(*ctx.in(3).meta),
                y = operand_of(*ctx.in(4).meta);
  Builder b(q.size, k.size, ctx.in(1).meta->dtype);
  CudnnGraph& graph = b.graph();
  const Id given_dy = b.given(Role::kDy, dy), given_q = b.given(Role::kQ, q);
  const Id given_kt = b.given(Role::kK, k.transposed()), scale = b.number(Role::kScale);

  const Dims& rows = dy.size;
  const Id products =
      graph.between(CUDNN_DATA_FLOAT, rows,
                    {rows[1] * rows[2] * rows[3], rows[2] * rows[3], rows[1] * rows[3], 1});
  graph.apply(CUDNN_POINTWISE_MUL, given_dy, b.given(Role::kY, y), products);
  const Id sums = b.row_numbers();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const Id dots = b.given_rows(Role::kDots);
  graph.apply(CUDNN_POINTWISE_MUL, sums, b.number(Role::kOne), dots);

  Id s = b.pointwise(CUDNN_POINTWISE_MUL, b.product(given_q, given_kt), scale);
  s = b.pointwise(CUDNN_POINTWISE_SUB, s, b.given_rows(Role::kLse));
  if (ctx.attrs_as<AttentionAttrs>().is_causal) s = b.masked(s);
  const Id p = b.pointwise(CUDNN_POINTWISE_EXP, s);
  const Id pt = b.transposed_scores();
  graph.reshape(p, pt);
  graph.multiply(pt, given_dy, b.given(Role::kDv, operand_of(*ctx.out(2).meta)));

  const Id dp = b.product(given_dy, b.given(Role::kV, v.transposed()));
  const Id slopes = b.pointwise(CUDNN_POINTWISE_MUL, b.pointwise(CUDNN_POINTWISE_SUB, dp, dots), p);
  const Id ds = b.pointwise(CUDNN_POINTWISE_MUL, slopes, scale);
  const Id dst = b.transposed_scores();
  graph.reshape(ds, dst);
  graph.multiply(dst, given_q, b.given(Role::kDk, operand_of(*ctx.out(1).meta)));

  const Id keys = graph.between(CUDNN_DATA_FLOAT, k.size, k.stride);
  graph.reshape(given_kt, keys);
  const Id dq = b.given(Role::kDq, operand_of(*ctx.out(0).meta));
  if (uses_atomics) {
    const Id dq_sums = b.given_floats(Role::kDqSums, q.size);
    graph.multiply(ds, keys, dq_sums);
    graph.apply(CUDNN_POINTWISE_IDENTITY, dq_sums, CudnnGraph::kNone, dq);
    b.made().dq_sums_bytes =
        static_cast<size_t>(q.size[0] * q.size[1] * q.size[2] * q.size[3]) * sizeof(float);
  } else {
    graph.multiply(ds, keys, dq);
  }
  b.made().dots_bytes = static_cast<size_t>(q.size[0] * q.size[1] * q.size[2]) * sizeof(float);
  return b.plan(ctx.rank);
}

// The plans of a rank; null for calls that the library refuses.
class AttentionPlans {
 public:
  const AttentionPlan* find(const KernelContext& ctx, bool is_backward) {
    static const bool uses_atomics = env_int("FLOW_CUDA_DETERMINISTIC", 1) == 0;
    const Key key = key_of(ctx, is_backward);
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second.get();
    // A plan that is refused there would leave the call to the fall-back for ever.
    cuda::refuse_in_capture("cuDNN makes a plan");
    const auto entry = plans_.emplace(key, nullptr).first;
    try {
      entry->second = std::make_unique<AttentionPlan>(is_backward ? plan_backward(ctx, uses_atomics)
                                                                  : plan_forward(ctx));
    } catch (const CudnnRefusal& refusal) {
      refuse(ctx, is_backward, refusal);
    }
    return entry->second.get();
  }

  std::mutex mutex;  // held while plans are found and run

  // The call is left to the fall-back from now on.
  void refuse(const KernelContext& ctx, bool is_backward, const CudnnRefusal& refusal) {
    plans_[key_of(ctx, is_backward)] = nullptr;
    log_warning(str("[attention] cuDNN does not take ", is_backward ? "the gradient of " : "",
                    "queries ", ctx.in(is_backward ? 1 : 0).shape(), " ",
                    ctx.in(is_backward ? 1 : 0).meta->dtype, " (", refusal.what(),
                    "); flow's own kernel computes it"));
  }

 private:
  // Metas are interned.
  using Key = std::vector<const void*>;

  static Key key_of(const KernelContext& ctx, bool is_backward) {
    Key key;
    for (const auto views : {ctx.inputs, ctx.outputs})
      for (const TensorView& view : views)
        key.push_back(view.meta);
    static constexpr bool kCausal = true;
    key.push_back(ctx.attrs_as<AttentionAttrs>().is_causal ? &kCausal : nullptr);
    key.push_back(is_backward ? &kCausal : nullptr);
    return key;
  }

  std::map<Key, std::unique_ptr<AttentionPlan>> plans_;
};

bool are_aligned(const KernelContext& ctx) {
  uintptr_t bits = 0;
  for (const auto views : {ctx.inputs, ctx.outputs})
    for (const TensorView& view : views)
      bits |= reinterpret_cast<uintptr_t>(view.data);
  return bits % 16 == 0;
}

struct AttentionState {
  KernelFn fallback;
};

template <bool kBackward>
void run(const KernelContext& ctx) {
  const KernelFn fallback = ctx.state_as<AttentionState>().fallback;
  static_cast<void>(cuda::stream_of(ctx));  // makes the rank's device current
  auto& plans = ctx.rank.slot<AttentionPlans>();
  const std::lock_guard lock(plans.mutex);
  const AttentionPlan* const plan = are_aligned(ctx) ? plans.find(ctx, kBackward) : nullptr;
  if (plan == nullptr) return fallback(ctx);
  auto scale = static_cast<float>(ctx.attrs_as<AttentionAttrs>().scale);
  float masked = std::numeric_limits<float>::lowest();
  float one = 1;
  const Ref<Storage> workspace = ctx.scratch(plan->plan->workspace_bytes() + 1);
  const Ref<Storage> dots = ctx.scratch(plan->dots_bytes + 1);
  const Ref<Storage> dq_sums = ctx.scratch(plan->dq_sums_bytes + 1);
  const auto address_of = [&](Role role) -> void* {
    constexpr int kFirst = kBackward ? 1 : 0;
    switch (role) {
      case Role::kQ:
        return ctx.in(kFirst).data;
      case Role::kK:
        return ctx.in(kFirst + 1).data;
      case Role::kV:
        return ctx.in(kFirst + 2).data;
      case Role::kY:
        return kBackward ? ctx.in(4).data : ctx.out(0).data;
      case Role::kLse:
        return kBackward ? ctx.in(5).data : ctx.out(1).data;
      case Role::kDy:
        return ctx.in(0).data;
      case Role::kDq:
        return ctx.out(0).data;
      case Role::kDk:
        return ctx.out(1).data;
      case Role::kDv:
        return ctx.out(2).data;
      case Role::kScale:
        return &scale;
      case Role::kMasked:
        return &masked;
      case Role::kOne:
        return &one;
      case Role::kDots:
        return dots->data();
      case Role::kDqSums:
        return dq_sums->data();
    }
    return nullptr;
  };
  std::vector<void*> addresses;
  for (const Role role : plan->roles)
    addresses.push_back(address_of(role));
  try {
    plan->plan->run(ctx.rank, plan->ids, addresses, workspace->data());
  } catch (const CudnnRefusal& refusal) {
    cuda::refuse_in_capture("cuDNN refuses attention");
    plans.refuse(ctx, kBackward, refusal);
    fallback(ctx);
  }
}

// Whether a rank holds the whole sequences, so that row i sees the columns up to i.
bool holds_sequences(const TensorMeta& q, const TensorMeta& k) {
  const int64_t rows = q.dim() - 2;
  return q.local_begin[rows] == 0 && k.local_begin[rows] == 0 &&
         q.local_shape[rows] == k.local_shape[rows];
}

}  // namespace

KernelChoice select_attention_cudnn(const KernelQuery& query, const KernelChoice& fallback) {
  const bool is_backward = &query.op == &kAttentionBackward;
  const int first = is_backward ? 1 : 0;
  const TensorMeta& q = query.input(first);
  const bool is_16_bit = q.dtype == DType::kFloat16 || q.dtype == DType::kBFloat16;
  if (fallback.fn == nullptr || !is_16_bit || !parts_fit(query) || !has_cudnn_graphs()) return {};
  if (query.attrs_as<AttentionAttrs>().is_causal && !holds_sequences(q, query.input(first + 1))) {
    return {};
  }
  std::vector<MetaPtr> outputs = attention_outputs(query);
  for (int i = 0; i < (is_backward ? 5 : 3); ++i)
    if (!fits(query.input(i))) return {};
  for (size_t i = 0; i < (is_backward ? 3U : 1U); ++i)
    if (!fits(*outputs[i])) return {};
  if (is_backward && !query.input(5).is_contiguous) return {};
  return {is_backward ? run<true> : run<false>,
          std::make_shared<const AttentionState>(AttentionState{fallback.fn}), std::move(outputs)};
}

}  // namespace flow::ops

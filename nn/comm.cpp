#include "nn/comm.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "autograd/function.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/tensor_impl.h"
#include "core/tensor_meta.h"
#include "nn/comm_call.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"

namespace flow::comm {

using internal::balanced_rows;
using internal::call;
using internal::check;
using internal::check_rows;
using internal::Communicator;
using internal::Counts;
using internal::data;
using internal::Fingerprint;
using internal::group_for;
using internal::group_of;
using internal::like;
using internal::member_of;
using internal::reduce_op;
using internal::rows_to_send;
using internal::source_of;
using internal::total;

namespace {

Shape without_rows(const Shape& shape) {
  return Shape(std::span<const int64_t>(shape.begin(), shape.end()).subspan(1));
}

Shape with_rows(const Shape& shape, int64_t rows) {
  Shape result = shape;
  result[0] = rows;
  return result;
}

int64_t elements_per_row(const Shape& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

Counts scaled(Counts counts, int64_t factor) {
  for (int64_t& count : counts)
    count *= factor;
  return counts;
}

// The number of rows that each member passes. All other dims must be equal.
Counts exchange_rows(Communicator& group, const Tensor& x, const char* op, Site site) {
  const int64_t mine = x.size(0);
  Counts rows(static_cast<size_t>(group.size()));
  group.all_gather(&mine, rows.data(), Counts(rows.size(), sizeof(int64_t)),
                   call(op, without_rows(x.shape()), x.dtype(), site));
  return rows;
}

// ---------------------------------------------------------------- the operations

struct AllReduce : Function<AllReduce> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const ReductionOptions& options,
                        Site site) {
    check(x, "comm::all_reduce", site);
    const Tensor source = source_of(x);
    Tensor y = empty(x.shape(), like(x));
    group_for(x, group_of(options.ranks))
        .all_reduce(data(source), data(y), x.numel(), x.dtype(), reduce_op(options.op),
                    call("comm::all_reduce", x.shape(), x.dtype(), site));
    ctx.set(options);
    if (options.op != Reduction::kSum) ctx.save_for_backward({x, y});
    return y;
  }

  // The loss is the sum over all ranks, so dx = Σ dy over the ranks. For y = max x: dx = (Σ dy) [x
  // == y] / ties.
  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& options = ctx.get<ReductionOptions>();
    const ReductionOptions sum{.ranks = options.ranks};
    const Tensor all = all_reduce(dy[0], sum);
    if (options.op == Reduction::kSum) return {all, Tensor(), Tensor()};
    const std::vector<Tensor> saved = ctx.saved();
    const Tensor is_taken = cast(eq(saved[0], saved[1]), saved[0].dtype());
    return {all * is_taken / all_reduce(is_taken, sum), Tensor(), Tensor()};
  }
};

void check_sum(const ReductionOptions& options, const char* op) {
  if (options.op != Reduction::kSum) {
    throw Unsupported(str("[", op,
                          "] only sums have a gradient; use all_reduce, which also differentiates "
                          "maxima and minima"));
  }
}

struct RootCall {
  int64_t root;
  Ranks ranks;
  Reduction op = Reduction::kSum;
  Shape shape = {};  // of x
};

struct Reduce : Function<Reduce> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const RootCall& options, Site site) {
    check(x, "comm::reduce", site);
    Communicator& group = group_of(options.ranks);
    const Tensor source = source_of(x);
    Tensor y = zeros(x.shape(), like(x));
    group_for(x, group).reduce(data(source), data(y), x.numel(), x.dtype(), reduce_op(options.op),
                               member_of(group, options.root, "comm::reduce"),
                               call("comm::reduce", x.shape(), x.dtype(), site));
    ctx.set(options);
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& options = ctx.get<RootCall>();
    check_sum({.op = options.op}, "comm::reduce");
    return {broadcast(dy[0], options.root, {options.ranks}), Tensor(), Tensor()};
  }
};

struct Broadcast : Function<Broadcast> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const RootCall& options, Site site) {
    check(x, "comm::broadcast", site);
    Communicator& group = group_of(options.ranks);
    Tensor y = x.contiguous().clone();
    group_for(x, group).broadcast(data(y), y.numel() * static_cast<int64_t>(y.element_size()),
                                  member_of(group, options.root, "comm::broadcast"),
                                  call("comm::broadcast", x.shape(), x.dtype(), site));
    ctx.set(options);
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& options = ctx.get<RootCall>();
    return {reduce(dy[0], options.root, {.ranks = options.ranks}), Tensor(), Tensor()};
  }
};

// How many of the reduced rows each member gets.
struct RowsCall {
  Counts rows;
  Ranks ranks;
  Reduction op = Reduction::kSum;
};

struct ReduceScatter : Function<ReduceScatter> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const RowsCall& options, Site site) {
    Communicator& group = group_of(options.ranks);
    const Tensor source = source_of(x);
    const int64_t mine = options.rows[static_cast<size_t>(group.position())];
    Tensor y = empty(with_rows(x.shape(), mine), like(x));
    group_for(x, group).reduce_scatter(
        data(source), data(y), scaled(options.rows, elements_per_row(x.shape())), x.dtype(),
        reduce_op(options.op), call("comm::reduce_scatter", x.shape(), x.dtype(), site));
    ctx.set(options);
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& options = ctx.get<RowsCall>();
    check_sum({.op = options.op}, "comm::reduce_scatter");
    return {all_gather(dy[0], {options.ranks}), Tensor(), Tensor()};
  }
};

struct AllGather : Function<AllGather> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Ranks& ranks, Site site) {
    check_rows(x, "comm::all_gather", site);
    Communicator& group = group_of(ranks);
    const Counts rows = exchange_rows(group, x, "comm::all_gather", site);
    const int64_t row_bytes = elements_per_row(x.shape()) * static_cast<int64_t>(x.element_size());
    const Tensor source = source_of(x);
    Tensor y = empty(with_rows(x.shape(), total(rows)), like(x));
    group_for(x, group).all_gather(
        data(source), data(y), scaled(rows, row_bytes),
        call("comm::all_gather", without_rows(x.shape()), x.dtype(), site));
    ctx.set(RowsCall{.rows = rows, .ranks = ranks});
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    return {ReduceScatter::apply(dy[0], ctx.get<RowsCall>(), Site::here()), Tensor(), Tensor()};
  }
};

// Splits the root's rows as the root says; the other members learn the size of their part.
struct Scatter : Function<Scatter> {
  // `rows` is used on the root only. Empty: balanced.
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const RootCall& options,
                        const Counts& rows, Site site) {
    check(x, "comm::scatter", site);
    Communicator& group = group_of(options.ranks);
    const int64_t root = member_of(group, options.root, "comm::scatter");
    const bool is_root = group.position() == root;
    if (is_root) check_rows(x, "comm::scatter", site);
    const Fingerprint what = call("comm::scatter", {}, x.dtype(), site);
    // The root's number of dims and shape, followed by the number of rows for each member.
    Counts plan(static_cast<size_t>(1 + kMaxDims + group.size()));
    if (is_root) {
      const Counts parts = rows.empty() ? balanced_rows(x.size(0), group.size()) : rows;
      plan[0] = x.dim();
      std::copy(x.shape().begin(), x.shape().end(), plan.begin() + 1);
      std::copy(parts.begin(), parts.end(), plan.begin() + 1 + kMaxDims);
    }
    group.broadcast(plan.data(), static_cast<int64_t>(plan.size() * sizeof(int64_t)), root, what);
    const Shape whole(std::span<const int64_t>(plan).subspan(1, static_cast<size_t>(plan[0])));
    const Counts parts(plan.begin() + 1 + kMaxDims, plan.end());
    Tensor y = empty(with_rows(whole, parts[static_cast<size_t>(group.position())]), like(x));
    const Tensor source = source_of(x);
    group_for(x, group).scatter(
        data(source), data(y),
        scaled(parts, elements_per_row(whole) * static_cast<int64_t>(x.element_size())), root,
        what);
    RootCall kept = options;
    kept.shape = x.shape();
    ctx.set(kept);
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& options = ctx.get<RootCall>();
    Tensor dx = gather(dy[0], options.root, {options.ranks});
    // The values passed by other members than the root were ignored, so their gradient is 0.
    if (env::rank() != options.root) dx = zeros(options.shape, like(dy[0]));
    return {dx, Tensor(), Tensor(), Tensor()};
  }
};

struct Gather : Function<Gather> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const RootCall& options, Site site) {
    check_rows(x, "comm::gather", site);
    Communicator& group = group_of(options.ranks);
    const int64_t root = member_of(group, options.root, "comm::gather");
    const Counts rows = exchange_rows(group, x, "comm::gather", site);
    const bool is_root = group.position() == root;
    const Tensor source = source_of(x);
    Tensor y = empty(with_rows(x.shape(), is_root ? total(rows) : 0), like(x));
    const int64_t row_bytes = elements_per_row(x.shape()) * static_cast<int64_t>(x.element_size());
    group_for(x, group).gather(data(source), data(y), scaled(rows, row_bytes), root,
                               call("comm::gather", without_rows(x.shape()), x.dtype(), site));
    ctx.set(std::pair(options, rows));
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    const auto& [options, rows] = ctx.get<std::pair<RootCall, Counts>>();
    return {Scatter::apply(dy[0], options, rows, Site::here()), Tensor(), Tensor()};
  }
};

struct AllToAll : Function<AllToAll> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const AllToAllOptions& options,
                        Site site) {
    check_rows(x, "comm::all_to_all", site);
    Communicator& group = group_of(options.ranks);
    const Counts sent = rows_to_send(x, options, group, site);
    const Fingerprint what = call("comm::all_to_all", without_rows(x.shape()), x.dtype(), site);
    Counts received(sent.size());
    const Counts one(sent.size(), sizeof(int64_t));
    group.all_to_all(sent.data(), one, received.data(), one, what);
    const int64_t row_bytes = elements_per_row(x.shape()) * static_cast<int64_t>(x.element_size());
    const Tensor source = source_of(x);
    Tensor y = empty(with_rows(x.shape(), total(received)), like(x));
    group_for(x, group).all_to_all(data(source), scaled(sent, row_bytes), data(y),
                                   scaled(received, row_bytes), what);
    ctx.set(AllToAllOptions{.rows = received, .ranks = options.ranks});
    return y;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, std::vector<Tensor> dy) {
    return {all_to_all(dy[0], ctx.get<AllToAllOptions>()), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor all_reduce(const TensorArg& x, const ReductionOptions& options) {
  return AllReduce::apply(x, options, x.site());
}

Tensor reduce(const TensorArg& x, int64_t root, const ReductionOptions& options) {
  return Reduce::apply(x, RootCall{.root = root, .ranks = options.ranks, .op = options.op},
                       x.site());
}

Tensor reduce_scatter(const TensorArg& x, const ReductionOptions& options) {
  check_rows(x, "comm::reduce_scatter", x.site());
  const Counts rows = balanced_rows(x->size(0), group_of(options.ranks).size());
  return ReduceScatter::apply(x, RowsCall{.rows = rows, .ranks = options.ranks, .op = options.op},
                              x.site());
}

Tensor all_gather(const TensorArg& x, const GroupOptions& options) {
  return AllGather::apply(x, options.ranks, x.site());
}

Tensor gather(const TensorArg& x, int64_t root, const GroupOptions& options) {
  return Gather::apply(x, RootCall{.root = root, .ranks = options.ranks}, x.site());
}

Tensor scatter(const TensorArg& x, int64_t root, const GroupOptions& options) {
  return Scatter::apply(x, RootCall{.root = root, .ranks = options.ranks}, Counts{}, x.site());
}

Tensor broadcast(const TensorArg& x, int64_t root, const GroupOptions& options) {
  return Broadcast::apply(x, RootCall{.root = root, .ranks = options.ranks}, x.site());
}

Tensor all_to_all(const TensorArg& x, const AllToAllOptions& options) {
  return AllToAll::apply(x, options, x.site());
}

void barrier(const GroupOptions& options, Site site) {
  group_of(options.ranks).barrier({.op = "comm::barrier", .site = user_site(site)});
}

std::vector<Tensor> all_reduce_coalesced(const TensorListArg& tensors,
                                         const ReductionOptions& options) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors.tensors)
    results.push_back(all_reduce({tensor, tensors.site}, options));
  return results;
}

std::vector<Tensor> all_gather_coalesced(const TensorListArg& tensors,
                                         const GroupOptions& options) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors.tensors)
    results.push_back(all_gather({tensor, tensors.site}, options));
  return results;
}

}  // namespace flow::comm

namespace flow {

uint64_t seed(Site site) {
  std::random_device device;
  const uint64_t drawn = (uint64_t{device()} << 32 | device()) >> 1;  // fits into int64
  Tensor number =
      tensor(std::vector<int64_t>{static_cast<int64_t>(drawn)}, {1}, {.device = "cpu"}, site);
  if (env::world_size() > 1) number = comm::broadcast({number, site}, 0);
  const auto common = static_cast<uint64_t>(number.item<int64_t>(site));
  manual_seed(common);
  return common;
}

}  // namespace flow

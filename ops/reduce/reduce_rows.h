// The table of reductions whose result is one value for each kept element, whatever the order in
// which the elements are joined. A row is a struct with facts, a formula and a gradient. Iterating
// over the table gives each row its op (reduce.cpp), its kernels on the CPU (reduce_cpu.cpp) and on
// CUDA devices (reduce_cuda.cu), its samples of the contract test and its binding in flow-conform.
//
//   struct Prod : Reduction {
//     static constexpr ReduceFacts kFacts{.name = "prod", …};
//     start<A>()        the result of no elements; A is the type in which the kernel accumulates:
//                       float, double or int64_t, or int if the result is a bool
//     take(x)           what an element contributes: x itself unless the row says otherwise
//     join(a, b)        of what two groups of elements contribute
//     end(a, divisor)   the result: a itself unless the row says otherwise; only mean has a divisor
//     dx(in)            the gradient, from in.dy(), which has the reduced dims with size 1,
//                       in.dims(), in.x() if kFacts.reads_x, and in.spread(t), which repeats t to
//                       x's shape
//   };
//
// The list at the end holds all rows. A vector form is optional: a Fold of
// ops/reduce/reduce_loops.h in reduce_cpu.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "core/op.h"
#include "ops/elementwise/rows.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_op.h"

namespace flow::ops {

struct ReduceFacts {
  const char* name;
  Tensor (*whole)(const TensorArg& x);
  // The form with dims or with one dim; one of these is given.
  Tensor (*over_dims)(const TensorArg& x, const Ints& dims, const ReduceOptions& options) = nullptr;
  Tensor (*over_kept)(const TensorArg& x, const Ints& dims,
                      const KeepdimOptions& options) = nullptr;
  Tensor (*over_dim)(const TensorArg& x, int64_t dim, const ReduceOptions& options) = nullptr;
  SbpFn sbp;
  RowSample sample = kNearZero;
  AutocastRule autocast = AutocastRule::kFloat32;
  bool reads_x = false;
  bool gives_bools = false;  // else the result has x's dtype, or int64 for integers and bools
};

struct Reduction {
  template <class X>
  FLOW_HOST_DEVICE static X take(X x) {
    return x;
  }

  template <class A>
  FLOW_HOST_DEVICE static A end(A a, double /*divisor*/) {
    return a;
  }
};

// clang-format off

// Integers wrap around.
struct Sum : Reduction {
  static constexpr ReduceFacts kFacts{.name = "sum", .whole = sum, .over_dims = sum,
                                      .sbp = sbp_sum};
  template <class A> FLOW_HOST_DEVICE static A start() { return 0; }
  template <class A> FLOW_HOST_DEVICE static A join(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
  template <class A> FLOW_HOST_DEVICE static A end(A sum, double divisor) {
    if constexpr (std::is_integral_v<A>) return sum;
    return sum / static_cast<A>(divisor);
  }
  static auto dx(const auto& in) { return in.spread(in.dy()); }
};

struct Nansum : Sum {
  static constexpr ReduceFacts kFacts{.name = "nansum", .whole = nansum, .over_dims = nansum,
                                      .sbp = sbp_nansum, .sample = kSpecials,
                                      .reads_x = true};
  template <class X> FLOW_HOST_DEVICE static X take(X x) { return x == x ? x : X{0}; }
  static auto dx(const auto& in) { return masked_fill(in.spread(in.dy()), isnan(in.x()), 0); }
};

// dx[i] is dy times the product of the other elements.
struct Prod : Reduction {
  static constexpr ReduceFacts kFacts{.name = "prod", .whole = prod, .over_dim = prod,
                                      .sbp = sbp_kept_dims, .sample = {.low = 0.9, .high = 1.1},
                                      .reads_x = true};
  template <class A> FLOW_HOST_DEVICE static A start() { return 1; }
  template <class A> FLOW_HOST_DEVICE static A join(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
  static auto dx(const auto& in) { return mul(products_of_others(in.x(), in.dims()), in.dy()); }
};

struct Any : Reduction {
  static constexpr ReduceFacts kFacts{.name = "any", .whole = any, .over_kept = any,
                                      .sbp = sbp_any, .sample = {.zeros = 0.8},
                                      .autocast = AutocastRule::kNone, .gives_bools = true};
  template <class A> FLOW_HOST_DEVICE static A start() { return 0; }
  template <class X> FLOW_HOST_DEVICE static int take(X x) { return x != X{0} ? 1 : 0; }
  template <class A> FLOW_HOST_DEVICE static A join(A a, A b) { return a | b; }
};

struct All : Reduction {
  static constexpr ReduceFacts kFacts{.name = "all", .whole = all, .over_kept = all,
                                      .sbp = sbp_all, .sample = {.zeros = 0.3},
                                      .autocast = AutocastRule::kNone, .gives_bools = true};
  template <class A> FLOW_HOST_DEVICE static A start() { return 1; }
  template <class X> FLOW_HOST_DEVICE static int take(X x) { return Any::take(x); }
  template <class A> FLOW_HOST_DEVICE static A join(A a, A b) { return a & b; }
};

// clang-format on

using ReduceRows = Rows<Sum, Nansum, Prod, Any, All>;

// The ops, in the order of the list.
extern const std::array<OpDef, ReduceRows::kSize> kReduceOps;

template <class Row>
constexpr const OpDef& reduction_of() {
  return kReduceOps[position_of<Row>(ReduceRows())];
}

// What a kernel joins for elements of type T: E is the type of the elements that the formula takes
// and in which it accumulates, for example double.
template <class Row, class T, class E>
struct Gather {
  using Gathered = decltype(Row::take(E()));
  using Result = std::conditional_t<Row::kFacts.gives_bools, bool,
                                    std::conditional_t<is_floating(dtype_of<T>), T, int64_t>>;

  FLOW_HOST_DEVICE static Gathered start() { return Row::template start<Gathered>(); }

  FLOW_HOST_DEVICE static Gathered take(E x) { return Row::take(x); }

  FLOW_HOST_DEVICE static Gathered join(Gathered a, Gathered b) { return Row::join(a, b); }

  FLOW_HOST_DEVICE static Gathered end(Gathered a, double divisor) { return Row::end(a, divisor); }
};

}  // namespace flow::ops

// CUDA kernels of ops/elementwise/bitwise.h.
#include "ops/elementwise/bitwise_op.h"
#include "ops/elementwise/formulas_cuda.cuh"

namespace flow::ops {

void register_bitwise_cuda(KernelTable& table);

namespace {

struct And {
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct Or {
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Xor {
  template <class T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct Not {
  template <class T>
  static __device__ T apply(T x) {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

template <class T>
__device__ bool is_within_width(T bits) {
  if constexpr (std::is_signed_v<T>) {
    if (bits < 0) return false;
  }
  return static_cast<uint64_t>(bits) < 8 * sizeof(T);
}

struct LeftShift {
  template <class T>
  static __device__ T apply(T a, T bits) {
    return is_within_width(bits) ? static_cast<T>(static_cast<uint64_t>(a) << bits) : T{0};
  }
};

struct RightShift {
  template <class T>
  static __device__ T apply(T a, T bits) {
    return static_cast<T>(is_within_width(bits) ? a >> bits : a < T{0} ? -1 : 0);
  }
};

template <class F>
void add(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kInteger, 2>(table, op);
}

}  // namespace

void register_bitwise_cuda(KernelTable& table) {
  add<And>(table, kBitwiseAnd);
  add<Or>(table, kBitwiseOr);
  add<Xor>(table, kBitwiseXor);
  add_formula<Applied<Not>::Of, Elements::kInteger, 1>(table, kBitwiseNot);
  add<LeftShift>(table, kLeftShift);
  add<RightShift>(table, kRightShift);
}

}  // namespace flow::ops

// The positions of the nonzero elements.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/float16.h"
#include "core/kernel.h"
#include "ops/index/index_op.h"
#include "ops/kernel/contiguous_copy.h"

#include "ops/kernel/isa_begin.h"

void register_nonzero_cpu(KernelTable& table);

namespace {

template <class T>
bool is_nonzero(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return (x.bits & 0x7FFF) != 0;  // not a zero of either sign
  } else {
    return x != T{};
  }
}

// The rows of the output that are still to be written: the caller counted the nonzero elements.
class Rows {
 public:
  explicit Rows(const TensorView& y) : next_(y.as<int64_t>()), left_(y.shape()[0]) {}

  // The place of the next `count` rows. Throws InvalidArgument if fewer are left.
  int64_t* take(int64_t count, int64_t num_dims) {
    if (count > left_) throw_miscounted();
    left_ -= count;
    return std::exchange(next_, next_ + count * num_dims);
  }

  void check_all_taken() const {
    if (left_ != 0) throw_miscounted();
  }

 private:
  [[noreturn]] static void throw_miscounted() {
    throw InvalidArgument(
        "[nonzero] the tensor has changed since its nonzero elements were counted; let no other "
        "thread write it meanwhile");
  }

  int64_t* next_;
  int64_t left_;
};

#if FLOW_ISA == 0

void nonzero(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const Shape& shape = x.shape();
  Rows rows(ctx.out(0));
  dispatch_all(x.meta->dtype, [&]<class T>() {
    const T* values = x.as<T>();
    Shape at = Shape::filled(shape.size(), 0);
    int64_t place = 0;
    for (int64_t left = x.numel(); left > 0; --left) {
      if (is_nonzero(values[place])) std::copy(at.begin(), at.end(), rows.take(1, shape.size()));
      for (int64_t i = shape.size() - 1; i >= 0; --i) {
        place += x.strides()[i];
        if (++at[i] < shape[i]) break;
        place -= x.strides()[i] * shape[i];
        at[i] = 0;
      }
    }
  });
  rows.check_all_taken();
}

#endif

constexpr int64_t kMaskBits = 64;

// Bit i is set if x[i] is not 0, for i < n.
template <class T>
uint64_t nonzero_mask(const T* x, int64_t n) {
  alignas(kMaskBits) std::array<uint8_t, kMaskBits> flags{};
  if (n == kMaskBits) {
    for (size_t i = 0; i < flags.size(); ++i)
      flags[i] = is_nonzero(x[i]) ? 1 : 0;
  } else {
    for (size_t i = 0; i < static_cast<size_t>(n); ++i)
      flags[i] = is_nonzero(x[i]) ? 1 : 0;
  }
  uint64_t mask = 0;
  for (size_t i = 0; i < flags.size(); i += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, flags.data() + i, sizeof(eight));
    // The product moves bit 0 of byte k to bit 56 + k.
    mask |= (eight * 0x0102040810204080 >> 56) << i;
  }
  return mask;
}

// Writes the positions that are nonzero in one row of x, behind the position of that row. kOuter is
// the number of dims before the last one.
template <int kOuter, class T>
void write_row(const T* row, int64_t n, const Shape& at, Rows& rows) {
  std::array<int64_t, kMaxDims> outer;
  std::copy_n(at.begin(), kOuter, outer.begin());
  for (int64_t begin = 0; begin < n; begin += kMaskBits) {
    uint64_t mask = nonzero_mask(row + begin, std::min(kMaskBits, n - begin));
    int64_t* target = rows.take(std::popcount(mask), kOuter + 1);
    for (; mask != 0; mask &= mask - 1) {
      for (size_t i = 0; i < kOuter; ++i)
        target[i] = outer[i];
      target[kOuter] = begin + std::countr_zero(mask);
      target += kOuter + 1;
    }
  }
}

// Rows are contiguous.
template <int kOuter, class T>
void nonzero_fast(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const Shape& shape = x.shape();
  Rows rows(ctx.out(0));
  Shape at = Shape::filled(shape.size(), 0);
  int64_t place = 0;
  for (int64_t row = x.numel() / shape[kOuter]; row > 0; --row) {
    write_row<kOuter>(x.as<T>() + place, shape[kOuter], at, rows);
    for (int64_t i = kOuter - 1; i >= 0; --i) {
      place += x.strides()[i];
      if (++at[i] < shape[i]) break;
      place -= x.strides()[i] * shape[i];
      at[i] = 0;
    }
  }
  rows.check_all_taken();
}

template <class T>
KernelFn loop_for(int64_t ndim) {
  switch (ndim) {
    case 1:
      return nonzero_fast<0, T>;
    case 2:
      return nonzero_fast<1, T>;
    case 3:
      return nonzero_fast<2, T>;
    case 4:
      return nonzero_fast<3, T>;
    default:
      return nullptr;
  }
}

KernelChoice select_nonzero(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const int64_t last = x.dim() - 1;
  if (last < 0 || x.local_numel == 0 || (x.strides[last] != 1 && x.local_shape[last] != 1)) {
    return {};
  }
  return {dispatch_all(x.dtype, [&]<class T>() { return loop_for<T>(x.dim()); })};
}

}  // namespace

void register_nonzero_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kNonzero, DeviceType::kCpu, {"reference", always<nonzero>});
#endif
  table.add(kNonzero, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_nonzero>});
}

#include "ops/kernel/isa_end.h"

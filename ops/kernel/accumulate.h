// Adds up many values at scattered positions of one tensor.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/float16.h"
#include "core/kernel.h"

namespace flow::ops {

// Adds to the elements of a local part, which are named by their offset from its first element.
// 16-bit floats are added up in float and rounded once, by store(). Bools are combined by "or".
template <class T>
class Accumulator {
 public:
  static constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
  using Sum = std::conditional_t<kIsFloat16, float, T>;

  // Starts from the values in `target`.
  Accumulator(const KernelContext& ctx, const TensorView& target) : values_(target.as<T>()) {
    if constexpr (kIsFloat16) {
      count_ = target.numel() == 0 ? 0 : 1;
      for (int64_t i = 0; count_ > 0 && i < target.shape().size(); ++i)
        count_ += (target.shape()[i] - 1) * target.strides()[i];
      scratch_ = ctx.scratch(static_cast<size_t>(count_) * sizeof(float));
      sums_ = reinterpret_cast<float*>(scratch_->data());
      for (int64_t i = 0; i < count_; ++i)
        sums_[i] = static_cast<float>(values_[i]);
    } else {
      sums_ = values_;
    }
  }

  [[gnu::always_inline]] void add(int64_t place, T value) const {
    if constexpr (std::is_same_v<T, bool>) {
      sums_[place] = sums_[place] || value;
    } else if constexpr (std::is_integral_v<T>) {  // wraps around
      sums_[place] =
          static_cast<T>(static_cast<uint64_t>(sums_[place]) + static_cast<uint64_t>(value));
    } else {
      sums_[place] += static_cast<Sum>(value);
    }
  }

  // Adds n values to the elements from `place` on whose distance is `stride`.
  [[gnu::always_inline]] void add_line(int64_t place, int64_t stride, const T* values,
                                       int64_t n) const {
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        add(place + i, values[i]);
    } else {
      for (int64_t i = 0; i < n; ++i)
        add(place + i * stride, values[i]);
    }
  }

  void store() const {
    if constexpr (kIsFloat16) {
      for (int64_t i = 0; i < count_; ++i)
        values_[i] = T(sums_[i]);
    }
  }

 private:
  T* values_;
  int64_t count_ = 0;  // elements from the first to the last
  Ref<Storage> scratch_;
  Sum* sums_ = nullptr;
};

}  // namespace flow::ops

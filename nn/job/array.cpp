#include "nn/job/array.h"

#include <cstring>

#include "core/error.h"
#include "core/float16.h"

namespace flow {

Array::Array(DType dtype, const Shape& shape, size_t count)
    : dtype_(dtype), shape_(shape), bytes_(new std::byte[count * dtype_size(dtype)]) {
  if (static_cast<size_t>(shape.numel()) != count) {
    throw InvalidArgument(str("[Array] the number of values does not fit the shape; received ",
                              count, " values for shape ", shape, "; give ", shape.numel(),
                              " values or another shape"));
  }
}

Array Array::copy_of(const void* source, DType dtype, const Shape& shape) {
  const auto count = static_cast<size_t>(shape.numel());
  Array array(dtype, shape, count);
  if (count > 0) std::memcpy(array.bytes_.get(), source, count * dtype_size(dtype));
  return array;
}

template <class T>
std::vector<T> Array::to_vector() const {
  std::vector<T> values(static_cast<size_t>(numel()));
  dispatch_all(dtype_, [&]<class Stored>() {
    const auto* stored = reinterpret_cast<const Stored*>(bytes_.get());
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<Stored, Float16> || std::is_same_v<Stored, BFloat16>) {
        values[i] = static_cast<T>(static_cast<float>(stored[i]));
      } else {
        values[i] = static_cast<T>(stored[i]);  // NOLINT(bugprone-signed-char-misuse): numbers
      }
    }
  });
  return values;
}

template std::vector<bool> Array::to_vector() const;
template std::vector<uint8_t> Array::to_vector() const;
template std::vector<int8_t> Array::to_vector() const;
template std::vector<int16_t> Array::to_vector() const;
template std::vector<int32_t> Array::to_vector() const;
template std::vector<int64_t> Array::to_vector() const;
template std::vector<float> Array::to_vector() const;
template std::vector<double> Array::to_vector() const;

}  // namespace flow

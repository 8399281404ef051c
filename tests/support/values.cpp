#include "tests/support/values.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace flow::contract {

namespace {

// Larger than any wrong index that a kernel can compute from the samples' sizes.
constexpr size_t kGuardBytes = 8192;

std::byte fill_byte(const Fill& fill, DType dtype) {
  return is_floating(dtype) ? fill.floats : dtype == DType::kBool ? fill.bools : fill.integers;
}

// The number of elements from the first to the last one that the strides reach.
int64_t extent_of(const TensorMeta& meta) {
  if (meta.local_numel == 0) return 0;
  int64_t extent = 1;
  for (int64_t i = 0; i < meta.strides.size(); ++i)
    extent += (meta.local_shape[i] - 1) * meta.strides[i];
  return extent;
}

// Calls fn(offset in elements) for each element in row-major order.
template <class Fn>
void for_each_offset(const TensorMeta& meta, Fn&& fn) {
  Shape at = Shape::filled(meta.local_shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < meta.local_numel; ++i) {
    fn(offset);
    for (int64_t d = at.size() - 1; d >= 0; --d) {
      offset += meta.strides[d];
      if (++at[d] < meta.local_shape[d]) break;
      offset -= meta.local_shape[d] * meta.strides[d];
      at[d] = 0;
    }
  }
}

template <class T>
double load(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
T store(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};

}  // namespace

Tensor make_guarded(MetaPtr meta, const Fill& fill) {
  const size_t bytes = static_cast<size_t>(extent_of(*meta)) * dtype_size(meta->dtype);
  const size_t total = bytes + 2 * kGuardBytes;
  auto* memory = static_cast<std::byte*>(::operator new[](total, std::align_val_t{64}));
  std::memset(memory, std::to_integer<int>(fill_byte(fill, meta->dtype)), total);
  return Tensor::make(meta, Storage::wrap(memory + kGuardBytes, bytes,
                                          [memory](void*) { AlignedDelete()(memory); }));
}

Tensor make_guarded(MetaPtr meta, const Values& values) {
  Tensor tensor = make_guarded(meta, kInputFill);
  write_values(tensor, values);
  return tensor;
}

bool guards_intact(const Tensor& tensor, const Fill& fill) {
  const Storage& storage = *tensor.impl().storage;
  const std::byte expected = fill_byte(fill, tensor.dtype());
  const auto is_filled = [expected](const std::byte* begin) {
    return std::all_of(begin, begin + kGuardBytes, [=](std::byte b) { return b == expected; });
  };
  return is_filled(storage.data() - kGuardBytes) && is_filled(storage.data() + storage.bytes());
}

bool lies_in_storage(const Tensor& tensor) {
  const TensorMeta& meta = tensor.meta();
  if (meta.local_numel == 0) return true;
  int64_t first = tensor.impl().offset;
  int64_t last = first;
  for (int64_t i = 0; i < meta.strides.size(); ++i)
    (meta.strides[i] < 0 ? first : last) += (meta.local_shape[i] - 1) * meta.strides[i];
  return first >= 0 && (last + 1) * static_cast<int64_t>(dtype_size(meta.dtype)) <=
                           static_cast<int64_t>(tensor.impl().storage->bytes());
}

Values read_values(const Tensor& tensor) {
  if (tensor.meta().blocked != nullptr) tensor.make_strided();
  Values values;
  values.reserve(static_cast<size_t>(tensor.meta().local_numel));
  if (tensor.meta().local_numel == 0) return values;
  dispatch_all(tensor.dtype(), [&]<class T>() {
    const T* data = reinterpret_cast<const T*>(tensor.impl().data());
    for_each_offset(tensor.meta(),
                    [&](int64_t offset) { values.push_back(load<T>(data[offset])); });
  });
  return values;
}

void write_values(const Tensor& tensor, const Values& values) {
  if (tensor.meta().local_numel == 0) return;
  dispatch_all(tensor.dtype(), [&]<class T>() {
    T* data = reinterpret_cast<T*>(tensor.impl().data());
    const double* value = values.data();
    for_each_offset(tensor.meta(), [&](int64_t offset) { data[offset] = store<T>(*value++); });
  });
}

double to_dtype(double value, DType dtype) {
  return dispatch_all(dtype, [&]<class T>() { return load<T>(store<T>(value)); });
}

}  // namespace flow::contract

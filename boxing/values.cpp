// Reading a tensor's logical values on the host: full, item, to_vector (declared in core/tensor.h).
#include <numeric>
#include <vector>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor.h"

namespace flow {

namespace {

// Turns recording off for a scope.
class Unrecorded {
 public:
  Unrecorded() : state_(thread_state()), outer_(std::exchange(state_.grad_enabled, false)) {}

  ~Unrecorded() { state_.grad_enabled = outer_; }

  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  ThreadState& state_;
  bool outer_;
};

Placement all_ranks(DeviceType device) {
  std::vector<int64_t> ranks(static_cast<size_t>(thread_state().context->world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  const Shape shape{static_cast<int64_t>(ranks.size())};
  return {device, shape, ranks};
}

template <class From, class To>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<float>(value) != 0.0F;
  } else if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_arithmetic_v<To>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return To(static_cast<float>(value));
  }
}

// Writes the elements of a strided array in row-major order.
template <class From, class To>
void copy_elements(const From* source, const TensorMeta& meta, To* target) {
  const Shape& shape = meta.local_shape;
  if (meta.is_contiguous) {
    for (int64_t i = 0; i < meta.local_numel; ++i)
      target[i] = convert<From, To>(source[i]);
    return;
  }
  Shape index = Shape::filled(shape.size(), 0);
  for (int64_t i = 0; i < meta.local_numel; ++i) {
    int64_t offset = 0;
    for (int64_t dim = 0; dim < shape.size(); ++dim)
      offset += index[dim] * meta.strides[dim];
    target[i] = convert<From, To>(source[offset]);
    for (int64_t dim = shape.size() - 1; dim >= 0 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
  }
}

}  // namespace

Tensor Tensor::full(Site site) const {
  if (!is_global()) return *this;
  const Placement world = all_ranks(device());
  return to_global({.placement = world, .sbp = sbp::broadcast}, site).to_local(site);
}

namespace internal {
void read_values(const Tensor& tensor, DType dtype, void* target, const char* method, Site site) {
  if (std::string_view(method) == "item" && tensor.numel() != 1) {
    throw InvalidArgument(str("[item] only a tensor of one element has an item; received ",
                              tensor.meta(), "; use to_vector() or reduce it first"),
                          site);
  }
  const Unrecorded unrecorded;
  Tensor local = tensor.full(site);
  if (local.numel() == 0) return;
  const TensorImpl& impl = local.impl();
  if (!impl.storage) {
    throw InvalidArgument(
        str("[", method, "] the value is not known while a graph is traced; received ",
            tensor.meta(), "; return the tensor from the graph instead"),
        site);
  }
  if (local.device() != DeviceType::kCpu) {
    throw Unsupported(str("[", method, "] values are read from host memory only; received a ",
                          local.device(), " tensor; move it with to(\"cpu\")"),
                      site);
  }
  local.make_strided();
  dispatch_all(local.dtype(), [&]<class From>() {
    dispatch_all(dtype, [&]<class To>() {
      copy_elements(reinterpret_cast<const From*>(impl.data()), local.meta(),
                    static_cast<To*>(target));
    });
  });
}
}  // namespace internal

}  // namespace flow

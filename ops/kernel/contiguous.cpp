#include "ops/kernel/contiguous.h"

#include <type_traits>

#include "core/dtype.h"
#include "core/thread_pool.h"
#include "ops/kernel/box_copy.h"

namespace flow::ops {
namespace {

constexpr int64_t kGrain = 1 << 15;

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_arithmetic_v<From>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(static_cast<float>(x));
  }
}

template <class From, class To>
void convert(const KernelContext& ctx, To* target, const From* source, int64_t count) {
  ctx.pool().parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      target[i] = converted<To>(source[i]);
  });
}

}  // namespace

template <class C>
ContiguousInput<C>::ContiguousInput(const KernelContext& ctx, int input) {
  const TensorView& view = ctx.in(input);
  const DType dtype = view.meta->dtype;
  const auto bytes = [&](size_t element) { return static_cast<size_t>(view.numel()) * element; };
  const std::byte* dense = view.data;
  if (!view.meta->is_contiguous && view.meta->blocked == nullptr) {
    gathered_ = ctx.scratch(bytes(dtype_size(dtype)));
    const MetaPtr meta = with_strides(view.meta, contiguous_strides(view.shape()));
    copy_part(ctx.pool(), {gathered_->data(), meta}, view);
    dense = gathered_->data();
  }
  if (dtype == dtype_of<C>) {
    data_ = reinterpret_cast<const C*>(dense);
    return;
  }
  converted_ = ctx.scratch(bytes(sizeof(C)));
  C* target = reinterpret_cast<C*>(converted_->data());
  dispatch_floating(dtype, [&]<class T>() {
    convert(ctx, target, reinterpret_cast<const T*>(dense), view.numel());
  });
  data_ = target;
}

template <class C>
ContiguousOutput<C>::ContiguousOutput(const KernelContext& ctx, int output)
    : output_(output), data_(ctx.out(output).as<C>()) {
  const TensorView& view = ctx.out(output);
  if (view.meta->dtype == dtype_of<C>) return;
  buffer_ = ctx.scratch(static_cast<size_t>(view.numel()) * sizeof(C));
  data_ = reinterpret_cast<C*>(buffer_->data());
}

template <class C>
void ContiguousOutput<C>::finish(const KernelContext& ctx) const {
  if (!buffer_) return;
  const TensorView& view = ctx.out(output_);
  dispatch_floating(view.meta->dtype, [&]<class T>() {
    convert(ctx, view.as<T>(), static_cast<const C*>(data_), view.numel());
  });
}

KernelScratch contiguous_scratch(const KernelQuery& query, DType computed) {
  KernelScratch blocks;
  const auto add = [&](const TensorMeta& meta, DType dtype) {
    blocks.push_back({meta.local_numel * static_cast<int64_t>(dtype_size(dtype))});
  };
  for (const MetaPtr meta : query.inputs) {
    if (meta == nullptr) continue;
    if (!meta->is_contiguous && meta->blocked == nullptr) add(*meta, meta->dtype);
    if (meta->dtype != computed) add(*meta, computed);
  }
  for (const MetaPtr meta : query.outputs) {
    if (meta->dtype != computed && is_floating(meta->dtype)) add(*meta, computed);
  }
  return blocks;
}

template class ContiguousInput<float>;
template class ContiguousInput<double>;
template class ContiguousOutput<float>;
template class ContiguousOutput<double>;

}  // namespace flow::ops

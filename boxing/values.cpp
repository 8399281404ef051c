// Moving tensors between devices, to(device), and reading values on the host: full, item, to_vector
// (declared in core/tensor.h).
#include <cstdint>
#include <vector>

#include "boxing/layout.h"
#include "boxing/redistribute.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/scalar.h"
#include "core/strided_twin.h"
#include "core/tensor.h"
#include "core/traced.h"
#include "ops/creation/copy.h"
#include "ops/kernel/convert_rows.h"
#include "ops/number_range.h"

namespace flow {

Tensor Tensor::full(Site site) const {
  if (!is_global()) return *this;
  const Placement world = boxing::all_ranks(device());
  return to_global({.placement = world, .sbp = sbp::broadcast}, site).to_local(site);
}

Tensor Tensor::to(std::string_view device_name, Site site) const {
  const SiteScope scope(site);
  const DeviceType wanted = use_device(device_name);
  const bool is_there = is_global() || !is_elsewhere(*thread_state().context, impl());
  if (wanted == device() && is_there) return *this;
  if (wanted != DeviceType::kCpu && !cuda::is_built()) {
    throw Unsupported(str("[to] this build cannot move tensors to ", wanted, "; received ", meta(),
                          "; configure with -DFLOW_CUDA=ON"),
                      site);
  }
  if (!is_global()) return to_device({*this, site}, wanted);
  const Placement there(wanted, placement().shape(), placement().ranks());
  return to_global({.placement = there, .sbp = sbp()}, site);
}

Tensor Tensor::cpu(Site site) const {
  return to("cpu", site);
}

Tensor Tensor::cuda(Site site) const {
  return to("cuda", site);
}

namespace {

// Copies the elements of `local`, which is strided and on the host, converted to `dtype`.
void read_as(const Tensor& local, DType dtype, void* target) {
  const MetaPtr dense = local_meta(local.shape(), dtype, DeviceType::kCpu);
  const MetaPtr source = &local.meta();
  ops::convert_rows(ops::make_loop_nest(*dense, {&source, 1}), dtype,
                    static_cast<std::byte*>(target), source->dtype, local.impl().data());
}

// Throws InvalidArgument if the one element of `local`, on the host, is outside the range of the
// integer dtype that a program reads it as.
void check_item(const Tensor& local, DType dtype, Site site) {
  if (!is_integral(dtype) || dtype == local.dtype()) return;
  double fraction = 0;
  int64_t whole = 0;
  if (is_floating(local.dtype())) {
    read_as(local, DType::kFloat64, &fraction);
  } else {
    read_as(local, DType::kInt64, &whole);
  }
  const Scalar number = is_floating(local.dtype()) ? Scalar(fraction) : Scalar(whole);
  if (ops::holds_number(dtype, number)) return;
  throw InvalidArgument(
      str("[item] ", number, " does not fit into ", dtype, "; read it as double or int64_t"), site);
}

}  // namespace

namespace internal {
void read_values(const Tensor& tensor, DType dtype, void* target, const char* method, Site site) {
  if (std::string_view(method) == "item" && tensor.numel() != 1) {
    throw InvalidArgument(str("[item] the tensor must have one element; received ", tensor.meta(),
                              "; use to_vector() or reduce it first"),
                          site);
  }
  if (thread_state().trace != nullptr) throw_traced(method, tensor, site);
  const NoGradGuard no_grad;
  Tensor local = tensor.full(site);
  if (local.numel() == 0) return;
  if (!local.impl().storage) throw_traced(method, tensor, site);
  if (local.device() != DeviceType::kCpu) local = to_device({local, site}, DeviceType::kCpu);
  local = strided_form(local);
  if (std::string_view(method) == "item") check_item(local, dtype, site);
  read_as(local, dtype, target);
}
}  // namespace internal

}  // namespace flow

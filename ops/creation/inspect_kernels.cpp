// Kernels of ops/creation/inspect_op.h. They are the same for all instruction sets; values on a
// device are looked at on the host.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/kernel.h"
#include "core/print.h"
#include "ops/creation/inspect_op.h"
#include "ops/kernel/box_copy.h"
#include "ops/register.h"

namespace flow::ops {

namespace {

constexpr int64_t kEdgeItems = 3;  // printed at both ends of a long tensor

// The index of element number `position` in row-major order.
Shape index_of(const Shape& shape, int64_t position) {
  Shape index = shape;
  for (int64_t d = shape.size(); d-- > 0;) {
    index[d] = position % shape[d];
    position /= shape[d];
  }
  return index;
}

template <class T>
double value_of(T value) {
  if constexpr (kIsHalf<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

// Calls visit(position, value) for every element in row-major order, until it returns false.
template <class Visit>
void for_each_value(const TensorView& x, const Visit& visit) {
  const Shape& shape = x.shape();
  dispatch_all(x.meta->dtype, [&]<class T>() {
    Shape index = shape;
    std::fill(index.begin(), index.end(), 0);
    const T* at = x.as<T>();
    for (int64_t position = 0; position < x.numel(); ++position) {
      if (!visit(position, value_of(*at))) return;
      for (int64_t d = shape.size(); d-- > 0;) {
        at += x.strides()[d];
        if (++index[d] < shape[d]) break;
        at -= x.strides()[d] * shape[d];
        index[d] = 0;
      }
    }
  });
}

void copy_values(const KernelContext& ctx) {
  const TensorView &x = ctx.in(0), &y = ctx.out(0);
  if (x.numel() == 0) return;
  copy_box(x.shape(), {y.data, y.strides()}, {x.data, x.strides()}, dtype_size(x.meta->dtype));
}

struct Statistics {
  double min = INFINITY;
  double max = -INFINITY;
  double sum = 0;
  int64_t num_finite = 0;
  std::string shown;  // the first and last values
};

Statistics statistics_of(const TensorView& x) {
  Statistics all;
  const bool has_gap = x.numel() > 2 * kEdgeItems;
  for_each_value(x, [&](int64_t position, double value) {
    if (std::isfinite(value)) {
      all.min = std::min(all.min, value);
      all.max = std::max(all.max, value);
      all.sum += value;
      ++all.num_finite;
    }
    if (!has_gap || position < kEdgeItems || position >= x.numel() - kEdgeItems) {
      all.shown += str(position == 0 ? "" : ", ", value);
    } else if (position == kEdgeItems) {
      all.shown += ", ...";
    }
    return true;
  });
  return all;
}

// "loss", or "main.cpp:12" for a tensor without name, and the module of the call.
std::string subject_of(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<InspectAttrs>();
  std::string text(attrs.name.view());
  if (text.empty() && ctx.site.is_known()) text = str(ctx.site.file(), ':', ctx.site.line());
  if (text.empty()) text = "a tensor";
  if (!attrs.module.view().empty()) text += str(" in module ", attrs.module.view());
  return text;
}

// "(4, 3) float32 [S(0) on cpu:(0, 1)], part (2, 3)".
std::string layout_of(const TensorMeta& meta) {
  return meta.is_global() ? str(meta, ", part ", meta.local_shape) : str(meta);
}

void print_values(const KernelContext& ctx) {
  copy_values(ctx);
  const TensorView& x = ctx.in(0);
  const Statistics all = statistics_of(x);
  std::string text =
      str("[graph_print] ", subject_of(ctx), ": rank ", ctx.rank.rank(), ", ", layout_of(*x.meta));
  if (all.num_finite > 0) {
    text += str(", min ", all.min, ", max ", all.max, ", mean ",
                all.sum / static_cast<double>(all.num_finite));
  }
  if (all.num_finite < x.numel()) text += str(", ", x.numel() - all.num_finite, " not finite");
  internal::write_to_stdout(str(text, ", values [", all.shown, "]\n"));
}

// True for the value of a rank that contributes nothing to a maximum or minimum over ranks.
bool is_neutral(const TensorMeta& meta, double value) {
  return std::any_of(meta.nd_sbp.begin(), meta.nd_sbp.end(), [&](const Sbp& sbp) {
    return (sbp == sbp::partial_max && value == -INFINITY) ||
           (sbp == sbp::partial_min && value == INFINITY);
  });
}

void check_values(const KernelContext& ctx) {
  copy_values(ctx);
  const TensorView& x = ctx.in(0);
  if (!is_floating(x.meta->dtype)) return;
  for_each_value(x, [&](int64_t position, double value) {
    if (std::isfinite(value) || is_neutral(*x.meta, value)) return true;
    throw InvalidArgument(
        str("[check_finite] ", subject_of(ctx), " is not finite on rank ", ctx.rank.rank(), ": ",
            value, " is the first bad value, at index ", index_of(x.shape(), position),
            x.meta->is_global() ? " of the rank's part" : "", "; the tensor is ",
            layout_of(*x.meta), "; look at what it was computed from with graph_print"),
        ctx.site);
  });
}

template <KernelFn kFn>
void on_host(const KernelContext& ctx) {
  run_on_host(ctx, kFn);
}

}  // namespace

void register_inspect(KernelTable& table) {
  table.add(kGraphPrint, DeviceType::kCpu, {"reference", always<print_values>});
  table.add(kGraphPrint, DeviceType::kCuda, {"reference", always<on_host<print_values>>});
  table.add(kCheckFinite, DeviceType::kCpu, {"reference", always<check_values>});
  table.add(kCheckFinite, DeviceType::kCuda, {"reference", always<on_host<check_values>>});
}

}  // namespace flow::ops

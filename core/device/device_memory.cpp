#include "core/device/device_memory.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/context.h"
#include "core/device/cuda.h"
#include "core/error.h"

namespace flow {

DeviceType use_device(std::string_view name) {
  const size_t colon = name.find(':');
  const DeviceType type = parse_device_type(name.substr(0, colon));
  if (colon == std::string_view::npos) return type;
  const std::string_view number = name.substr(colon + 1);
  int index = -1;
  const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (status != std::errc() || end != number.data() + number.size() || index < 0 ||
      type == DeviceType::kCpu) {
    throw InvalidArgument(str("[device] unknown device '", name,
                              "'; use cpu, cuda, or cuda and a number such as cuda:0"));
  }
  if (cuda::is_built()) cuda::set_device(index);
  return type;
}

int64_t extent_of(const TensorMeta& meta) {
  if (meta.local_numel == 0) return 0;
  int64_t last = 0;
  for (int64_t i = 0; i < meta.strides.size(); ++i)
    last += (meta.local_shape[i] - 1) * meta.strides[i];
  return last + 1;
}

size_t bytes_spanned(const TensorMeta& meta) {
  return static_cast<size_t>(extent_of(meta)) * dtype_size(meta.dtype);
}

bool are_apart(const TensorMeta& a, int64_t a_offset, const TensorMeta& b, int64_t b_offset) {
  return a_offset + extent_of(a) <= b_offset || b_offset + extent_of(b) <= a_offset;
}

namespace {

// Copies of a call's operands in host memory.
class HostOperands {
 public:
  explicit HostOperands(RankContext& rank) : rank_(rank) {}

  TensorView bring(const TensorView& view, bool is_read) {
    if (view.meta == nullptr || view.meta->device == DeviceType::kCpu) return view;
    TensorMeta meta = *view.meta;
    meta.device = DeviceType::kCpu;
    const MetaPtr host = with_strides(&meta, meta.strides);
    if (view.data == nullptr) return {nullptr, host};
    const size_t bytes = bytes_spanned(meta);
    for (const Copy& copy : copies_) {  // a tensor written in place is an input too
      if (copy.device == view.data && copy.bytes >= bytes) return {copy.host->data(), host};
    }
    copies_.push_back({view.data, allocate_staging(rank_, bytes), bytes});
    std::byte* data = copies_.back().host->data();
    if (is_read) copy_bytes(rank_, data, DeviceType::kCpu, view.data, DeviceType::kCuda, bytes);
    return {data, host};
  }

  void send_back(const TensorView& view) const {
    for (const Copy& copy : copies_) {
      if (copy.device != view.data || view.data == nullptr) continue;
      copy_bytes(rank_, copy.device, DeviceType::kCuda, copy.host->data(), DeviceType::kCpu,
                 copy.bytes);
    }
  }

 private:
  struct Copy {
    std::byte* device;
    Ref<Storage> host;
    size_t bytes;
  };

  RankContext& rank_;
  std::vector<Copy> copies_;
};

}  // namespace

Ref<Storage> host_copy(RankContext& rank, const TensorView& view) {
  const size_t bytes = bytes_spanned(*view.meta);
  Ref<Storage> host = Storage::allocate(rank.allocator(), bytes);
  copy_bytes(rank, host->data(), DeviceType::kCpu, view.data, view.meta->device, bytes);
  return host;
}

void run_on_host(const KernelContext& ctx, KernelFn kernel) {
  HostOperands operands(ctx.rank);
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  for (const TensorView& input : ctx.inputs)
    inputs.push_back(operands.bring(input, true));
  for (const TensorView& output : ctx.outputs)
    outputs.push_back(operands.bring(output, !output.meta->is_contiguous));
  kernel({inputs, outputs, ctx.attrs, ctx.state, ctx.random, ctx.rank, ctx.site});
  for (const TensorView& output : ctx.outputs)
    operands.send_back(output);
}

}  // namespace flow

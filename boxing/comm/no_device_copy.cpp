// The functions of boxing/comm/device_copy.h in builds without CUDA.
#include "boxing/comm/device_copy.h"
#include "core/error.h"

namespace flow::boxing {

namespace {
[[noreturn]] void fail() {
  throw Unsupported(
      "[communicator] data on a device: this build has no CUDA; configure with "
      "-DFLOW_CUDA=ON");
}
}  // namespace

DevicePointPtr queued_work(RankContext& /*rank*/) {
  fail();
}

DevicePointPtr copy_after(RankContext& /*rank*/, const CopyEnd& /*target*/,
                          const CopyEnd& /*source*/, int64_t /*bytes*/) {
  fail();
}

DevicePointPtr begin_download(RankContext& /*rank*/, std::byte* /*target*/,
                              const CopyEnd& /*source*/, int64_t /*bytes*/) {
  fail();
}

bool is_reached(const DevicePoint& /*point*/) {
  fail();
}

void order_after(const DevicePoint& /*at*/, const DevicePoint& /*point*/) {
  fail();
}

void order_after(RankContext& /*rank*/, const DevicePoint& /*point*/) {
  fail();
}

void order_after_transfer(RankContext& /*rank*/, const DevicePointPtr& /*end*/) noexcept {}

void run_on_communication_stream(RankContext& /*rank*/, const DevicePoint& /*begin*/,
                                 const std::function<void()>& /*task*/, DevicePointPtr& /*end*/) {
  fail();
}

}  // namespace flow::boxing

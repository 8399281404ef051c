#include "core/device.h"

#include <ostream>

#include "core/dtype.h"
#include "core/error.h"

namespace flow {

DeviceType parse_device_type(std::string_view name) {
  if (name == "cpu") return DeviceType::kCpu;
  if (name == "cuda" || name == "gpu") return DeviceType::kCuda;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name != dtype_name(static_cast<DType>(i))) continue;
    throw InvalidArgument(str("[device] '", name, "' is a dtype, not a device; give flow::", name));
  }
  if (name.starts_with("complex")) {
    throw InvalidArgument(str("[device] '", name,
                              "' is no device, and flow has no complex dtypes; ",
                              "keep real and imaginary parts in a last dim of size 2"));
  }
  throw InvalidArgument(str("[device] unknown device type '", name, "'; use cpu or cuda"));
}

std::string_view device_type_name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << device_type_name(type);
}

}  // namespace flow

#include "core/device.h"

#include <ostream>

#include "core/error.h"

namespace flow {

DeviceType parse_device_type(std::string_view name) {
  if (name == "cpu") return DeviceType::kCpu;
  if (name == "cuda" || name == "gpu") return DeviceType::kCuda;
  throw InvalidArgument(str("[device] unknown device type '", name, "'; use cpu or cuda"));
}

std::string_view device_type_name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << device_type_name(type);
}

}  // namespace flow

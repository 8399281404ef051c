// The type of device that stores memory and runs kernels.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace flow {

enum class DeviceType : uint8_t { kCpu, kCuda };

// Accepts "cpu", "cuda" and "gpu" (which means "cuda"); throws InvalidArgument for any other text.
DeviceType parse_device_type(std::string_view name);
std::string_view device_type_name(DeviceType type);
std::ostream& operator<<(std::ostream& out, DeviceType type);

}  // namespace flow

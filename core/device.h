// Where memory lies and kernels run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace flow {

enum class DeviceType : uint8_t { kCpu, kCuda };

// "cpu", "cuda" ("gpu" is accepted); throws InvalidArgument for another word.
DeviceType parse_device_type(std::string_view name);
std::string_view device_type_name(DeviceType type);
std::ostream& operator<<(std::ostream& out, DeviceType type);

}  // namespace flow

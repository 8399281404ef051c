// Which microarchitecture this CPU has, for tables that were measured on one.
#pragma once

#include <string>
#include <string_view>

namespace flow::ops {

// The name of a microarchitecture from what cpuid reports: the vendor ("GenuineIntel",
// "AuthenticAMD"), and the family and model with their extensions. "haswell", "broadwell",
// "skylake", "skylake-server", "ice-lake", "ice-lake-server", "tiger-lake", "alder-lake",
// "sapphire-rapids", "zen", "zen2", "zen3", "zen4", "zen5"; "unknown" for others.
std::string microarchitecture(std::string_view vendor, int family, int model);

// The microarchitecture of this CPU.
const std::string& cpu_model();

}  // namespace flow::ops

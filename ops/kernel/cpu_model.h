// Which microarchitecture this CPU has, for tables that were measured on one, and its caches.
#pragma once

#include <cstdint>
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

// The size of a core's second-level cache; 256 KiB if the system does not tell it.
int64_t second_level_cache_bytes();

// Whether all cores share one last-level cache, from which a core reads what another one has
// modified. False for virtual machines, whose cores the host places where it likes, and where the
// system does not tell.
bool cores_share_cache();

}  // namespace flow::ops

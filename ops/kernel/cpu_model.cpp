#include "ops/kernel/cpu_model.h"

#include <array>
#include <cstring>
#include <fstream>

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace flow::ops {

namespace {

// Models from `first` to `last` of a family.
struct Models {
  int family, first, last;
  const char* name;
};

// Linux 6.6, arch/x86/include/asm/intel-family.h.
constexpr std::array kIntel = {
    Models{6, 0x3c, 0x3c, "haswell"},         Models{6, 0x3f, 0x3f, "haswell"},
    Models{6, 0x45, 0x46, "haswell"},         Models{6, 0x3d, 0x3d, "broadwell"},
    Models{6, 0x47, 0x47, "broadwell"},       Models{6, 0x4f, 0x4f, "broadwell"},
    Models{6, 0x56, 0x56, "broadwell"},       Models{6, 0x4e, 0x4e, "skylake"},
    Models{6, 0x5e, 0x5e, "skylake"},         Models{6, 0x8e, 0x8e, "skylake"},
    Models{6, 0x9e, 0x9e, "skylake"},         Models{6, 0x55, 0x55, "skylake-server"},
    Models{6, 0x7d, 0x7e, "ice-lake"},        Models{6, 0x6a, 0x6a, "ice-lake-server"},
    Models{6, 0x6c, 0x6c, "ice-lake-server"}, Models{6, 0x8c, 0x8d, "tiger-lake"},
    Models{6, 0x97, 0x97, "alder-lake"},      Models{6, 0x9a, 0x9a, "alder-lake"},
    Models{6, 0xb7, 0xb7, "alder-lake"},      Models{6, 0xba, 0xba, "alder-lake"},
    Models{6, 0xbf, 0xbf, "alder-lake"},      Models{6, 0x8f, 0x8f, "sapphire-rapids"},
    Models{6, 0xcf, 0xcf, "sapphire-rapids"},
};

// Linux 6.6, arch/x86/kernel/cpu/amd.c.
constexpr std::array kAmd = {
    Models{0x17, 0x00, 0x2f, "zen"},  Models{0x17, 0x50, 0x5f, "zen"},
    Models{0x17, 0x30, 0x4f, "zen2"}, Models{0x17, 0x60, 0x7f, "zen2"},
    Models{0x17, 0x90, 0x91, "zen2"}, Models{0x17, 0xa0, 0xaf, "zen2"},
    Models{0x19, 0x00, 0x0f, "zen3"}, Models{0x19, 0x20, 0x5f, "zen3"},
    Models{0x19, 0x10, 0x1f, "zen4"}, Models{0x19, 0x60, 0xaf, "zen4"},
    Models{0x1a, 0x00, 0xff, "zen5"},
};

template <size_t kCount>
std::string find(const std::array<Models, kCount>& table, int family, int model) {
  for (const Models& row : table) {
    if (row.family == family && row.first <= model && model <= row.last) return row.name;
  }
  return "unknown";
}

std::string identify() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return "unknown";
  std::array<char, 12> vendor;
  std::memcpy(vendor.data(), &b, 4);
  std::memcpy(vendor.data() + 4, &d, 4);
  std::memcpy(vendor.data() + 8, &c, 4);
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return "unknown";
  const unsigned base = a >> 8 & 0xf;
  const unsigned family = base == 0xf ? base + (a >> 20 & 0xff) : base;
  const unsigned model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
  return microarchitecture({vendor.data(), vendor.size()}, static_cast<int>(family),
                           static_cast<int>(model));
#else
  return "unknown";
#endif
}

bool is_virtual_machine() {
#if defined(__x86_64__)
  constexpr unsigned kHypervisor = 1U << 31;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kHypervisor) != 0;
#else
  return false;
#endif
}

// "" if there is no such file.
std::string first_line(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

std::string microarchitecture(std::string_view vendor, int family, int model) {
  if (vendor == "GenuineIntel") return find(kIntel, family, model);
  if (vendor == "AuthenticAMD") return find(kAmd, family, model);
  return "unknown";
}

const std::string& cpu_model() {
  static const std::string model = identify();
  return model;
}

int64_t second_level_cache_bytes() {
  constexpr int64_t kUnknown = int64_t{256} << 10;
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 where it is not known
  return bytes > 0 ? bytes : kUnknown;
}

bool cores_share_cache() {
  const std::string cores = first_line("/sys/devices/system/cpu/online");
  return !is_virtual_machine() && !cores.empty() &&
         first_line("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list") == cores;
}

}  // namespace flow::ops

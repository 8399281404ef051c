// What the address sanitizer is told about memory that flow keeps for reuse. In builds without it
// these functions do nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define FLOW_CHECKS_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FLOW_CHECKS_ADDRESSES 1
#endif
#endif

#if defined(FLOW_CHECKS_ADDRESSES)
#include <sanitizer/asan_interface.h>
#endif

namespace flow {

#if defined(FLOW_CHECKS_ADDRESSES)
constexpr bool kChecksAddresses = true;

// Any access to `bytes` bytes is an error from now on, or no longer is one.
inline void forbid_access(void* begin, size_t bytes) {
  ASAN_POISON_MEMORY_REGION(begin, bytes);
}

inline void allow_access(void* begin, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
}

inline bool is_forbidden(const void* address) {
  return __asan_address_is_poisoned(address) != 0;
}

// Fills memory that a kernel has to write, up to a MiB of it. Floating-point numbers become NaN, so
// that an element which is not written shows in the results.
inline void fill_unwritten(void* begin, size_t bytes) {
  std::memset(begin, 0xFF, std::min(bytes, size_t{1} << 20));
}
#else
constexpr bool kChecksAddresses = false;

inline void forbid_access(void* /*begin*/, size_t /*bytes*/) {}

inline void allow_access(void* /*begin*/, size_t /*bytes*/) {}

inline bool is_forbidden(const void* /*address*/) {
  return false;
}

inline void fill_unwritten(void* /*begin*/, size_t /*bytes*/) {}
#endif

}  // namespace flow

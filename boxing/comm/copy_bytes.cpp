#include "boxing/comm/copy_bytes.h"

#include <algorithm>
#include <cstring>

#include "ops/kernel/cpu_model.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace flow::boxing {

void copy_bytes(std::byte* target, const std::byte* source, int64_t bytes) {
  if (bytes > 0 && target != source) std::memmove(target, source, static_cast<size_t>(bytes));
}

namespace {

// On a Zen 4 these prefetches slow the copy to 0.6 of its speed.
bool gains_from_prefetches() {
#if defined(__x86_64__)
  static const bool is_intel = __builtin_cpu_is("intel") != 0;
  return is_intel;
#else
  return false;
#endif
}

void prepare_stores([[maybe_unused]] std::byte* target, [[maybe_unused]] int64_t bytes) {
#if defined(__x86_64__)
  // Inline assembly, because __builtin_prefetch(p, 1) compiles to a prefetch for loads.
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < bytes; i += kLine)
    asm volatile("prefetchw %0" : : "m"(*reinterpret_cast<const char*>(target + i)));
#endif
}

}  // namespace

void copy_to_shared(std::byte* target, const std::byte* source, int64_t bytes) {
  constexpr int64_t kBlock = 1024;
  constexpr int64_t kShort = 256;
  if (bytes <= kShort || !gains_from_prefetches()) return copy_bytes(target, source, bytes);
  prepare_stores(target, std::min(bytes, kBlock));
  for (int64_t done = 0; done < bytes; done += kBlock) {
    const int64_t next = done + kBlock;
    if (next < bytes) prepare_stores(target + next, std::min(bytes - next, kBlock));
    std::memcpy(target + done, source + done, static_cast<size_t>(std::min(bytes - done, kBlock)));
  }
}

void stream_part(std::byte* target, const std::byte* source, int64_t bytes) {
#if defined(__SSE2__)
  constexpr int64_t kLine = 64;
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % kLine);
  const int64_t head = std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
  copy_bytes(target, source, head);
  int64_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source + i);
    auto* to = reinterpret_cast<__m128i*>(target + i);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const __m128i d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  copy_bytes(target + i, source + i, bytes - i);
#else
  copy_bytes(target, source, bytes);
#endif
}

void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

namespace {

bool shares_past_caches() {
#if defined(__x86_64__)
  static const bool result = __builtin_cpu_is("amd") != 0 && !ops::cores_share_cache();
  return result;
#else
  return false;
#endif
}

}  // namespace

CopyBytes share_for(int64_t whole_bytes) {
  constexpr int64_t kLarge = 4 << 20;
  return whole_bytes >= kLarge && shares_past_caches() ? stream_part : copy_bytes;
}

void stream_bytes(std::byte* target, const std::byte* source, int64_t bytes) {
  stream_part(target, source, bytes);
  end_streams();
}

}  // namespace flow::boxing

// Small values that the members of a group tell each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "boxing/comm/communicator.h"

namespace flow::boxing {

// Collective: what each member passes, in group order.
template <class T>
std::vector<T> gathered(Communicator& group, const T& own, const Fingerprint& what) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(group.size()));
  const std::vector<int64_t> bytes(all.size(), static_cast<int64_t>(sizeof(T)));
  group.all_gather(&own, all.data(), bytes, what);
  return all;
}

// Collective: whether all members pass true.
inline bool can_all(Communicator& group, bool can, const Fingerprint& what) {
  const std::vector<char> all = gathered<char>(group, can ? 1 : 0, what);
  return std::find(all.begin(), all.end(), 0) == all.end();
}

}  // namespace flow::boxing

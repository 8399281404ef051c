// The differences of two sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace flow::tools {

// Pairs of positions of equal elements, ascending in both sequences, of a longest common
// subsequence (Myers 1986, "An O(ND) difference algorithm and its variations", the linear-space
// form). Takes time proportional to the length of the sequences times the number of differences.
std::vector<std::pair<size_t, size_t>> common_subsequence(std::span<const uint32_t> a,
                                                          std::span<const uint32_t> b);

}  // namespace flow::tools

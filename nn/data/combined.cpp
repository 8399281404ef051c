#include "nn/data/combined.h"

#include "core/error.h"

namespace flow::data::internal {

PartPosition find_part(const std::vector<int64_t>& sizes, int64_t i, Site site) {
  int64_t left = i;
  for (size_t part = 0; part < sizes.size() && left >= 0; ++part) {
    if (left < sizes[part]) return {part, left};
    left -= sizes[part];
  }
  throw InvalidArgument(
      str("[ConcatDataset] there is no sample ", i, "; give an index from 0 to size() - 1"), site);
}

void check_equal_sizes(const std::vector<int64_t>& sizes, Site site) {
  for (const int64_t size : sizes) {
    if (size == sizes[0]) continue;
    throw InvalidArgument(str("[StackDataset] the datasets must have the same size; received ",
                              sizes[0], " and ", size, "; leave out the samples without a match"),
                          site);
  }
}

}  // namespace flow::data::internal

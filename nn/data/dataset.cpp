#include "nn/data/dataset.h"

#include <cmath>
#include <numeric>

#include "core/context.h"
#include "nn/data/sampler.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/index/index.h"

namespace flow::data {

void check_sample(const char* dataset, int64_t i, int64_t size, Site site) {
  if (i >= 0 && i < size) return;
  throw InvalidArgument(str("[", dataset, "] index ", i, " is out of range; the size is ", size,
                            "; use an index from 0 to size - 1"),
                        site);
}

Tensor rows(const Tensor& x, const std::vector<int64_t>& indices, Site site) {
  const SiteScope scope(site);
  return index_select(x, 0, tensor(indices, ops::whole_like(x, int64)));
}

std::vector<int64_t> split_sizes(int64_t size, const std::vector<double>& lengths, Site site) {
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  std::vector<int64_t> sizes;
  bool is_valid = !lengths.empty();
  bool are_whole = true;
  for (const double length : lengths) {
    is_valid = is_valid && length >= 0;
    are_whole = are_whole && length == std::floor(length);
  }
  const bool are_sizes = are_whole && sum == static_cast<double>(size);
  if (is_valid && std::abs(sum - 1) < 1e-9 && !are_sizes) {
    int64_t left = size;
    for (const double length : lengths) {
      sizes.push_back(static_cast<int64_t>(std::floor(length * static_cast<double>(size))));
      left -= sizes.back();
    }
    for (size_t i = 0; left > 0; i = (i + 1) % sizes.size(), --left)
      ++sizes[i];
    return sizes;
  }
  if (!is_valid || !are_sizes) {
    throw InvalidArgument(
        str("[random_split] lengths must be sizes that add up to ", size,
            ", or fractions that add up to 1; received lengths whose sum is ", sum),
        site);
  }
  for (const double length : lengths)
    sizes.push_back(static_cast<int64_t>(length));
  return sizes;
}

namespace internal {
std::vector<int64_t> shared_permutation(int64_t size) {
  return sample_order(size, true, thread_state().context->generator().next());
}
}  // namespace internal

}  // namespace flow::data

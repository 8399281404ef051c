#include "nn/data/loader.h"

#include <numeric>

#include "core/context.h"
#include "core/error.h"

namespace flow::data {

std::vector<int64_t> sample_order(int64_t size, bool shuffle, const RandomStream& random) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) return order;
  for (int64_t i = size - 1; i > 0; --i) {
    const auto lanes = philox(random, static_cast<uint64_t>(i));
    const uint64_t bits = uint64_t{lanes[1]} << 32 | lanes[0];
    // The high word of bits × (i + 1): uniform to within 2⁻⁶⁴ i.
    __extension__ using Wide = unsigned __int128;
    const auto j = static_cast<int64_t>(static_cast<Wide>(bits) * static_cast<Wide>(i + 1) >> 64);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

namespace internal {
void check_batch_size(int64_t batch_size) {
  if (batch_size <= 0) {
    throw InvalidArgument(str("[DataLoader] batch_size must be positive; got ", batch_size));
  }
}

RandomStream next_stream() {
  RankContext& context = *thread_state().context;
  RandomStream random = context.generator().next();
  random.rank = static_cast<uint64_t>(context.rank());
  return random;
}
}  // namespace internal

}  // namespace flow::data

#include "boxing/exchange.h"

namespace flow::boxing {

void exchange_parts(const RankStep& step, Communicator& group, DType dtype, const std::byte* source,
                    std::byte* target, const Fingerprint& what) {
  if (step.carrier == Carrier::kReduceScatter) {
    group.reduce_scatter(source, target, step.part_counts, dtype, step.source_op, what);
    return;
  }
  std::vector<int64_t> bytes = step.part_counts;
  for (int64_t& count : bytes)
    count *= static_cast<int64_t>(dtype_size(dtype));
  group.all_gather(source, target, bytes, what);
}

}  // namespace flow::boxing

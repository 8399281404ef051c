#include "boxing/check_replicas.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/ranks/fail_ranks.h"
#include "boxing/run_route.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/strided_twin.h"

namespace flow::boxing {

namespace {

// The ranks of the placement that hold the same part as `rank`.
std::vector<int64_t> replicas_of(const TensorMeta& meta, int64_t rank) {
  const Placement& placement = meta.placement;
  const int64_t own = placement.position(rank);
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < placement.num_ranks(); ++other) {
    bool is_same = true;
    for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
      is_same &= meta.nd_sbp[axis].is_broadcast() ||
                 placement.coordinate(other, axis) == placement.coordinate(own, axis);
    }
    if (is_same) ranks.push_back(placement.ranks()[static_cast<size_t>(other)]);
  }
  return ranks;
}

uint64_t hash_of_values(RankContext& rank, const TensorImpl& impl) {
  const TensorMeta& meta = *impl.meta;
  const MetaPtr strided = meta.blocked == nullptr ? impl.meta : with_blocked(impl.meta, nullptr);
  TensorView view{meta.blocked == nullptr ? impl.data() : strided_twin(impl)->data(), strided};
  Ref<Storage> host;
  if (meta.device != DeviceType::kCpu) {
    host = host_copy(rank, view);
    view.data = host->data();
  }
  std::vector<std::byte> values(meta.local_bytes());
  copy_box(meta.local_shape, strided->strides, view.data, contiguous_strides(meta.local_shape),
           values.data(), dtype_size(meta.dtype));
  Hasher hasher;
  for (size_t i = 0; i < values.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, values.data() + i, std::min(sizeof(word), values.size() - i));
    hasher.add(word);
  }
  return hasher.value();
}

}  // namespace

void check_replicas(const Tensor& tensor, const char* op, Site site) {
  if (!tensor.defined() || !tensor.is_global()) return;
  const TensorMeta& meta = tensor.meta();
  if (!meta.is_held || meta.local_numel == 0) return;
  RankContext& rank = *thread_state().context;
  if (!has_running_peers(rank)) return;
  const std::vector<int64_t> group = replicas_of(meta, rank.rank());
  if (group.size() < 2) return;
  const uint64_t own = hash_of_values(rank, tensor.impl());
  std::vector<uint64_t> all(group.size());
  communicator_for(rank, group)
      .all_gather(&own, all.data(), std::vector<int64_t>(group.size(), sizeof own),
                  {.op = op, .shape = meta.shape, .dtype = meta.dtype, .site = site});
  const auto other = std::find_if(all.begin(), all.end(), [&](uint64_t h) { return h != all[0]; });
  if (other == all.end()) return;
  const std::string message =
      str("[", op, "] ranks ", group[0], " and ", group[static_cast<size_t>(other - all.begin())],
          " hold different values of ", meta,
          ", which must be equal; give all ranks the same seed and the same inputs");
  const bool is_of_all = static_cast<int64_t>(group.size()) == meta.placement.num_ranks();
  if (!is_of_all) fail_ranks(rank, message);
  throw InvalidArgument(message, site);
}

}  // namespace flow::boxing

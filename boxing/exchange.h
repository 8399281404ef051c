// Exchanges of parts between the members of a group, for data in host memory and on devices alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/rank_route.h"
#include "core/storage.h"

namespace flow::boxing {

// A step whose parts are whole messages: a reduction to parts, or a gathering of them. The memory
// is where `group` expects it.
void exchange_parts(const RankStep& step, Communicator& group, DType dtype, const std::byte* source,
                    std::byte* target, const Fingerprint& what);

// A step whose boxes are packed, exchanged and unpacked. `memory` works on boxes where the data is:
//   allocate(bytes)                                   room for messages, as Ref<Storage>
//   copy(extents, from_strides, from, to_strides, to) copies a box
//   reduce(box, sources, to)                          reduces a box of sources of one shape
template <class Memory>
void exchange_packed(const RankStep& step, Communicator& group, DType dtype,
                     const std::byte* source, std::byte* target, const Fingerprint& what,
                     const Memory& memory) {
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  int64_t sent = 0;
  int64_t received = 0;
  std::vector<int64_t> starts;  // of each member's data in the received data
  for (size_t member = 0; member < step.group.size(); ++member) {
    sent += step.send_bytes[member];
    starts.push_back(received);
    received += step.recv_bytes[member];
  }
  const Ref<Storage> outgoing = memory.allocate(static_cast<size_t>(sent));
  const Ref<Storage> incoming = memory.allocate(static_cast<size_t>(received));
  std::byte* out = outgoing->data();
  for (size_t member = 0; member < step.group.size(); ++member) {
    for (const BoxCopy& pack : step.packed[member]) {
      memory.copy(pack.extents, pack.source_strides, source + pack.source_offset * size,
                  pack.target_strides, out + pack.target_offset * size);
    }
    out += step.send_bytes[member];
  }
  group.all_to_all(outgoing->data(), step.send_bytes, incoming->data(), step.recv_bytes, what);
  std::vector<const std::byte*> sources;
  for (size_t i = 0; i < step.unpacked.size(); ++i) {
    const BoxCopy& unpack = step.unpacked[i];
    sources.clear();
    for (size_t k = 0; k < unpack.members.size(); ++k) {
      sources.push_back(incoming->data() + starts[static_cast<size_t>(unpack.members[k])] +
                        step.offsets[i][k] * size);
    }
    std::byte* to = target + unpack.target_offset * size;
    if (sources.size() == 1) {
      memory.copy(unpack.extents, unpack.source_strides, sources[0], unpack.target_strides, to);
    } else {
      memory.reduce(unpack, sources, to);
    }
  }
}

}  // namespace flow::boxing

#include "boxing/comm/device_collectives.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "boxing/comm/device_communicator.h"
#include "boxing/comm/nccl_group.h"
#include "boxing/device_boxes.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_memory.h"
#include "core/env.h"
#include "core/error.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

namespace {

using Part = DeviceCommunicator::Part;

int64_t bytes_of(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(dtype_size(dtype));
}

int64_t sum_of(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

class DeviceCollectives final : public Communicator {
 public:
  DeviceCollectives(RankContext& rank, Communicator& group)
      : Communicator(group.ranks(), group.position()), rank_(rank), group_(group) {}

  bool stays_on_devices(const Fingerprint& what) {
    return shared(what) != nullptr || nccl(what) != nullptr;
  }

  void barrier(const Fingerprint& what) override { group_.barrier(what); }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override;
  void reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
              int64_t root, const Fingerprint& what) override;
  void reduce_scatter(const void* source, void* target, std::span<const int64_t> counts,
                      DType dtype, ReduceOp op, const Fingerprint& what) override;
  void all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                  const Fingerprint& what) override;
  void gather(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
              const Fingerprint& what) override;
  void scatter(const void* source, void* target, std::span<const int64_t> bytes, int64_t root,
               const Fingerprint& what) override;
  void all_to_all(const void* source, std::span<const int64_t> send_bytes, void* target,
                  std::span<const int64_t> recv_bytes, const Fingerprint& what) override;
  void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) override;
  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override;
  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override;
  void wait(Transfer transfer) override;

  void all_to_all_packed(std::span<const int64_t> /*send_bytes*/, const Pack& /*pack*/,
                         std::span<const int64_t> /*recv_bytes*/, const Unpack& /*unpack*/,
                         const Fingerprint& /*what*/) override {
    throw InternalError("[communicator] data on a device is not packed by host code");
  }

  void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype, ReduceOp op,
                        const Fingerprint& what) override;

 private:
  DeviceCommunicator* shared(const Fingerprint& what) {
    return device_communicator_for(rank_, group_, what);
  }

  // ---- by NCCL

  using Send = std::span<const std::byte>;
  using Receive = std::span<std::byte>;

  // Null if the members cannot have it, or if a kernel cannot sum as many parts. Collective at the
  // first call, which must follow a shared() that is null.
  NcclGroup* nccl(const Fingerprint& what) {
    if (group_.size() > kMostDeviceMembers) return nullptr;
    if (!has_asked_for_nccl_) nccl_ = make_nccl_group(rank_, group_, what);
    has_asked_for_nccl_ = true;
    return nccl_.get();
  }

  // The members meet and compare their calls. Whoever has met the others makes the call: what may
  // fail on one rank alone, such as taking memory, comes before.
  void agree(Fingerprint call) {
    call.known_hash = call.hash();
    group_.barrier(call);
  }

  // Every member reduces its range of all sources into `target`, in group order. Range i has
  // counts[i] elements. `room` is for what the members send.
  void reduce_ranges(NcclGroup& nccl, const std::byte* source, std::byte* target,
                     const Storage& room, std::span<const int64_t> counts, DType dtype, ReduceOp op,
                     const Fingerprint& what);

  Ref<Storage> room_for_parts(std::span<const int64_t> counts, DType dtype) const {
    const int64_t own_bytes = bytes_of(counts[static_cast<size_t>(position())], dtype);
    return device_room(own_bytes * size());
  }

  Ref<Storage> device_room(int64_t bytes) const {
    return allocate_storage(rank_, DeviceType::kCuda, static_cast<size_t>(bytes));
  }

  // The root receives what all members have, in group order; all members do if `root` is negative.
  // Member i has bytes[i] bytes at `own`.
  void send_parts(NcclGroup& nccl, const std::byte* own, std::byte* target,
                  std::span<const int64_t> bytes, int64_t root, const Fingerprint& what);

  // ---- through pinned host memory

  Ref<Storage> room(int64_t bytes) const {
    return allocate_staging(rank_, static_cast<size_t>(bytes));
  }

  Ref<Storage> downloaded(const void* source, int64_t bytes) const {
    Ref<Storage> host = room(bytes);
    if (bytes > 0) {
      copy_bytes(rank_, host->data(), DeviceType::kCpu, source, DeviceType::kCuda,
                 static_cast<size_t>(bytes));
    }
    return host;
  }

  void upload(void* target, const Ref<Storage>& host, int64_t bytes) const {
    if (bytes == 0) return;
    copy_bytes(rank_, target, DeviceType::kCuda, host->data(), DeviceType::kCpu,
               static_cast<size_t>(bytes));
  }

  // ---- on the device

  KernelContext context() const {
    return {.inputs = {},
            .outputs = {},
            .attrs = nullptr,
            .state = nullptr,
            .random = {},
            .rank = rank_};
  }

  void copy(std::byte* target, const std::byte* source, int64_t bytes) const {
    if (bytes == 0 || target == source) return;
    FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes),
                                   cudaMemcpyDeviceToDevice, cuda::rank_device(rank_).stream()));
  }

  // Reduces elements [begin, begin + count) of all sources.
  void reduce_range(std::span<const Part> parts, std::byte* target, int64_t begin, int64_t count,
                    DType dtype, ReduceOp op) const {
    if (count == 0) return;
    std::vector<const std::byte*> sources;
    for (const Part& part : parts)
      sources.push_back(part.source + bytes_of(begin, dtype));
    const Shape extents{count};
    const Strides strides = contiguous_strides(extents);
    reduce_device_box(context(), extents, strides, strides, dtype, op, sources, target);
  }

  RankContext& rank_;
  Communicator& group_;
  std::unique_ptr<NcclGroup> nccl_;
  bool has_asked_for_nccl_ = false;
  const bool is_fast_ = env_flag("FLOW_FAST_REDUCE");
};

const std::byte* read_at(const void* data) {
  return static_cast<const std::byte*>(data);
}

std::byte* write_at(void* data) {
  return static_cast<std::byte*>(data);
}

void DeviceCollectives::reduce_ranges(NcclGroup& nccl, const std::byte* source, std::byte* target,
                                      const Storage& room, std::span<const int64_t> counts,
                                      DType dtype, ReduceOp op, const Fingerprint& what) {
  const auto me = static_cast<size_t>(position());
  const int64_t own_bytes = bytes_of(counts[me], dtype);
  std::vector<Send> sends(counts.size());
  std::vector<Receive> receives(counts.size());
  std::vector<Part> parts(counts.size());
  int64_t at = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t bytes = bytes_of(counts[i], dtype);
    std::byte* const received = room.data() + static_cast<int64_t>(i) * own_bytes;
    parts[i].source = i == me ? source + at : received;
    if (i != me) {
      sends[i] = {source + at, static_cast<size_t>(bytes)};
      receives[i] = {received, static_cast<size_t>(own_bytes)};
    }
    at += bytes;
  }
  nccl.exchange(sends, receives, what);
  reduce_range(parts, target, 0, counts[me], dtype, op);
}

void DeviceCollectives::send_parts(NcclGroup& nccl, const std::byte* own, std::byte* target,
                                   std::span<const int64_t> bytes, int64_t root,
                                   const Fingerprint& what) {
  const auto me = static_cast<size_t>(position());
  std::vector<Send> sends(bytes.size());
  std::vector<Receive> receives(bytes.size());
  std::byte* out = target;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool receives_all = root < 0 || root == position();
    if (i == me) {
      if (receives_all) copy(out, own, bytes[me]);
    } else {
      if (root < 0 || static_cast<size_t>(root) == i)
        sends[i] = {own, static_cast<size_t>(bytes[me])};
      if (receives_all) receives[i] = {out, static_cast<size_t>(bytes[i])};
    }
    if (receives_all) out += bytes[i];
  }
  nccl.exchange(sends, receives, what);
}

std::vector<int64_t> balanced_counts(int64_t count, int64_t members) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < members; ++i)
    counts.push_back(balanced_part(count, members, i).size);
  return counts;
}

std::vector<int64_t> bytes_of_all(std::span<const int64_t> counts, DType dtype) {
  std::vector<int64_t> bytes;
  for (const int64_t count : counts)
    bytes.push_back(bytes_of(count, dtype));
  return bytes;
}

// As in host memory, every member reduces the whole of a small sum, and a chunk of a large one.
void DeviceCollectives::all_reduce(const void* source, void* target, int64_t count, DType dtype,
                                   ReduceOp op, const Fingerprint& what) {
  constexpr int64_t kWholeBytes = 64 << 10;  // read by one member
  const int64_t bytes = bytes_of(count, dtype);
  DeviceCommunicator* const there = shared(what);
  if (NcclGroup* const nccl = there == nullptr ? this->nccl(what) : nullptr) {
    // Its largest and smallest values are not NaN where one of several is.
    const bool adds = op == ReduceOp::kSum || op == ReduceOp::kMean;
    const bool is_fast = is_fast_ && adds && nccl->can_reduce(dtype);
    const Fingerprint call =
        mark(what, is_fast ? "fast all_reduce by NCCL" : "all_reduce by NCCL", count, dtype, op);
    if (count == 0 || is_fast) {
      agree(call);
      if (count > 0) nccl->all_reduce(source, target, count, dtype, op, call);
      return;
    }
    const std::vector<int64_t> counts = balanced_counts(count, size());
    std::byte* const own =
        write_at(target) + bytes_of(balanced_part(count, size(), position()).begin, dtype);
    const Ref<Storage> room = room_for_parts(counts, dtype);
    agree(call);
    reduce_ranges(*nccl, read_at(source), own, *room, counts, dtype, op, call);
    return send_parts(*nccl, own, write_at(target), bytes_of_all(counts, dtype), -1, call);
  }
  if (there == nullptr) {
    const Ref<Storage> host = downloaded(source, bytes);
    group_.all_reduce(host->data(), host->data(), count, dtype, op, what);
    return upload(target, host, bytes);
  }
  const Fingerprint call = mark(what, "all_reduce on a device", count, dtype, op);
  std::byte* const out = write_at(target);
  const auto parts = there->open({.source = read_at(source), .target = out}, call);
  const bool is_in_place = std::any_of(parts.begin(), parts.end(),
                                       [](const Part& part) { return part.source == part.target; });
  if (bytes * size() <= kWholeBytes && !is_in_place) {
    reduce_range(parts, out, 0, count, dtype, op);
    return there->close(call);
  }
  const Range own = balanced_part(count, size(), position());
  reduce_range(parts, out + bytes_of(own.begin, dtype), own.begin, own.size, dtype, op);
  const auto reduced = there->open({.target = out}, call);
  for (int64_t member = 0; member < size(); ++member) {
    const Range range = balanced_part(count, size(), member);
    const int64_t offset = bytes_of(range.begin, dtype);
    copy(out + offset, reduced[static_cast<size_t>(member)].target + offset,
         bytes_of(range.size, dtype));
  }
  there->close(call);
}

void DeviceCollectives::all_reduce_parts(std::span<const SourcePart> parts, void* target,
                                         DType dtype, ReduceOp op, const Fingerprint& what) {
  int64_t count = 0;
  for (const SourcePart& part : parts) {
    copy(write_at(target) + bytes_of(count, dtype), read_at(part.data),
         bytes_of(part.count, dtype));
    count += part.count;
  }
  all_reduce(target, target, count, dtype, op, what);
}

void DeviceCollectives::reduce(const void* source, void* target, int64_t count, DType dtype,
                               ReduceOp op, int64_t root, const Fingerprint& what) {
  const bool is_root = position() == root;
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call = mark(what, "reduce on a device", count, dtype, op, root);
    const auto parts = there->open({.source = read_at(source)}, call);
    if (is_root) reduce_range(parts, write_at(target), 0, count, dtype, op);
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call = mark(what, "reduce by NCCL", count, dtype, op, root);
    const std::vector<int64_t> counts = balanced_counts(count, size());
    const Ref<Storage> own = device_room(bytes_of(counts[static_cast<size_t>(position())], dtype));
    const Ref<Storage> room = room_for_parts(counts, dtype);
    agree(call);
    reduce_ranges(*nccl, read_at(source), own->data(), *room, counts, dtype, op, call);
    return send_parts(*nccl, own->data(), write_at(target), bytes_of_all(counts, dtype), root,
                      call);
  }
  const int64_t bytes = bytes_of(count, dtype);
  const Ref<Storage> host = downloaded(source, bytes);
  const Ref<Storage> result = room(is_root ? bytes : 0);
  group_.reduce(host->data(), result->data(), count, dtype, op, root, what);
  if (is_root) upload(target, result, bytes);
}

void DeviceCollectives::reduce_scatter(const void* source, void* target,
                                       std::span<const int64_t> counts, DType dtype, ReduceOp op,
                                       const Fingerprint& what) {
  const auto me = static_cast<size_t>(position());
  const int64_t before = sum_of(counts.first(me));
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call = mark_counts(what, "reduce_scatter on a device", counts, dtype, op);
    const auto parts = there->open({.source = read_at(source)}, call);
    reduce_range(parts, write_at(target), before, counts[me], dtype, op);
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call = mark_counts(what, "reduce_scatter by NCCL", counts, dtype, op);
    const Ref<Storage> room = room_for_parts(counts, dtype);
    agree(call);
    return reduce_ranges(*nccl, read_at(source), write_at(target), *room, counts, dtype, op, call);
  }
  const Ref<Storage> host = downloaded(source, bytes_of(sum_of(counts), dtype));
  const Ref<Storage> result = room(bytes_of(counts[me], dtype));
  group_.reduce_scatter(host->data(), result->data(), counts, dtype, op, what);
  upload(target, result, bytes_of(counts[me], dtype));
}

void DeviceCollectives::all_gather(const void* source, void* target, std::span<const int64_t> bytes,
                                   const Fingerprint& what) {
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call = mark_counts(what, "all_gather on a device", bytes, what.dtype);
    const auto parts = there->open({.source = read_at(source)}, call);
    std::byte* out = write_at(target);
    for (size_t member = 0; member < parts.size(); out += bytes[member++])
      copy(out, parts[member].source, bytes[member]);
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call = mark_counts(what, "all_gather by NCCL", bytes, what.dtype);
    agree(call);
    return send_parts(*nccl, read_at(source), write_at(target), bytes, -1, call);
  }
  const Ref<Storage> host = downloaded(source, bytes[static_cast<size_t>(position())]);
  const Ref<Storage> result = room(sum_of(bytes));
  group_.all_gather(host->data(), result->data(), bytes, what);
  upload(target, result, sum_of(bytes));
}

void DeviceCollectives::gather(const void* source, void* target, std::span<const int64_t> bytes,
                               int64_t root, const Fingerprint& what) {
  const bool is_root = position() == root;
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call =
        mark_counts(what, "gather on a device", bytes, what.dtype, ReduceOp::kSum, root);
    const auto parts = there->open({.source = read_at(source)}, call);
    std::byte* out = write_at(target);
    for (size_t member = 0; is_root && member < parts.size(); out += bytes[member++])
      copy(out, parts[member].source, bytes[member]);
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call =
        mark_counts(what, "gather by NCCL", bytes, what.dtype, ReduceOp::kSum, root);
    agree(call);
    return send_parts(*nccl, read_at(source), write_at(target), bytes, root, call);
  }
  const Ref<Storage> host = downloaded(source, bytes[static_cast<size_t>(position())]);
  const int64_t all = is_root ? sum_of(bytes) : 0;
  const Ref<Storage> result = room(all);
  group_.gather(host->data(), result->data(), bytes, root, what);
  upload(target, result, all);
}

void DeviceCollectives::scatter(const void* source, void* target, std::span<const int64_t> bytes,
                                int64_t root, const Fingerprint& what) {
  const auto me = static_cast<size_t>(position());
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call =
        mark_counts(what, "scatter on a device", bytes, what.dtype, ReduceOp::kSum, root);
    const auto parts = there->open({.source = read_at(source)}, call);
    if (bytes[me] > 0) {
      copy(write_at(target), parts[static_cast<size_t>(root)].source + sum_of(bytes.first(me)),
           bytes[me]);
    }
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call =
        mark_counts(what, "scatter by NCCL", bytes, what.dtype, ReduceOp::kSum, root);
    agree(call);
    std::vector<Send> sends(bytes.size());
    std::vector<Receive> receives(bytes.size());
    const std::byte* part = read_at(source);
    for (size_t i = 0; position() == root && i < bytes.size(); part += bytes[i++]) {
      if (i != me) sends[i] = {part, static_cast<size_t>(bytes[i])};
      if (i == me) copy(write_at(target), part, bytes[i]);
    }
    if (position() != root)
      receives[static_cast<size_t>(root)] = {write_at(target), static_cast<size_t>(bytes[me])};
    return nccl->exchange(sends, receives, call);
  }
  const Ref<Storage> host = downloaded(source, position() == root ? sum_of(bytes) : 0);
  const Ref<Storage> result = room(bytes[me]);
  group_.scatter(host->data(), result->data(), bytes, root, what);
  upload(target, result, bytes[me]);
}

void DeviceCollectives::all_to_all(const void* source, std::span<const int64_t> send_bytes,
                                   void* target, std::span<const int64_t> recv_bytes,
                                   const Fingerprint& what) {
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call = mark(what, "all_to_all on a device", 0, what.dtype);
    const auto parts = there->open({.source = read_at(source), .counts = send_bytes.data()}, call);
    std::byte* out = write_at(target);
    const auto me = static_cast<size_t>(position());
    bool do_agree = true;
    for (size_t member = 0; member < parts.size(); out += recv_bytes[member++]) {
      const std::span counts(parts[member].counts, parts.size());
      do_agree = do_agree && counts[me] == recv_bytes[member];
      if (!do_agree || counts[me] == 0) continue;
      copy(out, parts[member].source + sum_of(counts.first(me)), counts[me]);
    }
    there->close(call);
    FLOW_ASSERT(do_agree, "members disagree on the bytes of all_to_all");
    return;
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call = mark(what, "all_to_all by NCCL", 0, what.dtype);
    agree(call);
    std::vector<Send> sends(send_bytes.size());
    std::vector<Receive> receives(recv_bytes.size());
    const std::byte* from = read_at(source);
    std::byte* to = write_at(target);
    for (size_t i = 0; i < send_bytes.size(); ++i) {
      if (static_cast<int64_t>(i) == position()) {
        copy(to, from, send_bytes[i]);
      } else {
        sends[i] = {from, static_cast<size_t>(send_bytes[i])};
        receives[i] = {to, static_cast<size_t>(recv_bytes[i])};
      }
      from += send_bytes[i];
      to += recv_bytes[i];
    }
    return nccl->exchange(sends, receives, call);
  }
  const Ref<Storage> host = downloaded(source, sum_of(send_bytes));
  const Ref<Storage> result = room(sum_of(recv_bytes));
  group_.all_to_all(host->data(), send_bytes, result->data(), recv_bytes, what);
  upload(target, result, sum_of(recv_bytes));
}

void DeviceCollectives::broadcast(void* data, int64_t bytes, int64_t root,
                                  const Fingerprint& what) {
  const bool is_root = position() == root;
  if (DeviceCommunicator* const there = shared(what)) {
    const Fingerprint call =
        mark(what, "broadcast on a device", bytes, what.dtype, ReduceOp::kSum, root);
    const auto parts = there->open({.source = read_at(data)}, call);
    if (!is_root) copy(write_at(data), parts[static_cast<size_t>(root)].source, bytes);
    return there->close(call);
  }
  if (NcclGroup* const nccl = this->nccl(what)) {
    const Fingerprint call =
        mark(what, "broadcast by NCCL", bytes, what.dtype, ReduceOp::kSum, root);
    agree(call);
    std::vector<Send> sends(static_cast<size_t>(size()));
    std::vector<Receive> receives(static_cast<size_t>(size()));
    for (size_t i = 0; is_root && i < sends.size(); ++i) {
      if (static_cast<int64_t>(i) != root) sends[i] = {read_at(data), static_cast<size_t>(bytes)};
    }
    if (!is_root)
      receives[static_cast<size_t>(root)] = {write_at(data), static_cast<size_t>(bytes)};
    return nccl->exchange(sends, receives, call);
  }
  const Ref<Storage> host = is_root ? downloaded(data, bytes) : room(bytes);
  group_.broadcast(host->data(), bytes, root, what);
  if (!is_root) upload(data, host, bytes);
}

Fingerprint on_device(const Fingerprint& what) {
  Fingerprint message = what;
  message.device = DeviceType::kCuda;
  return message;
}

Transfer DeviceCollectives::isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                                  const Fingerprint& what) {
  return group_.isend(source, bytes, peer, tag, on_device(what));
}

Transfer DeviceCollectives::irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                                  const Fingerprint& what) {
  return group_.irecv(target, bytes, peer, tag, on_device(what));
}

void DeviceCollectives::wait(Transfer transfer) {
  group_.wait(std::move(transfer));
}

struct Kept {
  std::mutex mutex;
  std::map<const Communicator*, std::unique_ptr<DeviceCollectives>> by_group;  // guarded by mutex
};

DeviceCollectives& collectives(RankContext& rank, Communicator& group) {
  auto& kept = rank.slot<Kept>();
  const std::lock_guard lock(kept.mutex);
  auto& entry = kept.by_group[&group];
  if (entry == nullptr) entry = std::make_unique<DeviceCollectives>(rank, group);
  return *entry;
}

}  // namespace

Communicator& device_collectives_for(RankContext& rank, Communicator& group) {
  return collectives(rank, group);
}

bool stays_on_devices(RankContext& rank, Communicator& group, const Fingerprint& what) {
  return collectives(rank, group).stays_on_devices(what);
}

}  // namespace flow::boxing

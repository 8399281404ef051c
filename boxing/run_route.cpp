#include "boxing/run_route.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "boxing/comm/copy_bytes.h"
#include "boxing/exchange.h"
#include "core/context.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

// Calls fn(source offset, target offset) for every contiguous run of the last extent.
template <class Fn>
void for_each_run(const Shape& extents, const Strides& source_strides,
                  const Strides& target_strides, const Fn& fn) {
  const int64_t outer = extents.size() - 1;
  Shape index = Shape::filled(outer, 0);
  int64_t source = 0;
  int64_t target = 0;
  for (;;) {
    fn(source, target);
    int64_t dim = outer - 1;
    for (; dim >= 0; --dim) {
      source += source_strides[dim];
      target += target_strides[dim];
      if (++index[dim] < extents[dim]) break;
      source -= index[dim] * source_strides[dim];
      target -= index[dim] * target_strides[dim];
      index[dim] = 0;
    }
    if (dim < 0) return;
  }
}

// For shorter runs, stores that bypass the caches do not pay off.
constexpr int64_t kLongRunBytes = 512;

// The caller must call end_streams() afterwards.
CopyBytes copy_for_runs(int64_t run_bytes, int64_t whole_bytes) {
  return run_bytes >= kLongRunBytes ? part_copy_for(whole_bytes) : copy_bytes;
}

// For bytes [begin, end) of a row-major packed box, calls fn(byte in the strided part, byte in the
// packed box, bytes) for every contiguous run of a part with these strides.
template <class Fn>
void for_each_packed_run(const Shape& extents, const Strides& strides, int64_t element_bytes,
                         int64_t begin, int64_t end, const Fn& fn) {
  const int64_t outer = extents.size() - 1;
  const int64_t run = extents.back() * element_bytes;
  Shape index = Shape::filled(outer, 0);
  int64_t offset = 0;
  int64_t rest = begin / run;
  for (int64_t dim = outer - 1; dim >= 0; --dim) {
    index[dim] = rest % extents[dim];
    rest /= extents[dim];
    offset += index[dim] * strides[dim];
  }
  int64_t in_run = begin % run;
  for (int64_t at = begin; at < end; in_run = 0) {
    const int64_t bytes = std::min(run - in_run, end - at);
    fn(offset * element_bytes + in_run, at, bytes);
    at += bytes;
    for (int64_t dim = outer - 1; dim >= 0; --dim) {
      offset += strides[dim];
      if (++index[dim] < extents[dim]) break;
      offset -= index[dim] * strides[dim];
      index[dim] = 0;
    }
  }
}

// Visits a packed box that starts at byte `box_begin` of the data that one member receives from
// another, restricted to bytes [offset, offset + bytes) of that data. fn is called as above; its
// second argument is relative to `offset`.
template <class Fn>
void for_each_run_within(const Shape& extents, const Strides& strides, int64_t element_bytes,
                         int64_t box_begin, int64_t offset, int64_t bytes, const Fn& fn) {
  const int64_t begin = std::max<int64_t>(offset - box_begin, 0);
  const int64_t end = std::min(offset + bytes - box_begin, extents.numel() * element_bytes);
  if (begin >= end) return;
  for_each_packed_run(extents, strides, element_bytes, begin, end,
                      [&](int64_t strided, int64_t packed, int64_t size) {
                        fn(strided, packed + box_begin - offset, size);
                      });
}

// Reduces a box of parts that have the same shape.
void reduce_box(const BoxCopy& copy, DType dtype, ReduceOp op,
                std::span<const std::byte* const> sources, std::byte* target) {
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  std::vector<const std::byte*> at(sources.size());
  for_each_run(copy.extents, copy.source_strides, copy.target_strides,
               [&](int64_t from, int64_t to) {
                 for (size_t i = 0; i < at.size(); ++i)
                   at[i] = sources[i] + from * size;
                 reduce_in_order(dtype, op, at, target + to * size, copy.extents.back());
               });
}

}  // namespace

void copy_box(const Shape& extents, const Strides& source_strides, const std::byte* source,
              const Strides& target_strides, std::byte* target, size_t element_bytes) {
  const auto size = static_cast<int64_t>(element_bytes);
  const int64_t inner = extents.size() - 1;
  const bool is_run = inner >= 0 && source_strides[inner] == 1 && target_strides[inner] == 1;
  Shape outer = extents;
  Strides from = source_strides;
  Strides to = target_strides;
  if (!is_run) {  // runs of one element
    outer.push_back(1);
    from.push_back(1);
    to.push_back(1);
  }
  const int64_t bytes = outer.back() * size;
  const auto copy = copy_for_runs(bytes, outer.numel() * size);
  for_each_run(outer, from, to, [&](int64_t read, int64_t write) {
    copy(target + write * size, source + read * size, bytes);
  });
  end_streams();
}

BoundRoute::BoundRoute(RankContext& context, RankRoute route, Channel channel)
    : context_(context),
      rank_route_(std::move(route)),
      channel_(channel),
      groups_(rank_route_.steps.size(), nullptr) {
  what_ = {.op = "redistribute",
           .shape = rank_route_.route.shape,
           .dtype = rank_route_.route.dtype,
           .from = rank_route_.route.from,
           .to = rank_route_.route.to};
  what_.known_hash = what_.context_hash();
}

void BoundRoute::run(const std::byte* source, std::byte* target, Site site) const {
  const Route& route = rank_route_.route;
  const size_t element_bytes = dtype_size(route.dtype);
  if (route.steps.empty()) {
    const int64_t bytes = bytes_of(rank_route_.count, route.dtype);
    if (rank_route_.copies_all) copy_for(bytes)(target, source, bytes);
    return;
  }
  Ref<Storage> between;  // the part that the previous step has written
  for (size_t i = 0; i < rank_route_.steps.size(); ++i) {
    const RankStep& step = rank_route_.steps[i];
    Ref<Storage> next;
    std::byte* out = target;
    const bool is_last = i + 1 == rank_route_.steps.size();
    if (!is_last) {
      const auto bytes = static_cast<size_t>(step.target_count) * element_bytes;
      next = Storage::allocate(context_.allocator(), bytes);
      out = next->data();
    }
    if (!step.group.empty()) run_step(i, i == 0 ? source : between->data(), out, site);
    between = std::move(next);
  }
}

Communicator* BoundRoute::group_of_step(size_t index) const {
  const RankStep& step = rank_route_.steps[index];
  if (step.group.size() > 1 && groups_[index] == nullptr) {
    groups_[index] = &communicator_for(context_, step.group, channel_);
  }
  return groups_[index];
}

Fingerprint BoundRoute::fingerprint(Site site) const {
  Fingerprint what = what_;
  what.site = site;
  return what;
}

void BoundRoute::run_step(size_t index, const std::byte* source, std::byte* target,
                          Site site) const {
  run_step(rank_route_.steps[index], group_of_step(index), source, target, fingerprint(site));
}

void BoundRoute::run_step(const RankStep& step, Communicator* group, const std::byte* source,
                          std::byte* target, const Fingerprint& what) const {
  const DType dtype = rank_route_.route.dtype;
  if (step.kind == RouteStepKind::kAllReduce) {
    group->all_reduce(source, target, step.target_count, dtype, step.source_op, what);
    return;
  }
  if (step.fills) fill_neutral(dtype, step.fill_op, target, step.target_count);
  if (group == nullptr) {
    for (const BoxCopy& copy : step.copies) {
      const size_t size = dtype_size(dtype);
      copy_box(copy.extents, copy.source_strides,
               source + copy.source_offset * static_cast<int64_t>(size), copy.target_strides,
               target + copy.target_offset * static_cast<int64_t>(size), size);
    }
  } else if (group->shares_memory() && !is_packed_) {
    exchange_shared(step, *group, source, target, what);
  } else if (packs_messages(step)) {
    exchange_in_host_memory(step, *group, source, target, what);
  } else if (step.is_streamed) {
    exchange_streamed(step, *group, source, target, what);
  } else {
    exchange_parts(step, *group, dtype, source, target, what);
  }
}

void BoundRoute::exchange_shared(const RankStep& step, Communicator& group, const std::byte* source,
                                 std::byte* target, const Fingerprint& what) const {
  const DType dtype = rank_route_.route.dtype;
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  const auto parts = group.open(source, step.source_count * size, what);
  std::vector<const std::byte*> sources;
  for (const BoxCopy& copy : step.copies) {
    std::byte* out = target + copy.target_offset * size;
    const int64_t offset = copy.source_offset * size;
    if (copy.members.size() == 1) {
      copy_box(copy.extents, copy.source_strides,
               parts[static_cast<size_t>(copy.members[0])] + offset, copy.target_strides, out,
               dtype_size(dtype));
      continue;
    }
    sources.clear();
    for (const int64_t member : copy.members)
      sources.push_back(parts[static_cast<size_t>(member)] + offset);
    reduce_box(copy, dtype, step.source_op, sources, out);
  }
  group.close();
}

void BoundRoute::exchange_in_host_memory(const RankStep& step, Communicator& group,
                                         const std::byte* source, std::byte* target,
                                         const Fingerprint& what) const {
  struct HostMemory {
    Allocator& allocator;
    DType dtype;
    ReduceOp op;

    Ref<Storage> allocate(size_t bytes) const { return Storage::allocate(allocator, bytes); }

    void copy(const Shape& extents, const Strides& from_strides, const std::byte* from,
              const Strides& to_strides, std::byte* to) const {
      copy_box(extents, from_strides, from, to_strides, to, dtype_size(dtype));
    }

    void reduce(const BoxCopy& box, std::span<const std::byte* const> sources,
                std::byte* to) const {
      reduce_box(box, dtype, op, sources, to);
    }
  };

  const DType dtype = rank_route_.route.dtype;
  exchange_packed(step, group, dtype, source, target, what,
                  HostMemory{context_.allocator(), dtype, step.source_op});
}

// Data that stays on this rank is copied directly from part to part.
void BoundRoute::exchange_streamed(const RankStep& step, Communicator& group,
                                   const std::byte* source, std::byte* target,
                                   const Fingerprint& what) const {
  const auto size = static_cast<int64_t>(dtype_size(rank_route_.route.dtype));
  const auto me = static_cast<size_t>(group.position());
  for (const BoxCopy& copy : step.copies) {
    if (copy.members[0] != group.position()) continue;
    copy_box(copy.extents, copy.source_strides, source + copy.source_offset * size,
             copy.target_strides, target + copy.target_offset * size, static_cast<size_t>(size));
  }
  std::vector<int64_t> send_bytes = step.send_bytes;
  std::vector<int64_t> recv_bytes = step.recv_bytes;
  send_bytes[me] = 0;
  recv_bytes[me] = 0;
  const CopyBytes share =
      share_for(std::accumulate(send_bytes.begin(), send_bytes.end(), int64_t{0}));
  const auto pack_box = [&](const BoxCopy& box, int64_t offset, int64_t bytes, std::byte* to,
                            CopyBytes copy) {
    const std::byte* from = source + box.source_offset * size;
    for_each_run_within(box.extents, box.source_strides, size, box.target_offset * size, offset,
                        bytes, [&](int64_t strided, int64_t packed, int64_t run) {
                          copy(to + packed, from + strided, run);
                        });
  };
  const auto pack = [&](int64_t member, int64_t offset, int64_t bytes, std::byte* to) {
    const std::vector<BoxCopy>& boxes = step.packed[static_cast<size_t>(member)];
    const bool are_long = std::all_of(boxes.begin(), boxes.end(), [&](const BoxCopy& box) {
      return box.extents.back() * size >= kLongRunBytes;
    });
    if (are_long) {
      for (const BoxCopy& box : boxes)
        pack_box(box, offset, bytes, to, share);
    } else {
      alignas(64) std::array<std::byte, kStreamBlockBytes> block;
      for (int64_t done = 0; done < bytes; done += kStreamBlockBytes) {
        const int64_t size_here = std::min(kStreamBlockBytes, bytes - done);
        for (const BoxCopy& box : boxes)
          pack_box(box, offset + done, size_here, block.data(), copy_bytes);
        share(to + done, block.data(), size_here);
      }
    }
    end_streams();
  };
  const int64_t target_bytes = step.target_count * size;
  const auto unpack = [&](int64_t member, int64_t offset, int64_t bytes, const std::byte* from) {
    for (size_t i = 0; i < step.unpacked.size(); ++i) {
      const BoxCopy& box = step.unpacked[i];
      if (box.members[0] != member) continue;
      std::byte* to = target + box.target_offset * size;
      const auto copy = copy_for_runs(box.extents.back() * size, target_bytes);
      for_each_run_within(box.extents, box.target_strides, size, step.offsets[i][0] * size, offset,
                          bytes, [&](int64_t strided, int64_t packed, int64_t run) {
                            copy(to + strided, from + packed, run);
                          });
    }
    end_streams();
  };
  group.all_to_all_packed(send_bytes, pack, recv_bytes, unpack, what);
}

void run_route(const Route& route, RankContext& context, const std::byte* source, std::byte* target,
               Site site) {
  BoundRoute(context, make_rank_route(route, context.rank())).run(source, target, site);
}

}  // namespace flow::boxing

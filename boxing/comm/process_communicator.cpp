#include "boxing/comm/process_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/failure.h"
#include "boxing/comm/flight_recorder.h"
#include "boxing/comm/process_group.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

namespace {

using Part = ProcessGroup::Part;

// The size of a piece of a reduction that is sent in messages.
constexpr int64_t kMessageBytes = 8 << 20;

// Sources are only read. Using one type for both directions keeps exchange() simple.
std::byte* bytes_at(const void* source) {
  return static_cast<std::byte*>(const_cast<void*>(source));
}

class ProcessCommunicator final : public Communicator {
 public:
  ProcessCommunicator(ProcessWorld& world, const std::vector<int64_t>& ranks, int64_t position,
                      Channel channel, FlightRecorder* recorder, RankContext* context)
      : Communicator(ranks, position),
        world_(world),
        recorder_(recorder),
        group_(world, ranks, position, channel, context),
        sends_(ranks.size()),
        receives_(ranks.size()),
        counts_(ranks.size()),
        sources_(ranks.size()) {}

  void barrier(const Fingerprint& what) override {
    meet(mark(what, "barrier", 0, DType::kUInt8), {});
  }

  void all_reduce(const void* source, void* target, int64_t count, DType dtype, ReduceOp op,
                  const Fingerprint& what) override;
  void all_reduce_parts(std::span<const SourcePart> parts, void* target, DType dtype, ReduceOp op,
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
  void all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                         std::span<const int64_t> recv_bytes, const Unpack& unpack,
                         const Fingerprint& what) override;
  void broadcast(void* data, int64_t bytes, int64_t root, const Fingerprint& what) override;

  Transfer isend(const void* source, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    const Fingerprint call = mark(what, "send", bytes, what.dtype);
    check_peer(peer, call);
    return group_.isend(source, bytes, peer, tag, call);
  }

  Transfer irecv(void* target, int64_t bytes, int64_t peer, int64_t tag,
                 const Fingerprint& what) override {
    const Fingerprint call = mark(what, "recv", bytes, what.dtype);
    check_peer(peer, call);
    return group_.irecv(target, bytes, peer, tag, call);
  }

  void wait(Transfer transfer) override { group_.wait(std::move(transfer)); }

 private:
  void meet(const Fingerprint& what, std::span<const std::byte> data) {
    if (recorder_ == nullptr) return group_.meet(what, data);
    const uint64_t number = recorder_->begin(what);
    group_.meet(what, data);
    recorder_->met(number);
  }

  // A range of elements for every member.
  using Ranges = std::vector<Range>;

  // A reduction that runs piece by piece, so that its temporary memory stays small.
  struct Reduction {
    static constexpr int64_t kAll = -1;  // roots
    static constexpr int64_t kOwner = -2;

    std::span<const SourcePart> parts;
    std::byte* target;
    DType dtype;
    ReduceOp op;
    int64_t pieces;
    // The ranges of a piece: member i reduces range i.
    std::function<Ranges(int64_t piece)> ranges;
    int64_t root;         // takes all ranges; kAll: every member does; kOwner: each takes its own
    int64_t first = 0;    // the element to which target points
    CopyBytes to_target;  // copies parts of a result
    CopyBytes to_others;  // copies what other members read

    bool takes(int64_t member, int64_t owner) const {
      return root == kAll || (root == kOwner ? member == owner : member == root);
    }

    // The data of a range, for a source in one part.
    const std::byte* source_of(Range range) const {
      return static_cast<const std::byte*>(parts[0].data) + bytes_of(range.begin, dtype);
    }

    // Calls fn(data, start within the range, elements) for every part of a range.
    template <class Fn>
    void for_each_source(Range range, const Fn& fn) const {
      int64_t begin = -range.begin;
      for (const SourcePart& part : parts) {
        const int64_t from = std::max<int64_t>(begin, 0);
        const int64_t to = std::min(begin + part.count, range.size);
        if (from < to) {
          fn(static_cast<const std::byte*>(part.data) + bytes_of(from - begin, dtype), from,
             to - from);
        }
        begin += part.count;
      }
    }

    std::byte* target_of(Range range) const {
      return target + bytes_of(range.begin - first, dtype);
    }
  };

  // The reduction of all elements that the parts hold.
  Reduction whole(std::span<const SourcePart> parts, void* target, DType dtype, ReduceOp op,
                  int64_t root) const;

  // Requires: the members have met.
  void reduce_pieces(const Reduction& what, const Fingerprint& call) {
    if (group_.stage() != nullptr) {
      reduce_in_memory(what, call);
    } else {
      reduce_by_messages(what, call);
    }
  }

  void reduce_in_memory(const Reduction& what, const Fingerprint& call);
  void reduce_own(const Reduction& what, Range range, int64_t piece, int64_t offset);
  void reduce_by_messages(const Reduction& what, const Fingerprint& call);

  // The number of elements of a piece.
  int64_t piece_size(DType dtype) const {
    const int64_t bytes = group_.stage() != nullptr ? SharedStage::kPieceBytes : kMessageBytes;
    return bytes / static_cast<int64_t>(dtype_size(dtype));
  }

  // For an all_to_all: reads the counts that a member has published into counts_ and returns the
  // data behind them. Fails the world if the member sends another number of bytes than expected.
  const std::byte* read_counts(int64_t member, int64_t expected, const Fingerprint& call);
  // Reduces a range of the data that all members published at the meeting; the caller's own data is
  // at `source`.
  void reduce_shown(const std::byte* source, Range range, DType dtype, ReduceOp op,
                    std::byte* target);
  // Member i has range i of `data`; afterwards all members have all ranges.
  void gather_ranges(std::byte* data, const Ranges& ranges, DType dtype, const Fingerprint& what);
  // Divides [begin, begin + count) into balanced parts.
  Ranges cut(int64_t begin, int64_t count) const;

  void exchange(const Fingerprint& what) {
    group_.exchange(sends_, receives_, what);
    clear();
  }

  void clear() {
    std::fill(sends_.begin(), sends_.end(), Part{});
    std::fill(receives_.begin(), receives_.end(), Part{});
  }

  Part& send_to(int64_t member) { return sends_[static_cast<size_t>(member)]; }

  Part& receive_from(int64_t member) { return receives_[static_cast<size_t>(member)]; }

  std::byte* scratch(int64_t bytes) {
    if (bytes > scratch_bytes_) {
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

  // True if a meeting carries this many bytes per member.
  static bool fits_inline(int64_t bytes) { return bytes <= ProcessGroup::kInlineBytes; }

  static std::span<const std::byte> view(const void* data, int64_t bytes) {
    return {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)};
  }

  ProcessWorld& world_;
  FlightRecorder* recorder_;  // may be null
  ProcessGroup group_;
  std::vector<Part> sends_;
  std::vector<Part> receives_;
  std::vector<int64_t> counts_;   // a member's counts in an all_to_all
  std::vector<std::byte> shown_;  // the data that this member publishes
  std::vector<const std::byte*> sources_;
  std::unique_ptr<std::byte[]> scratch_;
  int64_t scratch_bytes_ = 0;
};

ProcessCommunicator::Ranges ProcessCommunicator::cut(int64_t begin, int64_t count) const {
  Ranges ranges;
  for (int64_t member = 0; member < size(); ++member) {
    Range part = balanced_part(count, size(), member);
    part.begin += begin;
    ranges.push_back(part);
  }
  return ranges;
}

// Reduces the data that others have put at `offset` of a piece together with the caller's own data,
// for the members that take the result. Works block by block, so that a sum is written to where it
// belongs from the first-level cache.
void ProcessCommunicator::reduce_own(const Reduction& what, Range range, int64_t piece,
                                     int64_t offset) {
  SharedStage& stage = *group_.stage();
  const int64_t me = position();
  const int64_t block = kStreamBlockBytes / bytes_of(1, what.dtype);
  bool do_others_take = false;
  for (int64_t member = 0; member < size(); ++member)
    do_others_take |= member != me && what.takes(member, me);
  alignas(64) std::array<std::byte, kStreamBlockBytes> sums;
  what.for_each_source(range, [&](const std::byte* source, int64_t begin, int64_t count) {
    for (int64_t done = 0; done < count; done += block) {
      const int64_t size_here = std::min(block, count - done);
      const int64_t at = offset + bytes_of(begin + done, what.dtype);
      for (int64_t member = 0; member < size(); ++member) {
        sources_[static_cast<size_t>(member)] =
            member == me ? source + bytes_of(done, what.dtype) : stage.piece(member, piece) + at;
      }
      reduce_in_order(what.dtype, what.op, sources_, sums.data(), size_here);
      const int64_t bytes = bytes_of(size_here, what.dtype);
      if (do_others_take) what.to_others(stage.piece(me, piece) + at, sums.data(), bytes);
      if (what.takes(me, me)) {
        what.to_target(what.target_of({range.begin + begin + done, size_here}), sums.data(), bytes);
      }
    }
  });
  end_streams();
}

// A pipeline over pieces. Each member puts the ranges that others reduce, then reduces its own
// range of the previous piece, which the others have put in the meantime, and then takes its
// results of the piece before that.
void ProcessCommunicator::reduce_in_memory(const Reduction& what, const Fingerprint& call) {
  SharedStage& stage = *group_.stage();
  const int64_t me = position();
  // The ranges of a piece are stored one after another in every member's memory.
  const auto for_each_range = [&](int64_t piece, const auto& fn) {
    int64_t offset = 0;
    const Ranges ranges = what.ranges(piece);
    for (int64_t member = 0; member < size(); ++member) {
      const Range range = ranges[static_cast<size_t>(member)];
      const int64_t bytes = bytes_of(range.size, what.dtype);
      if (bytes > 0) fn(member, range, offset, bytes);
      offset += bytes;
    }
  };
  const auto put = [&](int64_t piece) {
    for_each_range(piece, [&](int64_t owner, Range range, int64_t offset, int64_t /*bytes*/) {
      if (owner == me) return;
      std::byte* place = stage.piece(me, piece) + offset;
      what.for_each_source(range, [&](const std::byte* source, int64_t begin, int64_t count) {
        what.to_others(place + bytes_of(begin, what.dtype), source, bytes_of(count, what.dtype));
      });
    });
    end_streams();
    stage.set_put(piece);
  };
  const auto complete = [&](int64_t piece) {
    group_.wait_for_members([&](int64_t member) { return stage.has_put(member, piece); }, call);
    for_each_range(piece, [&](int64_t owner, Range range, int64_t offset, int64_t /*bytes*/) {
      if (owner == me) reduce_own(what, range, piece, offset);
    });
    stage.set_completed(piece);
  };
  const auto take = [&](int64_t piece) {
    group_.wait_for_members(
        [&](int64_t member) {
          return !what.takes(me, member) || stage.has_completed(member, piece);
        },
        call);
    for_each_range(piece, [&](int64_t owner, Range range, int64_t offset, int64_t bytes) {
      if (owner != me && what.takes(me, owner)) {
        what.to_target(what.target_of(range), stage.piece(owner, piece) + offset, bytes);
      }
    });
    end_streams();
  };
  for (int64_t step = 0; step < what.pieces + 2; ++step) {
    if (step < what.pieces) put(step);
    if (step >= 1 && step <= what.pieces) complete(step - 1);
    if (step >= 2) take(step - 2);
  }
  stage.finish(what.pieces);
}

void ProcessCommunicator::reduce_by_messages(const Reduction& what, const Fingerprint& call) {
  const int64_t me = position();
  for (int64_t piece = 0; piece < what.pieces; ++piece) {
    const Ranges ranges = what.ranges(piece);
    const Range own = ranges[static_cast<size_t>(me)];
    const int64_t own_bytes = bytes_of(own.size, what.dtype);
    std::byte* received = scratch(own_bytes * size());
    std::byte* result = what.takes(me, me) ? what.target_of(own) : received;
    received += own_bytes;
    clear();
    for (int64_t member = 0; member < size(); ++member) {
      const Range range = ranges[static_cast<size_t>(member)];
      const std::byte*& source = sources_[static_cast<size_t>(member)];
      source = member == me ? what.source_of(own) : received;
      if (member == me) continue;
      send_to(member) = {bytes_at(what.source_of(range)), bytes_of(range.size, what.dtype)};
      receive_from(member) = {received, own_bytes};
      received += own_bytes;
    }
    exchange(call);
    if (own.size > 0) reduce_in_order(what.dtype, what.op, sources_, result, own.size);
    for (int64_t member = 0; member < size(); ++member) {
      const Range range = ranges[static_cast<size_t>(member)];
      if (member == me) continue;
      if (what.takes(member, me)) send_to(member) = {result, own_bytes};
      if (what.takes(me, member)) {
        receive_from(member) = {what.target_of(range), bytes_of(range.size, what.dtype)};
      }
    }
    exchange(call);
  }
}

void ProcessCommunicator::gather_ranges(std::byte* data, const Ranges& ranges, DType dtype,
                                        const Fingerprint& what) {
  const auto part = [&](int64_t member) {
    const Range range = ranges[static_cast<size_t>(member)];
    return Part{data + bytes_of(range.begin, dtype), bytes_of(range.size, dtype)};
  };
  clear();
  for (int64_t member = 0; member < size(); ++member) {
    if (member == position()) continue;
    send_to(member) = part(position());
    receive_from(member) = part(member);
  }
  exchange(what);
}

void ProcessCommunicator::all_reduce(const void* source, void* target, int64_t count, DType dtype,
                                     ReduceOp op, const Fingerprint& what) {
  const Fingerprint call = mark(what, "all_reduce", count, dtype, op);
  const int64_t bytes = bytes_of(count, dtype);
  const auto* in = static_cast<const std::byte*>(source);
  auto* out = static_cast<std::byte*>(target);
  if (fits_inline(bytes)) {
    meet(call, view(source, bytes));
    return reduce_shown(in, {0, count}, dtype, op, out);
  }
  meet(call, {});
  const SourcePart all{source, count};
  reduce_pieces(whole({&all, 1}, target, dtype, op, Reduction::kAll), call);
}

void ProcessCommunicator::all_reduce_parts(std::span<const SourcePart> parts, void* target,
                                           DType dtype, ReduceOp op, const Fingerprint& what) {
  int64_t count = 0;
  for (const SourcePart& part : parts)
    count += part.count;
  if (group_.stage() == nullptr || fits_inline(bytes_of(count, dtype))) {
    return Communicator::all_reduce_parts(parts, target, dtype, op, what);
  }
  const Fingerprint call = mark(what, "all_reduce", count, dtype, op);
  meet(call, {});
  reduce_in_memory(whole(parts, target, dtype, op, Reduction::kAll), call);
}

void ProcessCommunicator::reduce_shown(const std::byte* source, Range range, DType dtype,
                                       ReduceOp op, std::byte* target) {
  if (range.size == 0) return;
  const int64_t offset = bytes_of(range.begin, dtype);
  for (int64_t member = 0; member < size(); ++member) {
    sources_[static_cast<size_t>(member)] =
        (member == position() ? source : group_.data_of(member).data()) + offset;
  }
  reduce_in_order(dtype, op, sources_, target, range.size);
}

void ProcessCommunicator::reduce(const void* source, void* target, int64_t count, DType dtype,
                                 ReduceOp op, int64_t root, const Fingerprint& what) {
  const Fingerprint call = mark(what, "reduce", count, dtype, op, root);
  meet(call, {});
  const SourcePart all{source, count};
  reduce_pieces(whole({&all, 1}, target, dtype, op, root), call);
}

ProcessCommunicator::Reduction ProcessCommunicator::whole(std::span<const SourcePart> parts,
                                                          void* target, DType dtype, ReduceOp op,
                                                          int64_t root) const {
  const int64_t piece = piece_size(dtype);
  int64_t count = 0;
  for (const SourcePart& part : parts)
    count += part.count;
  return {
      .parts = parts,
      .target = static_cast<std::byte*>(target),
      .dtype = dtype,
      .op = op,
      .pieces = (count + piece - 1) / piece,
      .ranges = [=, this](int64_t k) { return cut(k * piece, std::min(piece, count - k * piece)); },
      .root = root,
      .to_target = part_copy_for(bytes_of(count, dtype)),
      .to_others = share_for(bytes_of(count, dtype))};
}

void ProcessCommunicator::reduce_scatter(const void* source, void* target,
                                         std::span<const int64_t> counts, DType dtype, ReduceOp op,
                                         const Fingerprint& what) {
  const Fingerprint call = mark_counts(what, "reduce_scatter", counts, dtype, op);
  Ranges all;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    all.push_back({begin, count});
    begin += count;
  }
  const Range own = all[static_cast<size_t>(position())];
  const auto* in = static_cast<const std::byte*>(source);
  auto* out = static_cast<std::byte*>(target);
  const int64_t bytes = bytes_of(begin, dtype);
  if (fits_inline(bytes)) {
    meet(call, view(source, bytes));
    return reduce_shown(in, own, dtype, op, out);
  }
  meet(call, {});
  // A piece contains an equal share of every range.
  const int64_t longest = *std::max_element(counts.begin(), counts.end());
  const int64_t piece = std::max<int64_t>(1, piece_size(dtype) / size());
  const auto ranges = [&](int64_t k) {
    Ranges parts = all;
    for (Range& part : parts) {
      part.begin += std::min(k * piece, part.size);
      part.size = std::clamp<int64_t>(part.size - k * piece, 0, piece);
    }
    return parts;
  };
  const SourcePart whole_source{source, begin};
  reduce_pieces({.parts = {&whole_source, 1},
                 .target = out,
                 .dtype = dtype,
                 .op = op,
                 .pieces = (longest + piece - 1) / piece,
                 .ranges = ranges,
                 .root = Reduction::kOwner,
                 .first = own.begin,
                 .to_target = part_copy_for(bytes_of(own.size, dtype)),
                 .to_others = share_for(bytes)},
                call);
}

void ProcessCommunicator::all_gather(const void* source, void* target,
                                     std::span<const int64_t> bytes, const Fingerprint& what) {
  const Fingerprint call = mark_counts(what, "all_gather", bytes, what.dtype);
  const bool is_inline = fits_inline(*std::max_element(bytes.begin(), bytes.end()));
  const int64_t own = bytes[static_cast<size_t>(position())];
  meet(call, view(source, is_inline ? own : 0));
  clear();
  auto* out = static_cast<std::byte*>(target);
  const auto copy = copy_for(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
  for (int64_t member = 0; member < size(); ++member) {
    const int64_t size_there = bytes[static_cast<size_t>(member)];
    if (member == position()) {
      copy(out, static_cast<const std::byte*>(source), own);
    } else if (is_inline) {
      copy_bytes(out, group_.data_of(member).data(), size_there);
    } else {
      send_to(member) = {bytes_at(source), own};
      receive_from(member) = {out, size_there};
    }
    out += size_there;
  }
  if (!is_inline) exchange(call);
}

void ProcessCommunicator::gather(const void* source, void* target, std::span<const int64_t> bytes,
                                 int64_t root, const Fingerprint& what) {
  const Fingerprint call = mark_counts(what, "gather", bytes, what.dtype, ReduceOp::kSum, root);
  meet(call, {});
  clear();
  const int64_t own = bytes[static_cast<size_t>(position())];
  if (position() != root) {
    send_to(root) = {bytes_at(source), own};
    return exchange(call);
  }
  auto* out = static_cast<std::byte*>(target);
  const auto copy = copy_for(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
  for (int64_t member = 0; member < size(); ++member) {
    const int64_t size_there = bytes[static_cast<size_t>(member)];
    if (member == position()) copy(out, static_cast<const std::byte*>(source), own);
    receive_from(member) = {out, size_there};
    out += size_there;
  }
  exchange(call);
}

void ProcessCommunicator::scatter(const void* source, void* target, std::span<const int64_t> bytes,
                                  int64_t root, const Fingerprint& what) {
  const Fingerprint call = mark_counts(what, "scatter", bytes, what.dtype, ReduceOp::kSum, root);
  meet(call, {});
  clear();
  const int64_t own = bytes[static_cast<size_t>(position())];
  if (position() != root) {
    receive_from(root) = {static_cast<std::byte*>(target), own};
    return exchange(call);
  }
  std::byte* in = bytes_at(source);
  for (int64_t member = 0; member < size(); ++member) {
    const int64_t size_there = bytes[static_cast<size_t>(member)];
    if (member == position()) copy_for(own)(static_cast<std::byte*>(target), in, own);
    send_to(member) = {in, size_there};
    in += size_there;
  }
  exchange(call);
}

void ProcessCommunicator::all_to_all(const void* source, std::span<const int64_t> send_bytes,
                                     void* target, std::span<const int64_t> recv_bytes,
                                     const Fingerprint& what) {
  const Fingerprint call = mark(what, "all_to_all", 0, what.dtype);
  std::byte* in = bytes_at(source);
  auto* out = static_cast<std::byte*>(target);
  // The data that all members see: the number of bytes for each member and, if these are few, the
  // bytes themselves.
  const int64_t sent = std::accumulate(send_bytes.begin(), send_bytes.end(), int64_t{0});
  const auto counts = std::as_bytes(send_bytes);
  shown_.assign(counts.begin(), counts.end());
  if (fits_inline(sent)) shown_.insert(shown_.end(), in, in + sent);
  meet(call, shown_);
  clear();
  const auto copy = copy_for(std::accumulate(recv_bytes.begin(), recv_bytes.end(), int64_t{0}));
  for (int64_t member = 0; member < size(); ++member) {
    const auto i = static_cast<size_t>(member);
    const std::byte* theirs = read_counts(member, recv_bytes[i], call);
    const int64_t coming = recv_bytes[i];
    if (member == position()) {
      copy(out, in, coming);
    } else {
      if (!fits_inline(sent)) send_to(member) = {in, send_bytes[i]};
      const auto before = counts_.begin() + position();
      if (fits_inline(std::accumulate(counts_.begin(), counts_.end(), int64_t{0}))) {
        const std::byte* data = theirs + counts.size();
        copy_bytes(out, data + std::accumulate(counts_.begin(), before, int64_t{0}), coming);
      } else {
        receive_from(member) = {out, coming};
      }
    }
    in += send_bytes[i];
    out += coming;
  }
  exchange(call);
}

const std::byte* ProcessCommunicator::read_counts(int64_t member, int64_t expected,
                                                  const Fingerprint& call) {
  const std::byte* theirs = member == position() ? shown_.data() : group_.data_of(member).data();
  std::memcpy(counts_.data(), theirs, counts_.size() * sizeof(int64_t));
  const int64_t coming = counts_[static_cast<size_t>(position())];
  if (coming != expected) {
    world_.fail(all_to_all_failure(ranks()[static_cast<size_t>(member)], coming,
                                   ranks()[static_cast<size_t>(position())], expected, call));
    world_.check(call.site);
  }
  return theirs;
}

// Each member packs a piece for all others, then unpacks the previous piece, which the others have
// packed in the meantime. A piece has equal room for each of them.
void ProcessCommunicator::all_to_all_packed(std::span<const int64_t> send_bytes, const Pack& pack,
                                            std::span<const int64_t> recv_bytes,
                                            const Unpack& unpack, const Fingerprint& what) {
  if (group_.stage() == nullptr) {
    return Communicator::all_to_all_packed(send_bytes, pack, recv_bytes, unpack, what);
  }
  const Fingerprint call = mark(what, "all_to_all", 0, what.dtype);
  const auto counts = std::as_bytes(send_bytes);
  shown_.assign(counts.begin(), counts.end());
  meet(call, shown_);
  int64_t longest = 0;
  for (int64_t member = 0; member < size(); ++member) {
    read_counts(member, recv_bytes[static_cast<size_t>(member)], call);
    longest = std::max(longest, *std::max_element(counts_.begin(), counts_.end()));
  }
  SharedStage& stage = *group_.stage();
  constexpr int64_t kLine = 64;
  const int64_t room = SharedStage::kPieceBytes / size() / kLine * kLine;
  const int64_t pieces = (longest + room - 1) / room;
  const auto for_each_other = [&](std::span<const int64_t> bytes, int64_t piece, const auto& fn) {
    for (int64_t member = 0; member < size(); ++member) {
      const int64_t rest = bytes[static_cast<size_t>(member)] - piece * room;
      if (member != position() && rest > 0) fn(member, piece * room, std::min(room, rest));
    }
  };
  for (int64_t step = 0; step <= pieces; ++step) {
    if (step < pieces) {
      std::byte* place = stage.piece(position(), step);
      for_each_other(send_bytes, step, [&](int64_t member, int64_t offset, int64_t bytes) {
        pack(member, offset, bytes, place + member * room);
      });
      stage.set_put(step);
    }
    if (step == 0) continue;
    group_.wait_for_members([&](int64_t member) { return stage.has_put(member, step - 1); }, call);
    for_each_other(recv_bytes, step - 1, [&](int64_t member, int64_t offset, int64_t bytes) {
      unpack(member, offset, bytes, stage.piece(member, step - 1) + position() * room);
    });
  }
  stage.finish(pieces);
}

// Large data is scattered to the members, which pass their parts on: the root sends the data once,
// not once per member.
void ProcessCommunicator::broadcast(void* data, int64_t bytes, int64_t root,
                                    const Fingerprint& what) {
  constexpr int64_t kWholeBytes = 64 << 10;
  const Fingerprint call = mark(what, "broadcast", bytes, what.dtype, ReduceOp::kSum, root);
  const bool is_root = position() == root;
  auto* own = static_cast<std::byte*>(data);
  if (fits_inline(bytes)) {
    meet(call, view(data, is_root ? bytes : 0));
    if (!is_root) copy_bytes(own, group_.data_of(root).data(), bytes);
    return;
  }
  meet(call, {});
  const bool is_whole = bytes <= kWholeBytes || size() == 2;
  const Ranges ranges = cut(0, bytes);
  const auto part = [&](int64_t member) {
    if (is_whole) return Part{own, bytes};
    const Range range = ranges[static_cast<size_t>(member)];
    return Part{own + range.begin, range.size};
  };
  clear();
  for (int64_t member = 0; member < size(); ++member) {
    if (is_root) send_to(member) = part(member);
  }
  if (!is_root) receive_from(root) = part(position());
  exchange(call);
  if (!is_whole) gather_ranges(own, ranges, DType::kUInt8, call);
}

}  // namespace

std::unique_ptr<Communicator> make_process_communicator(RankContext& context,
                                                        const std::vector<int64_t>& ranks,
                                                        int64_t position, Channel channel) {
  const std::shared_ptr<ProcessWorld>& hung = context.slot_ptr<ProcessWorld>();
  ProcessWorld* world = hung ? hung.get() : process_world();
  if (world == nullptr) return nullptr;
  return std::make_unique<ProcessCommunicator>(*world, ranks, position, channel,
                                               &flight_recorder(context), &context);
}

std::unique_ptr<Communicator> make_process_communicator(ProcessWorld& world,
                                                        const std::vector<int64_t>& ranks,
                                                        int64_t position, Channel channel) {
  return std::make_unique<ProcessCommunicator>(world, ranks, position, channel, nullptr, nullptr);
}

}  // namespace flow::boxing

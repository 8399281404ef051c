#include "boxing/comm/shared_mail.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>

#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/shared_segment.h"
#include "core/hash.h"

namespace flow::boxing {

namespace {

constexpr uint64_t kName = 0x6d61696c;  // distinguishes rings from other memory of the segment
constexpr uint64_t kRingBytes = 256 << 10;
// The reader copies one part of a long message while the writer copies the next.
constexpr uint64_t kPartBytes = 8 << 10;
// Messages start at cache lines, so a short message is one line that moves from core to core.
constexpr uint64_t kLine = 64;

uint64_t whole_lines(uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

// The byte counts only grow. Each message consists of its length and its bytes, padded to the end
// of a cache line.
struct SharedMail::Ring {
  alignas(64) std::atomic<uint64_t> written;  // by the sender
  alignas(64) std::atomic<uint64_t> taken;    // by the receiver
  alignas(64) std::array<std::byte, kRingBytes> bytes;

  // The contiguous bytes that start at `count`, at most `wanted` of them.
  std::span<std::byte> at(uint64_t count, uint64_t wanted) {
    const uint64_t begin = count % kRingBytes;
    return {bytes.data() + begin, std::min(wanted, kRingBytes - begin)};
  }
};

class SharedMail::Sender {
 public:
  explicit Sender(Ring& ring)
      : ring_(ring), written_(ring.written.load()), taken_(ring.taken.load()) {}

  void post(std::span<const std::byte> head, std::span<const std::byte> body) {
    const uint64_t length = head.size() + body.size();
    const auto prefix = std::as_bytes(std::span(&length, 1));
    const uint64_t size = whole_lines(prefix.size() + length);
    if (flush() && has_room(size)) {
      const uint64_t begin = written_;
      write(prefix);
      write(head);
      write(body);
      written_ = begin + size;
      publish();
      return;
    }
    std::vector<std::byte>& later = waiting_.emplace_back();
    for (const auto part : {prefix, head, body})
      later.insert(later.end(), part.begin(), part.end());
    later.resize(size);
    flush();
  }

  bool flush() {
    while (!waiting_.empty()) {
      const auto rest = std::span(std::as_const(waiting_.front())).subspan(num_flushed_);
      has_room(rest.size());
      const uint64_t size = std::min<uint64_t>(rest.size(), room());
      write(rest.first(size));
      publish();
      num_flushed_ += size;
      if (num_flushed_ < waiting_.front().size()) return false;
      waiting_.pop_front();
      num_flushed_ = 0;
    }
    return true;
  }

 private:
  // The free bytes, as far as this side knows.
  uint64_t room() const { return kRingBytes - (written_ - taken_); }

  // Reads the receiver's count only if necessary, because its cache line is in the other core's
  // cache.
  bool has_room(uint64_t size) {
    if (room() < size) taken_ = ring_.taken.load(std::memory_order_acquire);
    return room() >= size;
  }

  // Requires: room() >= data.size().
  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const auto place = ring_.at(written_, std::min<uint64_t>(data.size(), kPartBytes));
      copy_to_shared(place.data(), data.data(), static_cast<int64_t>(place.size()));
      written_ += place.size();
      data = data.subspan(place.size());
      if (!data.empty()) publish();
    }
  }

  void publish() { ring_.written.store(written_, std::memory_order_release); }

  Ring& ring_;
  uint64_t written_;
  uint64_t taken_;
  std::deque<std::vector<std::byte>> waiting_;
  uint64_t num_flushed_ = 0;  // bytes of the first queued message that are already in the ring
};

class SharedMail::Receiver {
 public:
  explicit Receiver(Ring& ring) : ring_(ring), taken_(ring.taken.load()) {}

  // Returns true if a complete message has arrived, which is then in `message`.
  bool take(std::vector<std::byte>& message) {
    const uint64_t written = ring_.written.load(std::memory_order_acquire);
    if (written <= taken_) return false;  // less: the padding of the last message has not arrived
    uint64_t available = written - taken_;
    if (length_ == 0) {
      if (available < sizeof(length_)) return false;
      auto* target = reinterpret_cast<std::byte*>(&length_);
      read(sizeof(length_), [&](std::span<const std::byte> part) {
        std::memcpy(target, part.data(), part.size());
        target += part.size();
      });
      available -= sizeof(length_);
      message_.clear();
      message_.reserve(length_);
    }
    read(std::min(available, length_ - message_.size()), [&](std::span<const std::byte> part) {
      message_.insert(message_.end(), part.begin(), part.end());
    });
    const bool is_whole = message_.size() == length_;
    if (is_whole) taken_ = whole_lines(taken_);
    ring_.taken.store(taken_, std::memory_order_release);
    if (!is_whole) return false;
    length_ = 0;
    message.swap(message_);
    return true;
  }

 private:
  template <class Fn>
  void read(uint64_t size, const Fn& fn) {
    while (size > 0) {
      const auto part = ring_.at(taken_, size);
      fn(part);
      taken_ += part.size();
      size -= part.size();
    }
  }

  Ring& ring_;
  uint64_t taken_;
  uint64_t length_ = 0;  // of the message being received; 0: none
  std::vector<std::byte> message_;
};

SharedMail::SharedMail(SharedSegment& segment, const Transport& transport) {
  const int64_t own = transport.identity().rank;
  const bool has_rings = transport.ranks_on_host() <= kMostRanks;
  const auto ring = [&](int64_t from, int64_t to) {
    Hasher hasher;
    hasher.add(kName);
    hasher.add(static_cast<uint64_t>(from));
    hasher.add(static_cast<uint64_t>(to));
    return reinterpret_cast<Ring*>(segment.find(hasher.value(), sizeof(Ring)));
  };
  for (int64_t rank = 0; rank < transport.identity().world_size; ++rank) {
    if (rank == own) continue;
    Ring* out = nullptr;
    Ring* in = nullptr;
    if (has_rings && transport.shares_with(rank)) {
      out = ring(own, rank);
      in = ring(rank, own);
    }
    if (out == nullptr || in == nullptr) {
      reaches_all_ = false;
      continue;
    }
    senders_[rank] = std::make_unique<Sender>(*out);
    receivers_[rank] = std::make_unique<Receiver>(*in);
  }
}

SharedMail::~SharedMail() = default;

void SharedMail::post(int64_t rank, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
  senders_.at(rank)->post(head, body);
}

bool SharedMail::take(int64_t& from, std::vector<std::byte>& message) {
  for (const auto& [rank, receiver] : receivers_) {
    if (!receiver->take(message)) continue;
    from = rank;
    return true;
  }
  return false;
}

bool SharedMail::flush() {
  bool all = true;
  for (const auto& [rank, sender] : senders_)
    all &= sender->flush();
  return all;
}

}  // namespace flow::boxing

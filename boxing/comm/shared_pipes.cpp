#include "boxing/comm/shared_pipes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/shared_segment.h"
#include "core/hash.h"

namespace flow::boxing {

namespace {

// Few and small enough to stay in the cores' caches, but large enough that messages are checked
// rarely.
constexpr int64_t kSlotBytes = 32 << 10;
constexpr uint64_t kSlots = 16;
constexpr uint64_t kRequests = 64;

}  // namespace

// One pipe. Its counts only grow.
struct SharedPipes::Memory {
  struct alignas(64) Count {
    std::atomic<uint64_t> value;
  };

  Count filled;     // slots, by the sender
  Count emptied;    // slots, by the receiver
  Count requested;  // transfers that the receiver is ready for, by tag
  std::array<std::atomic<int32_t>, kRequests> tags;
  alignas(64) std::array<std::array<std::byte, kSlotBytes>, kSlots> slots;
};

// One end's state of a transfer.
struct SharedPipes::Transfer {
  int32_t tag;
  std::byte* data;  // null: the received data is discarded
  int64_t bytes;
  int64_t moved = 0;

  bool is_done() const { return moved == bytes; }

  // The number of bytes that the next slot carries.
  int64_t next_bytes() const { return std::min(kSlotBytes, bytes - moved); }
};

class SharedPipes::Sender {
 public:
  explicit Sender(Memory& memory) : memory_(memory) {}

  void add(Transfer& transfer) { waiting_.push_back(&transfer); }

  // If a transfer has started, the rest is sent from a copy, because the receiver counts slots.
  void remove(const Transfer& transfer) {
    std::erase(waiting_, &transfer);
    if (current_ != &transfer) return;
    rest_.assign(transfer.data + transfer.moved, transfer.data + transfer.bytes);
    dropped_ = {transfer.tag, rest_.data(), transfer.bytes - transfer.moved};
    current_ = &dropped_;
  }

  bool advance() {
    bool has_moved = false;
    while (current_ != nullptr || take_request()) {
      while (!current_->is_done()) {
        if (num_filled_ - memory_.emptied.value.load(std::memory_order_acquire) == kSlots) {
          return has_moved;
        }
        const int64_t bytes = current_->next_bytes();
        copy_to_shared(memory_.slots[num_filled_ % kSlots].data(), current_->data + current_->moved,
                       bytes);
        memory_.filled.value.store(++num_filled_, std::memory_order_release);
        current_->moved += bytes;
        has_moved = true;
      }
      current_ = nullptr;
    }
    return has_moved;
  }

 private:
  // Returns true if the receiver has requested data that is waiting here; that transfer then
  // becomes current_.
  bool take_request() {
    if (num_served_ == memory_.requested.value.load(std::memory_order_acquire)) return false;
    const int32_t tag = memory_.tags[num_served_ % kRequests].load(std::memory_order_relaxed);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Transfer* one) { return one->tag == tag; });
    if (found == waiting_.end()) return false;
    current_ = *found;
    waiting_.erase(found);
    ++num_served_;
    return true;
  }

  Memory& memory_;
  uint64_t num_filled_ = 0;
  uint64_t num_served_ = 0;
  std::deque<Transfer*> waiting_;
  Transfer* current_ = nullptr;
  Transfer dropped_ = {};  // the rest of a transfer that was abandoned
  std::vector<std::byte> rest_;
};

class SharedPipes::Receiver {
 public:
  explicit Receiver(Memory& memory) : memory_(memory) {}

  void add(Transfer& transfer) {
    expected_.push_back(&transfer);
    request();
  }

  // Requested data still arrives and must not be mistaken for the next expected data.
  void remove(const Transfer& transfer) {
    const auto found = std::find(expected_.begin(), expected_.end(), &transfer);
    if (found == expected_.end()) return;
    if (static_cast<uint64_t>(found - expected_.begin()) >= num_asked_) {
      expected_.erase(found);
      return;
    }
    dropped_.push_back(std::make_unique<Transfer>(transfer));
    dropped_.back()->data = nullptr;
    *found = dropped_.back().get();
  }

  bool advance() {
    bool has_moved = false;
    while (!expected_.empty() &&
           num_emptied_ != memory_.filled.value.load(std::memory_order_acquire)) {
      Transfer& current = *expected_.front();
      const int64_t bytes = current.next_bytes();
      if (current.data != nullptr) {
        const auto copy = current.bytes > kPastCacheBytes ? stream_bytes : copy_bytes;
        copy(current.data + current.moved, memory_.slots[num_emptied_ % kSlots].data(), bytes);
      }
      memory_.emptied.value.store(++num_emptied_, std::memory_order_release);
      current.moved += bytes;
      has_moved = true;
      if (!current.is_done()) continue;
      expected_.pop_front();
      std::erase_if(dropped_, [&](const auto& dropped) { return dropped.get() == &current; });
      --num_asked_;
      request();
    }
    return has_moved;
  }

 private:
  // Requests the expected data, as far as there is room for requests.
  void request() {
    for (; num_asked_ < std::min<uint64_t>(expected_.size(), kRequests); ++num_asked_) {
      memory_.tags[num_requested_ % kRequests].store(expected_[num_asked_]->tag,
                                                     std::memory_order_relaxed);
      memory_.requested.value.store(++num_requested_, std::memory_order_release);
    }
  }

  Memory& memory_;
  uint64_t num_emptied_ = 0;
  uint64_t num_requested_ = 0;
  uint64_t num_asked_ = 0;  // how many of expected_ are requested
  std::deque<Transfer*> expected_;
  std::vector<std::unique_ptr<Transfer>> dropped_;  // abandoned transfers in expected_
};

class SharedPipes::PipeBulk final : public Bulk {
 public:
  PipeBulk(Sender* sender, Receiver* receiver, const Transfer& transfer)
      : sender_(sender), receiver_(receiver), transfer_(transfer) {
    if (sender_ != nullptr) sender_->add(transfer_);
    if (receiver_ != nullptr) receiver_->add(transfer_);
  }

  ~PipeBulk() override {
    if (transfer_.is_done()) return;
    if (sender_ != nullptr) sender_->remove(transfer_);
    if (receiver_ != nullptr) receiver_->remove(transfer_);
  }

  bool is_done() override { return transfer_.is_done(); }

 private:
  Sender* sender_;      // for data to send
  Receiver* receiver_;  // for data to receive
  Transfer transfer_;
};

SharedPipes::SharedPipes(SharedSegment& segment, int64_t rank) : segment_(segment), rank_(rank) {}

SharedPipes::~SharedPipes() = default;

SharedPipes::Memory* SharedPipes::find(int64_t from, int64_t to) {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(from));
  hasher.add(static_cast<uint64_t>(to));
  return reinterpret_cast<Memory*>(segment_.find(hasher.value(), sizeof(Memory)));
}

std::unique_ptr<Bulk> SharedPipes::send(int64_t rank, int32_t tag, const void* source,
                                        int64_t bytes) {
  const auto [entry, is_new] = senders_.try_emplace(rank);
  if (is_new) {
    if (Memory* memory = find(rank_, rank)) entry->second = std::make_unique<Sender>(*memory);
  }
  if (entry->second == nullptr) return nullptr;
  auto* data = static_cast<std::byte*>(const_cast<void*>(source));  // only read
  return std::make_unique<PipeBulk>(entry->second.get(), nullptr, Transfer{tag, data, bytes});
}

std::unique_ptr<Bulk> SharedPipes::receive(int64_t rank, int32_t tag, void* target, int64_t bytes) {
  const auto [entry, is_new] = receivers_.try_emplace(rank);
  if (is_new) {
    if (Memory* memory = find(rank, rank_)) entry->second = std::make_unique<Receiver>(*memory);
  }
  if (entry->second == nullptr) return nullptr;
  auto* data = static_cast<std::byte*>(target);
  return std::make_unique<PipeBulk>(nullptr, entry->second.get(), Transfer{tag, data, bytes});
}

bool SharedPipes::advance() {
  bool has_moved = false;
  for (const auto& [rank, sender] : senders_)
    has_moved |= sender != nullptr && sender->advance();
  for (const auto& [rank, receiver] : receivers_)
    has_moved |= receiver != nullptr && receiver->advance();
  return has_moved;
}

}  // namespace flow::boxing

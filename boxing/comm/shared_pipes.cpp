#include "boxing/comm/shared_pipes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/host_process.h"
#include "boxing/comm/shared_segment.h"
#include "core/hash.h"

namespace flow::boxing {

namespace {

// Slots are large enough that messages are checked rarely. All of them together are larger than a
// core's second-level cache and fit in the cache that the cores share: the receiver reads lines
// from there twice as fast as lines that are still modified in the sender's cache (Zen 4, 16 MiB:
// 24 GB/s with 64 slots, 9 with 16).
constexpr int64_t kSlotBytes = 32 << 10;
constexpr uint64_t kSlots = 64;
constexpr uint64_t kRequests = 64;
// Transfers of at least this length are offered: one copy by one side, where slots need two by
// both.
constexpr int64_t kOfferedBytes = 2 << 20;
// The receiver looks for messages and failures between reads of this size. They also tell a sender
// that waits that it will not have to wait long.
constexpr int64_t kReadBytes = 1 << 20;

}  // namespace

// One pipe. Its counts only grow.
struct SharedPipes::Memory {
  struct alignas(64) Count {
    std::atomic<uint64_t> value;
  };

  // A transfer in the sender's memory. There is at most one at a time.
  struct alignas(64) Offer {
    std::atomic<uint64_t> count;      // offers so far
    std::atomic<uint64_t> request;    // the number of the request that it serves, from 1
    std::atomic<uint64_t> withdrawn;  // offers that may no longer be read: this one and earlier
    std::atomic<int64_t> process;
    std::atomic<uint64_t> address;
  };

  // What the receiver has done with it.
  struct alignas(64) Answer {
    std::atomic<uint64_t> count;  // offers that the receiver has read or declined
    std::atomic<int64_t> bytes;   // how much of the offer it has read
    std::atomic<bool> is_reading;
  };

  Count filled;     // slots, by the sender
  Count emptied;    // slots, by the receiver
  Count requested;  // transfers that the receiver is ready for, by tag
  Offer offer;
  Answer answer;
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

  // The rest is sent from a copy, because the receiver was told of the transfer: it may request it,
  // counts slots, and may still have to answer an offer. `is_over`: the world has failed, and
  // nobody requests what has not started.
  void remove(const Transfer& transfer, bool is_over) {
    const auto waits = std::find(waiting_.begin(), waiting_.end(), &transfer);
    if (waits != waiting_.end()) {
      if (is_over) {
        waiting_.erase(waits);
      } else {
        *waits = keep_rest(transfer);
      }
      return;
    }
    if (current_ != &transfer) return;
    if (is_offered_) withdraw();
    if (transfer.is_done()) {
      current_ = nullptr;
      return;
    }
    current_ = keep_rest(transfer);
  }

  bool advance() {
    bool has_moved = false;
    while (current_ != nullptr || take_request()) {
      if (is_offered_) {
        if (!take_answer()) return has_moved || has_read_more();
        has_moved = true;
      }
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
      std::erase_if(rests_, [&](const Rest& rest) { return &rest.transfer == current_; });
      current_ = nullptr;
    }
    return has_moved;
  }

 private:
  // What is left of a transfer that was abandoned.
  struct Rest {
    std::vector<std::byte> bytes;
    Transfer transfer = {};
  };

  Transfer* keep_rest(const Transfer& transfer) {
    Rest& rest = rests_.emplace_back();
    rest.bytes.assign(transfer.data + transfer.moved, transfer.data + transfer.bytes);
    rest.transfer = {transfer.tag, rest.bytes.data(), transfer.bytes - transfer.moved};
    return &rest.transfer;
  }

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
    if (current_->bytes >= kOfferedBytes && is_read_) offer();
    return true;
  }

  void offer() {
    memory_.offer.request.store(num_served_, std::memory_order_relaxed);
    memory_.offer.process.store(getpid(), std::memory_order_relaxed);
    memory_.offer.address.store(reinterpret_cast<uint64_t>(current_->data),
                                std::memory_order_relaxed);
    memory_.offer.count.store(++num_offers_, std::memory_order_release);
    is_offered_ = true;
  }

  // Returns true if the receiver has read more of the offer since the last call.
  bool has_read_more() {
    const int64_t bytes = memory_.answer.bytes.load(std::memory_order_relaxed);
    return std::exchange(num_read_, bytes) != bytes;
  }

  // Returns true if the receiver has answered the offer. What it has not read goes through slots.
  bool take_answer() {
    if (memory_.answer.count.load(std::memory_order_acquire) < num_offers_) return false;
    const int64_t bytes = memory_.answer.bytes.load(std::memory_order_relaxed);
    if (bytes == 0 && !is_withdrawn_) is_read_ = false;
    current_->moved = bytes;
    is_offered_ = false;
    is_withdrawn_ = false;
    return true;
  }

  // The receiver reads no more of the offer after this. A read takes a few milliseconds at most, so
  // the limit is reached only if the receiver has been killed or stopped.
  void withdraw() {
    constexpr std::chrono::seconds kLimit(1);
    is_withdrawn_ = true;
    memory_.offer.withdrawn.store(num_offers_, std::memory_order_seq_cst);
    const auto until = std::chrono::steady_clock::now() + kLimit;
    while (memory_.answer.is_reading.load(std::memory_order_seq_cst) &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    take_answer();
  }

  Memory& memory_;
  uint64_t num_filled_ = 0;
  uint64_t num_served_ = 0;
  uint64_t num_offers_ = 0;
  int64_t num_read_ = 0;     // bytes of an offer, when it was last looked at
  bool is_offered_ = false;  // current_ has been offered and not been answered
  bool is_withdrawn_ = false;
  bool is_read_ = true;  // false once the receiver has declined an offer
  std::deque<Transfer*> waiting_;
  Transfer* current_ = nullptr;
  std::list<Rest> rests_;
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
    while (!expected_.empty()) {
      Transfer& current = *expected_.front();
      if (!read_offer(current) && !empty_slot(current)) return has_moved;
      has_moved = true;
      if (!current.is_done()) continue;
      expected_.pop_front();
      ++num_received_;
      std::erase_if(dropped_, [&](const auto& dropped) { return dropped.get() == &current; });
      --num_asked_;
      request();
    }
    return has_moved;
  }

 private:
  // Returns true if there was a slot of the transfer.
  bool empty_slot(Transfer& current) {
    if (num_emptied_ == memory_.filled.value.load(std::memory_order_acquire)) return false;
    const int64_t bytes = current.next_bytes();
    if (current.data != nullptr) {
      copy_for(current.bytes)(current.data + current.moved,
                              memory_.slots[num_emptied_ % kSlots].data(), bytes);
    }
    memory_.emptied.value.store(++num_emptied_, std::memory_order_release);
    current.moved += bytes;
    return true;
  }

  // Reads a part of the transfer from the sender's memory. Returns true if it is offered.
  bool read_offer(Transfer& current) {
    Memory::Offer& offer = memory_.offer;
    Memory::Answer& answer = memory_.answer;
    const bool is_offered = offer.count.load(std::memory_order_acquire) > num_answers_;
    // Slots of earlier transfers may still be full.
    if (!is_offered || offer.request.load(std::memory_order_relaxed) != num_received_ + 1) {
      return false;
    }
    const int64_t bytes = std::min(kReadBytes, current.bytes - current.moved);
    int64_t num_read = 0;
    answer.is_reading.store(true, std::memory_order_seq_cst);
    if (offer.withdrawn.load(std::memory_order_seq_cst) <= num_answers_) {
      const uint64_t from = offer.address.load(std::memory_order_relaxed);
      num_read = current.data == nullptr
                     ? bytes
                     : read_memory(offer.process.load(std::memory_order_relaxed),
                                   from + static_cast<uint64_t>(current.moved),
                                   current.data + current.moved, bytes);
    }
    current.moved += num_read;
    answer.bytes.store(current.moved, std::memory_order_relaxed);
    if (current.is_done() || num_read < bytes) {
      answer.count.store(++num_answers_, std::memory_order_release);
    }
    answer.is_reading.store(false, std::memory_order_seq_cst);
    return true;
  }

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
  uint64_t num_received_ = 0;  // requests
  uint64_t num_answers_ = 0;
  uint64_t num_asked_ = 0;  // how many of expected_ are requested
  std::deque<Transfer*> expected_;
  std::vector<std::unique_ptr<Transfer>> dropped_;  // abandoned transfers in expected_
};

class SharedPipes::PipeBulk final : public Bulk {
 public:
  PipeBulk(const SharedSegment& segment, Sender* sender, Receiver* receiver,
           const Transfer& transfer)
      : segment_(segment), sender_(sender), receiver_(receiver), transfer_(transfer) {
    if (sender_ != nullptr) sender_->add(transfer_);
    if (receiver_ != nullptr) receiver_->add(transfer_);
  }

  ~PipeBulk() override {
    if (transfer_.is_done()) return;
    if (sender_ != nullptr) sender_->remove(transfer_, segment_.is_alarmed());
    if (receiver_ != nullptr) receiver_->remove(transfer_);
  }

  bool is_done() override { return transfer_.is_done(); }

  bool frees_buffer() const override { return true; }

 private:
  const SharedSegment& segment_;
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
  return std::make_unique<PipeBulk>(segment_, entry->second.get(), nullptr,
                                    Transfer{tag, data, bytes});
}

std::unique_ptr<Bulk> SharedPipes::receive(int64_t rank, int32_t tag, void* target, int64_t bytes) {
  const auto [entry, is_new] = receivers_.try_emplace(rank);
  if (is_new) {
    if (Memory* memory = find(rank, rank_)) entry->second = std::make_unique<Receiver>(*memory);
  }
  if (entry->second == nullptr) return nullptr;
  auto* data = static_cast<std::byte*>(target);
  return std::make_unique<PipeBulk>(segment_, nullptr, entry->second.get(),
                                    Transfer{tag, data, bytes});
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

// Short messages between ranks of one host, through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// One rank's ends of its message rings: one to and one from each other rank of its host. Messages
// of any length arrive in the order in which they were posted. A message for which a ring has no
// room is queued in this object. Used by one thread at a time; no function blocks.
class SharedMail {
 public:
  // Rings take memory only when they are used. A host with more ranks than this has no rings.
  static constexpr int64_t kMostRanks = 16;

  SharedMail(SharedSegment& segment, const Transport& transport);
  ~SharedMail();
  SharedMail(const SharedMail&) = delete;
  SharedMail& operator=(const SharedMail&) = delete;

  // True if there are rings between this rank and the other; both sides give the same answer.
  bool reaches(int64_t rank) const { return senders_.contains(rank); }

  // True if there are rings to all ranks except this one.
  bool reaches_all() const { return reaches_all_; }

  // Posts a message of two parts; either may be empty. Requires: reaches(rank).
  void post(int64_t rank, std::span<const std::byte> head, std::span<const std::byte> body);
  // Takes the next complete message from any rank; returns false if there is none.
  bool take(int64_t& from, std::vector<std::byte>& message);
  // Moves queued messages into their rings as far as there is room. Returns true if no message is
  // queued any more.
  bool flush();

 private:
  struct Ring;
  class Sender;
  class Receiver;

  std::map<int64_t, std::unique_ptr<Sender>> senders_;
  std::map<int64_t, std::unique_ptr<Receiver>> receivers_;
  bool reaches_all_ = true;
};

}  // namespace flow::boxing

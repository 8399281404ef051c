// Short messages between ranks of one host, through memory that they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// One rank's ends of its rings, one to and one from each other rank of its host. Messages of any
// length arrive in the order in which they were posted; what a ring has no room for waits here.
// Called by one thread at a time; nothing here waits.
class SharedMail {
 public:
  // Rings take memory when they are used; beyond so many ranks on a host there are none.
  static constexpr int64_t kMostRanks = 16;

  SharedMail(SharedSegment& segment, const Transport& transport);
  ~SharedMail();
  SharedMail(const SharedMail&) = delete;
  SharedMail& operator=(const SharedMail&) = delete;

  // Whether there are rings between this rank and the other; both sides agree.
  bool reaches(int64_t rank) const { return senders_.contains(rank); }

  // All but this rank itself.
  bool reaches_all() const { return reaches_all_; }

  // A message of two parts, either may be empty. Requires: reaches(rank).
  void post(int64_t rank, std::span<const std::byte> head, std::span<const std::byte> body);
  // The next message that has come whole, from any rank; false when there is none.
  bool take(int64_t& from, std::vector<std::byte>& message);
  // Puts what waits for room into its ring, as far as there is some; whether nothing waits any
  // more.
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

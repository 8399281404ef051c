// Data of any length between two ranks of one host, through shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// One rank's ends of its pipes: one to and one from each other rank. The receiver requests data in
// the order in which it wants it. The sender fills slots, which the receiver empties; long data it
// offers, and the receiver reads it from the sender's memory, or declines if the system does not
// allow that. Used by one thread at a time; no function waits for the other rank, except that a
// transfer that is destroyed early waits for a read of it that has begun.
class SharedPipes {
 public:
  SharedPipes(SharedSegment& segment, int64_t rank);
  ~SharedPipes();
  SharedPipes(const SharedPipes&) = delete;
  SharedPipes& operator=(const SharedPipes&) = delete;

  // Like the functions of Transport, for bytes > 0. Null, on both sides, if the segment has no room
  // for the pipe.
  std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source, int64_t bytes);
  std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes);

  // Moves as much data as possible. Returns true if any was moved.
  bool advance();

 private:
  struct Memory;
  struct Transfer;
  class Sender;
  class Receiver;
  class PipeBulk;

  // Null if there is no room.
  Memory* find(int64_t from, int64_t to);

  SharedSegment& segment_;
  int64_t rank_;
  // Indexed by the other rank; values may be null.
  std::map<int64_t, std::unique_ptr<Sender>> senders_;
  std::map<int64_t, std::unique_ptr<Receiver>> receivers_;
};

}  // namespace flow::boxing

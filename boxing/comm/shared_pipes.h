// Data of any length between two ranks of one host, through memory that they share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// One rank's ends of its pipes, one to and one from each other rank. The receiver asks for data in
// the order in which it is to come; the sender fills slots, which the receiver empties. Called by
// one thread at a time; nothing here waits.
class SharedPipes {
 public:
  SharedPipes(SharedSegment& segment, int64_t rank);
  ~SharedPipes();
  SharedPipes(const SharedPipes&) = delete;
  SharedPipes& operator=(const SharedPipes&) = delete;

  // As Transport's, for bytes > 0. Null where the segment has no room for the pipe, on both sides
  // alike.
  std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source, int64_t bytes);
  std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes);

  // Moves what can be moved; whether anything was.
  bool advance();

 private:
  struct Memory;
  struct Transfer;
  class Sender;
  class Receiver;
  class PipeBulk;

  // Null where there is no room.
  Memory* find(int64_t from, int64_t to);

  SharedSegment& segment_;
  int64_t rank_;
  // By the other rank; values may be null.
  std::map<int64_t, std::unique_ptr<Sender>> senders_;
  std::map<int64_t, std::unique_ptr<Receiver>> receivers_;
};

}  // namespace flow::boxing

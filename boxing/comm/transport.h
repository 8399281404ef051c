// Transport: how the processes of one job reach each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/context.h"

namespace flow::boxing {

class SharedSegment;

// Data under way. Its buffer is free again once is_done() has returned true; dropping it before is
// only right while an error unwinds.
struct Bulk {
  virtual ~Bulk() = default;
  virtual bool is_done() = 0;
};

// Called by one thread at a time. Nothing here waits for another rank but close().
class Transport {
 public:
  virtual ~Transport() = default;

  // Of this process among those of the job.
  virtual const RankIdentity& identity() const = 0;
  virtual int64_t ranks_on_host() const = 0;

  // Short messages. They are copied and arrive in the order in which they were sent.
  virtual void post(int64_t rank, std::span<const std::byte> message) = 0;
  // The next message that has come, from any rank; false when there is none.
  virtual bool take(int64_t& from, std::vector<std::byte>& message) = 0;

  // Data of any length between known buffers. Sends and receives of one pair and tag match in
  // order. 0 < tag <= max_tag().
  virtual int32_t max_tag() const = 0;
  virtual std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source,
                                     int64_t bytes) = 0;
  virtual std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes) = 0;

  // Memory that this process shares with others of its host, which are those that `shares_with`
  // names; null where there is none.
  virtual SharedSegment* segment() const = 0;
  virtual bool shares_with(int64_t rank) const = 0;

  // Whether the connection was made here; a program that made it itself may end it at any time.
  virtual bool is_own() const = 0;
  // False once the program has ended the connection by itself (MPI_Finalize).
  virtual bool is_open() const = 0;
  // Collective over all ranks, after the last message.
  virtual void close() = 0;
};

}  // namespace flow::boxing

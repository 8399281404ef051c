// Transport: how the processes of one job communicate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "boxing/comm/host_process.h"
#include "core/context.h"

namespace flow::boxing {

class SharedSegment;

// A transfer in flight. Its buffer may be reused once is_done() has returned true. It may be
// destroyed earlier only after an error.
struct Bulk {
  virtual ~Bulk() = default;
  virtual bool is_done() = 0;

  // True if its destructor waits until the transport has done with the buffer, or copies it.
  virtual bool frees_buffer() const { return false; }
};

// Used by one thread at a time. Only close() waits for other ranks.
class Transport {
 public:
  virtual ~Transport() = default;

  // The identity of this process in the job.
  virtual const RankIdentity& identity() const = 0;
  virtual int64_t ranks_on_host() const = 0;

  // Short messages. They are copied, and arrive in the order in which they were posted.
  virtual void post(int64_t rank, std::span<const std::byte> message) = 0;
  // Takes the next message from any rank; returns false if there is none.
  virtual bool take(int64_t& from, std::vector<std::byte>& message) = 0;

  // Data of any length between known buffers. Sends and receives of the same pair and tag match in
  // order. Requires: 0 < tag <= max_tag().
  virtual int32_t max_tag() const = 0;
  virtual std::unique_ptr<Bulk> send(int64_t rank, int32_t tag, const void* source,
                                     int64_t bytes) = 0;
  virtual std::unique_ptr<Bulk> receive(int64_t rank, int32_t tag, void* target, int64_t bytes) = 0;
  // Returns true if a part of such data was found to be complete since the last call.
  virtual bool has_moved() = 0;

  // Memory that this process shares with the processes of its host for which `shares_with` is true;
  // null if there is none.
  virtual SharedSegment* segment() const = 0;
  virtual bool shares_with(int64_t rank) const = 0;

  // The process of a rank; none if it is on another host or unknown.
  virtual HostProcess process_of(int64_t /*rank*/) const { return {}; }

  // True if flow made the connection. A program that made it itself may end it at any time.
  virtual bool is_own() const = 0;
  // False once the program has ended the connection itself (MPI_Finalize).
  virtual bool is_open() const = 0;
  // Collective over all ranks; call it after the last message.
  virtual void close() = 0;
};

}  // namespace flow::boxing

// Memory that the ranks of one host share. It has no name in any file system: each rank opens the
// first rank's segment through /proc. So nothing remains after the job, and the size of /dev/shm
// does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace flow::boxing {

// Thread safe. Ranks map the segment at different addresses, so data in it must not contain
// pointers.
class SharedSegment {
 public:
  // The data with which other processes of the host find the segment.
  struct Address {
    int64_t process = 0;
    int64_t file = -1;
    uint64_t token = 0;  // also stored in the segment, to tell it from others
  };

  // Null, with the reason, if the system does not allow it.
  static std::unique_ptr<SharedSegment> create(std::string& reason);
  static std::unique_ptr<SharedSegment> open(const Address& address, std::string& reason);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // The address of a segment that this process created; valid until close().
  Address address() const;
  // Call it when every process that should open the segment has done so.
  void close();

  // The memory with the id `name`, aligned to 64 bytes and initially zero. Every rank that requests
  // the same name and size gets the same memory. If there is no room, all of them get null.
  std::byte* find(uint64_t name, int64_t bytes);

  // Tells the other ranks that a message about a failure is on its way to them.
  void raise_alarm();
  bool is_alarmed() const;

 private:
  struct Head;

  SharedSegment(std::byte* memory, int file);

  Head& head() const;
  uint64_t allocate(int64_t bytes);

  std::byte* memory_;
  int file_;
};

}  // namespace flow::boxing

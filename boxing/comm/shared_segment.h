// Memory that the ranks of one host share. It has no name in any file system: each rank opens the
// first one's through /proc, so nothing can be left behind and the size of /dev/shm does not
// matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace flow::boxing {

// Thread safe. Ranks map it at different addresses: what lies in it holds no pointers.
class SharedSegment {
 public:
  // How other processes of the host find it.
  struct Address {
    int64_t process = 0;
    int64_t file = -1;
    uint64_t token = 0;  // stands in the segment, so that no other is taken for it
  };

  // Null and the reason where the system does not allow it.
  static std::unique_ptr<SharedSegment> create(std::string& reason);
  static std::unique_ptr<SharedSegment> open(const Address& address, std::string& reason);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Of one that was created; until close().
  Address address() const;
  // When all who should have opened it.
  void close();

  // The place that goes by `name`, aligned to 64 bytes and zero at first: the same for every rank
  // that asks for as many bytes. Null where there is no room, for all of them alike.
  std::byte* find(uint64_t name, int64_t bytes);

  // Tells the other ranks that a failure is on its way to them.
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

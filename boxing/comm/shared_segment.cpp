#include "boxing/comm/shared_segment.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"

namespace flow::boxing {

namespace {

// Address space only: a page takes memory when it is first touched.
constexpr size_t kBytes = size_t{1} << 31;
constexpr const char* kName = "flow";
constexpr uint64_t kNoRoom = 1;  // never the offset of an allocation

static_assert(std::atomic<uint64_t>::is_always_lock_free);

std::string because(const char* call) {
  return str(call, ": ", std::strerror(errno));
}

std::byte* map(int file, std::string& reason) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  // A forked child that wrote to it would corrupt the messages of all ranks.
  if (memory != MAP_FAILED) madvise(memory, kBytes, MADV_DONTFORK);
  if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
  reason = because("mmap");
  return nullptr;
}

// The system ends a process that grows a file past this limit.
bool may_grow(std::string& reason) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= kBytes) return true;
  reason = "the limit on file sizes (RLIMIT_FSIZE) is too low";
  return false;
}

uint64_t random_token() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

// At the start of the segment. Memory is claimed in two steps, so that no rank waits for another:
// the name of an entry, then the offset of its memory. The first rank decides each of them.
struct SharedSegment::Head {
  struct Entry {
    std::atomic<uint64_t> name;
    std::atomic<uint64_t> place;  // offset; 0: undecided
  };

  std::atomic<uint64_t> token;
  std::atomic<uint64_t> used;
  alignas(64) std::atomic<bool> is_alarmed;
  alignas(64) std::array<Entry, 8192> entries;
};

SharedSegment::SharedSegment(std::byte* memory, int file) : memory_(memory), file_(file) {}

SharedSegment::~SharedSegment() {
  close();
  munmap(memory_, kBytes);
}

SharedSegment::Head& SharedSegment::head() const {
  return *std::launder(reinterpret_cast<Head*>(memory_));
}

std::unique_ptr<SharedSegment> SharedSegment::create(std::string& reason) {
  if (!may_grow(reason)) return nullptr;
  const int file = memfd_create(kName, MFD_CLOEXEC);
  if (file < 0) {
    reason = because("memfd_create");
    return nullptr;
  }
  std::byte* memory = nullptr;
  if (ftruncate(file, kBytes) != 0) {
    reason = because("ftruncate");
  } else {
    memory = map(file, reason);
  }
  if (memory == nullptr) {
    ::close(file);
    return nullptr;
  }
  new (memory) Head();
  std::unique_ptr<SharedSegment> made(new SharedSegment(memory, file));
  made->head().used.store(sizeof(Head));
  made->head().token.store(random_token());
  return made;
}

std::unique_ptr<SharedSegment> SharedSegment::open(const Address& address, std::string& reason) {
  const std::string name = str("/proc/", address.process, "/fd/", address.file);
  // In another process namespace this path may name any file.
  std::array<char, 64> target{};
  const ssize_t length = readlink(name.c_str(), target.data(), target.size() - 1);
  if (length < 0 || !std::string(target.data()).starts_with(str("/memfd:", kName))) {
    reason = str(name, " is not the memory of the first rank");
    return nullptr;
  }
  const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    reason = because(name.c_str());
    return nullptr;
  }
  std::byte* memory = map(file, reason);
  ::close(file);
  if (memory == nullptr) return nullptr;
  std::unique_ptr<SharedSegment> opened(new SharedSegment(memory, -1));
  if (opened->head().token.load() == address.token) return opened;
  reason = str(name, " belongs to another job");
  return nullptr;
}

SharedSegment::Address SharedSegment::address() const {
  return {.process = getpid(), .file = file_, .token = head().token.load()};
}

void SharedSegment::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

uint64_t SharedSegment::allocate(int64_t bytes) {
  const uint64_t size = (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
  if (size > kBytes) return kNoRoom;
  uint64_t begin = head().used.load();
  do {
    if (begin + size > kBytes) return kNoRoom;
  } while (!head().used.compare_exchange_weak(begin, begin + size));
  return begin;
}

std::byte* SharedSegment::find(uint64_t name, int64_t bytes) {
  auto& entries = head().entries;
  if (name == 0) name = 1;
  for (size_t i = 0; i < entries.size(); ++i) {
    Head::Entry& entry = entries[(name + i) % entries.size()];
    uint64_t owner = entry.name.load();
    if (owner == 0 && entry.name.compare_exchange_strong(owner, name)) owner = name;
    if (owner != name) continue;
    uint64_t place = entry.place.load();
    if (place == 0) {
      const uint64_t mine = allocate(bytes);  // wasted if another rank decides at the same time
      if (entry.place.compare_exchange_strong(place, mine)) place = mine;
    }
    return place == kNoRoom ? nullptr : memory_ + place;
  }
  return nullptr;
}

void SharedSegment::raise_alarm() {
  head().is_alarmed.store(true);
}

bool SharedSegment::is_alarmed() const {
  return head().is_alarmed.load(std::memory_order_relaxed);
}

}  // namespace flow::boxing

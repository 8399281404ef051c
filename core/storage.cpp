#include "core/storage.h"

#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "core/device/sanitizer.h"
#include "core/error.h"
#include "core/log.h"

namespace flow {

namespace {
// Keeps the bytes 64-byte aligned behind the header.
constexpr size_t kHeaderBytes = 64;
}  // namespace

Ref<Storage> Storage::allocate(Allocator& allocator, size_t bytes) {
  static_assert(sizeof(Storage) <= kHeaderBytes);
  void* block = allocator.allocate(kHeaderBytes + bytes);
  auto* storage = new (block) Storage(static_cast<std::byte*>(block) + kHeaderBytes, bytes);
  storage->allocator_ = &allocator;
  forbid_access(static_cast<std::byte*>(block) + sizeof(Storage), kHeaderBytes - sizeof(Storage));
  return Ref<Storage>(storage);
}

int64_t Storage::block_bytes(int64_t bytes) {
  return Allocator::block_bytes(static_cast<int64_t>(kHeaderBytes) + bytes);
}

Ref<Storage> Storage::wrap(void* data, size_t bytes, std::function<void(void*)> deleter,
                           const cuda::DeviceAllocator* device_owner) {
  auto* storage = new Storage(static_cast<std::byte*>(data), bytes);
  Ref<Storage> result(storage);
  if (deleter) storage->rare().deleter = std::move(deleter);
  if (device_owner != nullptr) storage->rare().device_owner = device_owner;
  return result;
}

Storage::~Storage() {
  const std::unique_ptr<Rare> rare(known_rare());
  if (rare != nullptr && rare->twin) rare->twin->rare().twin_of = nullptr;
}

Storage::Rare& Storage::rare() {
  Rare* known = known_rare();
  if (known != nullptr) return *known;
  auto made = std::make_unique<Rare>();
  if (rare_.compare_exchange_strong(known, made.get())) return *made.release();
  return *known;  // another thread was first
}

void Storage::bump_blocked() {
  Storage* blocked = twin_of();
  if (blocked != nullptr) ++blocked->version_;
}

const Ref<Storage>& Storage::twin() const {
  static const Ref<Storage> none;
  const Rare* rare = known_rare();
  return rare != nullptr && rare->has_twin.load(std::memory_order_acquire) ? rare->twin : none;
}

void Storage::set_twin(Ref<Storage> twin) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Rare& own = rare();
  if (own.has_twin) return;
  twin->rare().twin_of = this;
  twin->version_ = version_;
  own.twin = std::move(twin);
  own.has_twin.store(true, std::memory_order_release);
}

namespace {

// Calls the deleter of wrapped memory, which may be the user's.
void run_deleter(const std::function<void(void*)>& deleter, void* data) noexcept {
  try {
    try {
      deleter(data);
    } catch (const std::exception& error) {
      log_warning(str("[storage] a deleter of memory failed: ", error.what()));
    } catch (...) {  // the user's, of any type
      log_warning("[storage] a deleter of memory failed");
    }
  } catch (...) {  // no memory for the text: nothing more can be reported
    return;
  }
}

}  // namespace

void Storage::destroy(Storage* storage) noexcept {
  if (storage->allocator_ != nullptr) {
    Allocator* allocator = storage->allocator_;
    const size_t bytes = kHeaderBytes + storage->bytes_;
    storage->~Storage();
    allocator->deallocate(storage, bytes);
    return;
  }
  const Rare* rare = storage->known_rare();
  if (rare != nullptr && rare->deleter) run_deleter(rare->deleter, storage->data_);
  delete storage;
}

}  // namespace flow

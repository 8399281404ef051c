#include "core/storage.h"

#include <new>
#include <utility>

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
  return Ref<Storage>(storage);
}

int64_t Storage::block_bytes(int64_t bytes) {
  return Allocator::block_bytes(static_cast<int64_t>(kHeaderBytes) + bytes);
}

Ref<Storage> Storage::wrap(void* data, size_t bytes, std::function<void(void*)> deleter) {
  auto* storage = new Storage(static_cast<std::byte*>(data), bytes);
  Ref<Storage> result(storage);
  if (deleter) storage->rare().deleter = std::move(deleter);
  return result;
}

Storage::~Storage() {
  if (rare_ != nullptr && rare_->twin) rare_->twin->rare().twin_of = nullptr;
}

Storage::Rare& Storage::rare() {
  if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
  return *rare_;
}

void Storage::bump_blocked() {
  if (rare_->twin_of != nullptr) ++rare_->twin_of->version_;
}

const Ref<Storage>& Storage::twin() const {
  static const Ref<Storage> none;
  return rare_ == nullptr ? none : rare_->twin;
}

void Storage::set_twin(Ref<Storage> twin) {
  twin->rare().twin_of = this;
  twin->version_ = version_;
  rare().twin = std::move(twin);
}

void Storage::destroy(Storage* storage) noexcept {
  if (storage->allocator_ != nullptr) {
    Allocator* allocator = storage->allocator_;
    const size_t bytes = kHeaderBytes + storage->bytes_;
    storage->~Storage();
    allocator->deallocate(storage, bytes);
    return;
  }
  if (storage->rare_ != nullptr && storage->rare_->deleter) {
    storage->rare_->deleter(storage->data_);
  }
  delete storage;
}

}  // namespace flow

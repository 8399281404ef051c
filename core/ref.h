// Intrusive reference counting for the few kinds of objects that users copy handles of: tensors,
// storages, autograd nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace flow {

// The base of a reference-counted object. `Derived` may have a virtual destructor. Counting is
// thread safe.
template <class Derived>
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  void release() const noexcept {
    // A sole owner needs no locked instruction: no other thread can add an owner.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Derived::destroy(const_cast<Derived*>(static_cast<const Derived*>(this)));
    }
  }

  uint32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

  static void destroy(Derived* object) noexcept { delete object; }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// An owning pointer to a RefCounted object; it may be null.
template <class T>
class Ref {
 public:
  constexpr Ref() noexcept = default;

  constexpr Ref(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)

  explicit Ref(T* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->retain();
  }

  Ref(const Ref& other) noexcept : Ref(other.object_) {}

  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other)
  noexcept : Ref(other.get()) {}

  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): copy and swap
  Ref& operator=(const Ref& other) noexcept {
    Ref(other).swap(*this);
    return *this;
  }

  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }

  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }

  T* get() const noexcept { return object_; }

  T* operator->() const noexcept { return object_; }

  T& operator*() const noexcept { return *object_; }

  explicit operator bool() const noexcept { return object_ != nullptr; }

  bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace flow

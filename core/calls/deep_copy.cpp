#include "core/calls/deep_copy.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace flow {

namespace {
bool comes_before(const TensorImpl* a, const TensorImpl* b) {
  return std::less<>()(a, b);
}
}  // namespace

DeepCopy::DeepCopy(Pairs pairs) : pairs_(std::move(pairs)) {
  FLOW_ASSERT(current_ == nullptr, "deep copies nest");
  std::sort(pairs_.begin(), pairs_.end(), [](const auto& a, const auto& b) {
    return comes_before(a.first.get(), b.first.get());
  });
  current_ = this;
}

DeepCopy::~DeepCopy() {
  current_ = nullptr;
}

const Ref<TensorImpl>& DeepCopy::of(const Ref<TensorImpl>& tensor) noexcept {
  const Pairs& pairs = current_->pairs_;
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), tensor.get(),
                                      [](const auto& pair, const TensorImpl* wanted) {
                                        return comes_before(pair.first.get(), wanted);
                                      });
  return found != pairs.end() && found->first == tensor ? found->second : tensor;
}

}  // namespace flow

#include "autograd/saved_tensor.h"

#include "autograd/current_version.h"
#include "autograd/recompute_region.h"
#include "core/error.h"
#include "core/view_link.h"

namespace flow::autograd {

SavedTensor::SavedTensor(const Tensor& tensor) {
  if (!tensor.defined()) return;
  const TensorImpl& impl = tensor.impl();
  meta_ = impl.meta;
  // A leaf stays alive in any case, and its version must be checked against that of the first run.
  if (active_region != nullptr && (impl.grad_fn || !impl.requires_grad)) [[unlikely]] {
    offset_ = static_cast<int64_t>(active_region->add(tensor));
    if (!active_region->is_filling()) region_ = Ref<RecomputeRegion>(active_region);
    return;
  }
  version_ = current_version(tensor);
  if (impl.trace != nullptr) [[unlikely]] {
    traced_ = impl.alias();
  } else {
    storage_ = impl.storage;
    offset_ = impl.offset;
  }
}

SavedTensor::SavedTensor() = default;
SavedTensor::SavedTensor(SavedTensor&&) noexcept = default;
SavedTensor& SavedTensor::operator=(SavedTensor&&) noexcept = default;
SavedTensor::~SavedTensor() = default;

Tensor SavedTensor::unpack(const Node& owner, const char* kind, int position, Node* history,
                           uint32_t index) const {
  if (meta_ == nullptr) return {};
  if (region_ && !is_overwritten_) {
    const SavedTensor& value = region_->value(static_cast<size_t>(offset_), owner);
    if (value.meta_ != meta_) {
      throw InvalidArgument(
          str("[recompute] the function computed ", *value.meta_, " in the second run and ", *meta_,
              " in the first; it must depend on its inputs and random draws only"));
    }
    return value.unpack(owner, kind, position, history, index);
  }
  Tensor tensor = traced_ ? Tensor(traced_->alias()) : Tensor::make(meta_, storage_, offset_);
  const uint32_t version = traced_ || storage_ ? current_version(tensor) : version_;
  if (is_overwritten_ || version != version_) throw_overwritten(owner, kind, position, version);
  // A use of the tensor would bring it up to date with its base.
  if (has_view_links() && is_outdated_view(tensor))
    throw_overwritten(owner, kind, position, version_ + 1);
  if (history != nullptr) {
    TensorImpl& impl = tensor.impl();
    impl.requires_grad = true;
    impl.grad_fn = Ref<GradNode>(history);
    impl.output_index = index;
  }
  return tensor;
}

void SavedTensor::throw_overwritten(const Node& owner, const char* kind, int position,
                                    uint32_t version) const {
  const std::string writes =
      is_overwritten_ ? "by the op itself" : str(version - version_, " time(s) after it was saved");
  throw InvalidArgument(str("[", owner.name(), "] the gradient needs ", kind, " ", position, ", ",
                            *meta_, ", which was written in place ", writes,
                            "; clone() the tensor before the in-place op, or use the form without "
                            "underscore"));
}

void SavedTensor::reset() {
  storage_ = nullptr;
  traced_ = nullptr;
  if (region_) region_->drop(static_cast<size_t>(offset_));
  region_ = nullptr;
}

}  // namespace flow::autograd

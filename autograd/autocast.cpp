#include "autograd/autocast.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/current_version.h"
#include "core/calls/autocast_scope.h"
#include "core/dispatch.h"
#include "ops/elementwise/cast.h"

namespace flow {

namespace autograd {

// Casts of leaves that require grad. A tensor that is used twice is cast once, so its gradient is
// summed before it is cast back.
struct CastCache {
  struct Entry {
    Tensor source;  // keeps the address in the key in use
    // The data and the version of the tensor when it was cast.
    MetaPtr meta;
    Ref<Storage> storage;
    int64_t offset;
    uint32_t version;
    Tensor result;

    bool is_of(const Tensor& tensor) const {
      const TensorImpl& impl = tensor.impl();
      return result.defined() && meta == impl.meta && storage == impl.storage &&
             offset == impl.offset && version == autograd::current_version(tensor);
    }
  };

  // The key: tensor, dtype, and whether the cast was recorded.
  std::map<std::tuple<const TensorImpl*, DType, bool>, Entry> entries;
};

namespace {

constinit thread_local CastCache* cast_cache = nullptr;

Tensor cast_to(const TensorArg& x, DType dtype) {
  const TensorImpl& impl = x->impl();
  if (cast_cache == nullptr || !impl.requires_grad || impl.grad_fn) return cast(x, dtype);
  CastCache::Entry& entry = cast_cache->entries[{&impl, dtype, thread_state().grad_enabled}];
  if (!entry.is_of(x)) {
    entry = {x.tensor(),    impl.meta, impl.storage, impl.offset, autograd::current_version(x),
             cast(x, dtype)};
  }
  return entry.result;
}

class DTypeAutocaster final : public Autocaster {
 public:
  explicit constexpr DTypeAutocaster(DType dtype) : dtype_(dtype) {}

  void run(Call& call, Tensor* outputs) const override;
  Tensor cast(const TensorArg& x, AutocastRule rule) const override;

  DType dtype() const override { return dtype_; }

 private:
  // The dtype to which an input of dtype `own` is cast; `widest` is the widest dtype of all inputs.
  DType target(AutocastRule rule, DType own, DType widest) const {
    if (!is_floating(own) || widest == DType::kFloat64) return own;
    switch (rule) {
      case AutocastRule::kNone:
        return own;
      case AutocastRule::kLower:
        return dtype_;
      case AutocastRule::kFloat32:
        return DType::kFloat32;
      case AutocastRule::kWidest:
        return widest;
    }
    return own;
  }

  DType dtype_;
};

// The op itself, and the public ops into which it decomposes, run without autocast.
void DTypeAutocaster::run(Call& call, Tensor* outputs) const {
  const AutocastScope as_given(nullptr);
  if ((call.mutates | call.op.mutates) != 0) {
    dispatch(call, outputs);
    return;
  }
  std::optional<DType> widest;
  for (const Tensor* input : call.inputs) {
    if (!input->defined() || !is_floating(input->dtype())) continue;
    widest = widest ? promote(*widest, input->dtype()) : input->dtype();
  }
  std::vector<Tensor> cast_inputs(call.inputs.size());
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!widest || !inputs[i]->defined()) continue;
    const DType own = inputs[i]->dtype();
    const DType wanted = target(call.op.autocast, own, *widest);
    if (wanted == own) continue;
    cast_inputs[i] = cast_to({*inputs[i], call.site}, wanted);
    inputs[i] = &cast_inputs[i];
  }
  Call on_cast{call.op, inputs, call.attrs, call.site};
  dispatch(on_cast, outputs);
}

Tensor DTypeAutocaster::cast(const TensorArg& x, AutocastRule rule) const {
  const DType own = x->dtype();
  const DType wanted = target(rule, own, own);
  return wanted == own ? x.tensor() : cast_to(x, wanted);
}

const Autocaster& autocaster_of(DType dtype) {
  static const DTypeAutocaster to_bfloat16(DType::kBFloat16), to_float16(DType::kFloat16);
  return dtype == DType::kBFloat16 ? to_bfloat16 : to_float16;
}

}  // namespace

void drop_cached_casts() {
  if (cast_cache != nullptr) cast_cache->entries.clear();
}

}  // namespace autograd

using autograd::cast_cache;

AutocastGuard::AutocastGuard(DType dtype, const AutocastOptions& options, Site site)
    : outer_(thread_state().autocast), outer_cache_(cast_cache) {
  if (!is_half(dtype)) {
    throw InvalidArgument(str("[autocast] ", dtype,
                              " is not a dtype for mixed precision; give bfloat16 or "
                              "float16"),
                          user_site(site));
  }
  thread_state().autocast = options.enabled ? &autograd::autocaster_of(dtype) : nullptr;
  if (!options.cache_enabled) {
    cast_cache = nullptr;
  } else if (cast_cache == nullptr) {
    own_cache_ = std::make_unique<autograd::CastCache>();
    cast_cache = own_cache_.get();
  }
}

AutocastGuard::~AutocastGuard() {
  thread_state().autocast = outer_;
  cast_cache = outer_cache_;
}

bool is_autocast_enabled() {
  return thread_state().autocast != nullptr;
}

DType autocast_dtype() {
  const Autocaster* active = thread_state().autocast;
  return active == nullptr ? DType::kFloat32 : active->dtype();
}

}  // namespace flow

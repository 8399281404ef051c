// What a Tensor handle refers to. For the library's own folders; users see core/tensor.h.
#pragma once

#include <memory>

#include "core/ref.h"
#include "core/storage.h"
#include "core/tensor_meta.h"

namespace flow {

struct TensorImpl;

// Base of autograd's nodes: what a tensor's history hangs on.
class GradNode : public RefCounted<GradNode> {
 public:
  virtual ~GradNode() = default;

  // Called when the last reference goes; a node frees itself.
  virtual void dispose() noexcept = 0;

  static void destroy(GradNode* node) noexcept { node->dispose(); }

  // Of the op or function that was recorded.
  virtual const char* name() const = 0;
};

// Base of what autograd keeps beside a tensor (its gradient, hooks); defined in autograd.
struct AutogradSlot {
  virtual ~AutogradSlot() = default;
  // The tensor that this one is a view of, where gradients flow through the view; else null. Kept
  // alive by the slot.
  TensorImpl* base = nullptr;
};

// Base of what a tracer keeps beside a tensor whose value exists only when the plan runs. Shared by
// the aliases of a tensor, as storage is; defined in graph.
struct TraceSlot {
  virtual ~TraceSlot() = default;
  uint32_t version = 0;
};

// Invariants: meta is never null. storage is null on ranks that hold no part and for traced
// values. Shared by copies of a handle; not thread safe beyond counting.
struct TensorImpl final : RefCounted<TensorImpl> {
  TensorImpl(MetaPtr m, Ref<Storage> s, int64_t o) : meta(m), storage(std::move(s)), offset(o) {}

  // Start of this rank's part. Requires: storage.
  std::byte* data() const {
    return storage->data() + offset * static_cast<int64_t>(dtype_size(meta->dtype));
  }

  // Counts in-place writes through any alias.
  uint32_t version() const {
    return storage ? storage->version() : trace != nullptr ? trace->version : 0;
  }

  // Whether gradients flow into this tensor, be it through the tensor it is a view of.
  bool tracks_grad() const {
    return requires_grad ||
           (autograd != nullptr && autograd->base != nullptr && autograd->base->requires_grad);
  }

  // The same data under a handle of its own, without history: what detach() gives.
  Ref<TensorImpl> alias() const {
    auto result = make_ref<TensorImpl>(meta, storage, offset);
    result->trace = trace;
    return result;
  }

  MetaPtr meta;
  Ref<Storage> storage;
  int64_t offset;  // in elements
  bool requires_grad = false;
  // A view made while nothing was recorded: gradients cannot flow back through writes to it.
  bool is_untracked_view = false;
  uint8_t output_index = 0;  // which output of grad_fn this is
  Ref<GradNode> grad_fn;
  std::unique_ptr<AutogradSlot> autograd;
  std::shared_ptr<TraceSlot> trace;
};

}  // namespace flow

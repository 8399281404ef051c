// The object that a Tensor handle refers to. For the library only; users include core/tensor.h.
#pragma once

#include <memory>

#include "core/ref.h"
#include "core/storage.h"
#include "core/tensor_meta.h"

namespace flow {

struct TensorImpl;

// The base of autograd's nodes. A tensor refers to the node that computed it.
class GradNode : public RefCounted<GradNode> {
 public:
  virtual ~GradNode() = default;

  // Called when the last reference is released; the node must free itself.
  virtual void dispose() noexcept = 0;

  static void destroy(GradNode* node) noexcept { node->dispose(); }

  // The name of the recorded op or function.
  virtual const char* name() const = 0;
};

// The base of the data that autograd stores with a tensor (its gradient, its hooks); defined in
// autograd.
struct AutogradSlot {
  virtual ~AutogradSlot() = default;
  // The tensor that this one is a view of, if gradients flow through the view; else null. The slot
  // keeps it alive.
  TensorImpl* base = nullptr;
};

// The base of the data that a tracer stores with a tensor whose value exists only when the program
// runs. All aliases of a tensor share it, as they share the storage. Defined in graph.
struct TraceSlot {
  virtual ~TraceSlot() = default;
  uint32_t version = 0;
  std::shared_ptr<ViewLink> view_link;  // null unless the value is that of a view
};

// Invariants: meta is never null. storage is null on ranks that hold no part, and for traced
// values. All copies of a handle share one TensorImpl. Not thread safe, except for reference
// counting.
struct TensorImpl final : RefCounted<TensorImpl> {
  TensorImpl(MetaPtr m, Ref<Storage> s, int64_t o) : meta(m), storage(std::move(s)), offset(o) {}

  // The start of this rank's part. Requires: storage is not null.
  std::byte* data() const {
    return storage->data() + offset * static_cast<int64_t>(dtype_size(meta->dtype));
  }

  // The number of in-place writes through any alias.
  uint32_t version() const {
    return storage ? storage->version() : trace != nullptr ? trace->version : 0;
  }

  // True if gradients flow into this tensor directly, or because the tensor that it is a view of
  // was written while gradients were recorded. A view that was made before requires_grad_() of its
  // base is a constant.
  bool tracks_grad() const {
    return requires_grad || (autograd != nullptr && autograd->base != nullptr &&
                             autograd->base->requires_grad && autograd->base->grad_fn);
  }

  // Returns a second tensor that shares the data but has no autograd history; detach() uses it.
  Ref<TensorImpl> alias() const {
    auto result = make_ref<TensorImpl>(meta, storage, offset);
    result->trace = trace;
    return result;
  }

  MetaPtr meta;
  Ref<Storage> storage;
  int64_t offset;  // in elements
  bool requires_grad = false;
  // True for a view made while nothing was recorded: gradients cannot flow back through writes to
  // it.
  bool is_untracked_view = false;
  // True for the view that a link (core/view_link.h) was made for, false for tensors that share its
  // memory.
  bool is_linked_view = false;
  uint32_t output_index = 0;  // which output of grad_fn this is
  Ref<GradNode> grad_fn;
  std::unique_ptr<AutogradSlot> autograd;
  std::shared_ptr<TraceSlot> trace;
};

}  // namespace flow

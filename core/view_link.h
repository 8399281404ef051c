// Views that share no memory with the tensor that they show. A view of a global tensor may have a
// layout of its own (a slice of a dim that is split over ranks), and values of a trace have no
// memory at all. A link ties such a view to its base, so that it behaves as any view does: a write
// to the view is written back into the base, and the view follows writes to the base.
//
// dispatch() does both: it brings linked inputs up to date before a call and writes them back after
// a call that has written them. Links are chained: the base of a link may be a linked view itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dispatch.h"
#include "core/tensor.h"

namespace flow {

namespace internal {
inline std::atomic<int64_t> num_view_links{0};
}  // namespace internal

// Belongs to the memory of the view (Storage, or TraceSlot in a trace), so that all tensors that
// share this memory are linked.
struct ViewLink {
  ViewLink(const Call& call, const Tensor& view);
  ~ViewLink();
  ViewLink(const ViewLink&) = delete;
  ViewLink& operator=(const ViewLink&) = delete;

  const void* raw_attrs() const { return attrs.empty() ? nullptr : attrs.data(); }

  Tensor base;
  MetaPtr base_meta;      // when the view was made, without a blocked layout
  uint32_t base_version;  // when base and view were last equal
  MetaPtr meta;           // of the view
  int64_t offset;         // of the view in its storage, in elements
  const OpDef* op;        // view = op(base, attrs)
  std::vector<std::byte> attrs;
  Site site;
  bool is_updating = false;  // base or view is being written to make them equal
  // The memory of the view is that of the base and its history is not yet: the view was written, or
  // brought up to date for a tensor without history that shares its memory.
  bool has_old_history = false;
};

// Returns whether any linked view exists in this process. If not, calls need not look for them.
inline bool has_view_links() {
  return internal::num_view_links.load(std::memory_order_relaxed) != 0;
}

// The link of the memory of a tensor; null for nearly all tensors.
ViewLink* find_view_link(const TensorImpl& tensor);

// Links `view`, the output of `call`, which shares no memory with input 0.
void link_view(const Call& call, const Tensor& view);

// Returns whether the base of a linked view was written since, so that its memory is out of date.
bool is_outdated_view(const Tensor& tensor);

// Brings a linked view up to date; does nothing to other tensors, and nothing to views from outside
// while a trace runs. While gradients are recorded, a view that was written gets the history of a
// view of the written base. Collective over the placement if there is something to do. Throws
// InvalidArgument if the view is out of date and the base has changed its shape in place.
void refresh_view(const Tensor& tensor);

// Throws Unsupported if `call` writes to a linked view that cannot be written back, and
// InvalidArgument if the base of the view has changed its shape in place.
void check_linked_writes(const Call& call);

// Writes the linked views that `call` has written back into their bases. The bases get the history
// of the write, unless the written tensor was detached from the view's.
void write_back_views(const Call& call);

}  // namespace flow

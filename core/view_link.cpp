#include "core/view_link.h"

#include <bit>
#include <utility>

#include "core/grad_mode.h"
#include "core/op.h"

namespace flow {

namespace {

// Marks a link as being updated for a scope.
class UpdateScope {
 public:
  explicit UpdateScope(ViewLink& link) : link_(link) { link_.is_updating = true; }

  ~UpdateScope() { link_.is_updating = false; }

  UpdateScope(const UpdateScope&) = delete;
  UpdateScope& operator=(const UpdateScope&) = delete;

 private:
  ViewLink& link_;
};

// The linked view itself, which has the history, if `tensor` is it or is recorded as a view of it.
// Undefined for a tensor that only shares the memory, such as detach() returns.
Tensor recorded_view(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (impl.is_linked_view) return tensor;
  if (impl.autograd == nullptr || impl.autograd->base == nullptr) return {};
  TensorImpl& base = *impl.autograd->base;
  return base.is_linked_view ? Tensor(Ref<TensorImpl>(&base)) : Tensor();
}

bool is_whole(const ViewLink& link, const TensorImpl& tensor) {
  return tensor.meta == link.meta && tensor.offset == link.offset;
}

// The whole view, without history, as the memory of `tensor` shows it.
Tensor whole_view(const ViewLink& link, const Tensor& tensor) {
  Tensor whole(tensor.impl().alias());
  whole.impl().meta = link.meta;
  whole.impl().offset = link.offset;
  return whole;
}

// The meta without the blocked layout, which a write to the tensor ends.
MetaPtr strided_meta(const Tensor& tensor) {
  const MetaPtr meta = tensor.meta_ptr();
  return meta->blocked == nullptr ? meta : with_blocked(meta, nullptr);
}

void check_base(const ViewLink& link) {
  if (strided_meta(link.base) == link.base_meta) return;
  throw InvalidArgument(str("[view] the base of this view changed its shape in place: it was ",
                            *link.base_meta, " and is now ", link.base.meta(),
                            "; make the view after calls such as squeeze_ and transpose_"),
                        user_site(link.site));
}

// The number of writes to the base of `view`. What a trace writes to a tensor from outside does not
// concern views from outside.
uint32_t base_version_of(const Tensor& view, const Tensor& base) {
  if (view.impl().storage) return base.impl().version();
  return thread_state().interpreter->version_of(base);
}

// Calls `visit` with each written input that is linked, and its link.
template <class Visit>
void for_linked_writes(const Call& call, const Visit& visit) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const Tensor& written = call.input(static_cast<size_t>(std::countr_zero(left)));
    if (!written.defined()) continue;
    ViewLink* link = find_view_link(written.impl());
    if (link != nullptr && !link->is_updating) visit(written, *link);
  }
}

}  // namespace

ViewLink::ViewLink(const Call& call, const Tensor& view)
    : base(call.input(0)),
      base_meta(strided_meta(base)),
      base_version(base_version_of(view, base)),
      meta(view.meta_ptr()),
      offset(view.impl().offset),
      op(&call.op),
      attrs(call.copy_attrs()),
      site(call.site) {
  internal::num_view_links.fetch_add(1, std::memory_order_relaxed);
}

ViewLink::~ViewLink() {
  internal::num_view_links.fetch_sub(1, std::memory_order_relaxed);
}

ViewLink* find_view_link(const TensorImpl& tensor) {
  if (tensor.storage) return tensor.storage->view_link();
  return tensor.trace != nullptr ? tensor.trace->view_link.get() : nullptr;
}

void link_view(const Call& call, const Tensor& view) {
  TensorImpl& impl = view.impl();
  auto link = std::make_shared<ViewLink>(call, view);
  if (impl.storage) {
    impl.storage->set_view_link(std::move(link));
  } else {
    impl.trace->view_link = std::move(link);
  }
  impl.is_linked_view = true;
}

bool is_outdated_view(const Tensor& tensor) {
  const ViewLink* link = find_view_link(tensor.impl());
  return link != nullptr && (base_version_of(tensor, link->base) != link->base_version ||
                             is_outdated_view(link->base));
}

void refresh_view(const Tensor& tensor) {
  ViewLink* link = find_view_link(tensor.impl());
  if (link == nullptr || link->is_updating) return;
  const ThreadState& state = thread_state();
  if (state.trace != nullptr && tensor.impl().storage) return;  // the trace refuses this view
  refresh_view(link->base);
  const bool is_outdated = base_version_of(tensor, link->base) != link->base_version;
  const Tensor recorded = recorded_view(tensor);
  const bool takes_history = recorded.defined() && link->has_old_history && is_grad_enabled() &&
                             strided_meta(link->base) == link->base_meta;
  if (!is_outdated && !takes_history) return;
  check_base(*link);
  const UpdateScope scope(*link);
  const GradModeGuard mode(recorded.defined() && link->base.requires_grad());
  const Tensor* base = &link->base;
  const Tensor fresh = dispatch_raw(*link->op, {&base, 1}, link->raw_attrs(), link->site);
  if (is_outdated) state.interpreter->replace(whole_view(*link, tensor), fresh);
  if (recorded.defined()) state.recorder->take_history(recorded, fresh);
  link->has_old_history = !recorded.defined();
  link->base_version = base_version_of(tensor, link->base);
}

void check_linked_writes(const Call& call) {
  for_linked_writes(call, [&](const Tensor& written, const ViewLink& link) {
    for (const ViewLink* next = &link; next != nullptr; next = find_view_link(next->base.impl())) {
      check_base(*next);
      if (next->op->write_back != &cannot_write_back) continue;
      throw Unsupported(str("[", in_place_name(call.op), "] a write to ", written.meta(),
                            " cannot be written back into the tensor of which ", next->op->name,
                            " made this view; clone() the view first, or write to that tensor"),
                        user_site(call.site));
    }
  });
}

void write_back_views(const Call& call) {
  for_linked_writes(call, [&](const Tensor& written, ViewLink& link) {
    const UpdateScope scope(link);
    const Tensor recorded = recorded_view(written);
    const GradModeGuard mode(is_grad_enabled() && recorded.defined());
    const bool is_recorded_whole = recorded.defined() && is_whole(link, recorded.impl());
    link.op->write_back(link.base, is_recorded_whole ? recorded : whole_view(link, written),
                        link.raw_attrs(), call.site);
    link.base_version = base_version_of(written, link.base);
    link.has_old_history |= is_grad_enabled() && link.base.requires_grad();
  });
}

}  // namespace flow

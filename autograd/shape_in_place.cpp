#include "autograd/shape_in_place.h"

#include "autograd/tensor_autograd.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/view_link.h"
#include "ops/named_errors.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// Lets a link of `view` to `x` refer to what x is now, before x becomes the view.
void keep_base(const Tensor& view, const TensorImpl& x) {
  ViewLink* link = find_view_link(view.impl());
  if (link == nullptr || &link->base.impl() != &x) return;
  const Ref<TensorImpl> before = x.alias();
  before->requires_grad = x.requires_grad;
  before->output_index = x.output_index;
  before->grad_fn = x.grad_fn;
  before->is_linked_view = x.is_linked_view;
  before->is_untracked_view = x.is_untracked_view;
  link->base = Tensor(before);
}

// Gives the handle the strides and history of `view`, which is a view of it. Views of the handle
// that were made earlier keep theirs.
const Tensor& become(const TensorArg& x, const Tensor& view, const char* name) {
  const Tensor& self = x;
  TensorImpl& impl = self.impl();
  TensorImpl& source = view.impl();
  if (impl.storage != source.storage) {
    throw InvalidArgument(str("[", name, "] ", *impl.meta, " cannot become ", *source.meta,
                              " in the same memory; use the form without underscore"),
                          x.site());
  }
  autograd::TensorAutograd* slot = autograd::find_autograd(impl);
  const bool is_view = slot != nullptr && slot->base != nullptr;
  const TensorImpl& owner = is_view ? *slot->base : impl;
  if (is_grad_enabled() ? owner.requires_grad && !owner.grad_fn
                        : impl.tracks_grad() && impl.grad_fn) {
    throw InvalidArgument(
        str("[", name, "] ",
            is_grad_enabled()
                ? "a leaf that requires grad, or a view of one, changes its shape in place"
                : "a recorded tensor changes its shape while nothing is recorded",
            ": ", *impl.meta, "; use the form without underscore"),
        x.site());
  }
  keep_base(view, impl);
  impl.meta = source.meta;
  // Earlier views of the handle find out by its version that it was written.
  if (impl.trace != nullptr && source.trace != nullptr) source.trace->version = impl.trace->version;
  impl.trace = source.trace;
  if (source.is_linked_view) {
    impl.is_linked_view = true;
  } else if (impl.is_linked_view) {  // the link's view has another shape now
    impl.is_linked_view = false;
    impl.is_untracked_view = true;
  }
  if (source.grad_fn) {
    const Ref<autograd::Node> node(static_cast<autograd::Node*>(source.grad_fn.get()));
    autograd::set_history(impl, node, source.output_index);
  }
  if (is_view) {
    if (const autograd::TensorAutograd* next = autograd::find_autograd(source);
        next != nullptr && next->base != nullptr) {
      slot->steps = next->steps;
      slot->base_history = next->base_history;
    } else {
      slot->base = nullptr;
      slot->base_owner = nullptr;
      slot->steps = nullptr;
      impl.is_untracked_view = true;
    }
  }
  return x;
}

// Turns x into the view of it that view() returns.
template <class View>
const Tensor& turn_into(const char* name, const TensorArg& x, const View& view) {
  return ops::named(name, x.site(), [&]() -> const Tensor& {
    x->make_strided();
    return become(x, view(), name);
  });
}

}  // namespace

const Tensor& squeeze_(const TensorArg& x) {
  return turn_into("squeeze_", x, [&] { return squeeze(x); });
}

const Tensor& squeeze_(const TensorArg& x, int64_t dim) {
  return turn_into("squeeze_", x, [&] { return squeeze(x, dim); });
}

const Tensor& unsqueeze_(const TensorArg& x, int64_t dim) {
  return turn_into("unsqueeze_", x, [&] { return unsqueeze(x, dim); });
}

const Tensor& transpose_(const TensorArg& x, int64_t dim0, int64_t dim1) {
  return turn_into("transpose_", x, [&] { return transpose(x, dim0, dim1); });
}

const Tensor& t_(const TensorArg& x) {
  return turn_into("t_", x, [&] { return t(x); });
}

const Tensor& InPlaceMethods::squeeze_(Site site) const {
  flow::squeeze_(TensorArg(self(), site));
  return self();
}

const Tensor& InPlaceMethods::squeeze_(int64_t dim, Site site) const {
  flow::squeeze_(TensorArg(self(), site), dim);
  return self();
}

const Tensor& InPlaceMethods::unsqueeze_(int64_t dim, Site site) const {
  flow::unsqueeze_(TensorArg(self(), site), dim);
  return self();
}

const Tensor& InPlaceMethods::transpose_(int64_t dim0, int64_t dim1, Site site) const {
  flow::transpose_(TensorArg(self(), site), dim0, dim1);
  return self();
}

const Tensor& InPlaceMethods::t_(Site site) const {
  flow::t_(TensorArg(self(), site));
  return self();
}

}  // namespace flow

// Methods that control differentiation. They are defined in autograd.
#pragma once

#include <cstdint>
#include <functional>

#include "core/methods/method_family.h"
#include "core/site.h"

namespace flow {

class Tensor;
class TensorArg;
struct BackwardOptions;

class AutogradMethods : public MethodFamily<AutogradMethods> {
 public:
  const Tensor& requires_grad_(bool requires_grad = true, Site site = Site::here()) const;
  // The accumulated gradient; undefined when there is none.
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  // Keeps the gradient of a non-leaf in grad() at the next backward.
  void retain_grad() const;
  // Called with the gradient of this tensor during backward; a defined result replaces it.
  // Returns a number for remove_hook. A hook that holds this tensor, or one computed from it, keeps
  // it alive until the hook is removed; let it hold detach() instead.
  int64_t register_hook(std::function<Tensor(const Tensor&)> hook) const;
  void remove_hook(int64_t handle) const;
  // Shares the storage and records nothing.
  Tensor detach() const;
  // Takes value, placement and layout of `other`. The handle and its grad stay.
  void set_data(const Tensor& other) const;
  void backward(Site site = Site::here()) const;
  void backward(const BackwardOptions& options, Site site = Site::here()) const;
  void backward(const TensorArg& gradient) const;
  void backward(const TensorArg& gradient, const BackwardOptions& options) const;
};

}  // namespace flow

// Compares gradient rules with numeric differences.
#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct GradcheckOptions {
  double eps = 1e-6;  // step of the central difference
  double atol = 1e-5;
  double rtol = 1e-3;
  bool raise_exception = true;  // false: return false instead
};

// The function to check: it takes a list of tensors and returns a tensor or a list of tensors.
class GradcheckFunction {
 public:
  template <class Fn>

  requires(!std::is_same_v<std::decay_t<Fn>, GradcheckFunction>)
      // NOLINTNEXTLINE(google-explicit-constructor): a lambda is a function
      GradcheckFunction(Fn fn)
      : call_([fn = std::move(fn)](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
          if constexpr (std::is_same_v<std::invoke_result_t<const Fn&, const std::vector<Tensor>&>,
                                       Tensor>) {
            return {fn(inputs)};
          } else {
            return fn(inputs);
          }
        }) {}

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return call_(inputs); }

 private:
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> call_;
};

// Returns true if the gradients of all floating outputs with respect to all inputs that require
// grad agree with central differences: |numeric - rule| <= atol + rtol |numeric|. Those inputs must
// be local float64 tensors without overlapping elements; they are changed in place and restored.
// `fn` must be deterministic. Throws InvalidArgument that names the first wrong entry.
//   flow::gradcheck([](const auto& in) { return flow::sigmoid(in[0]); }, {x});
bool gradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs,
               const GradcheckOptions& options = {});

// Applies gradcheck to the gradients themselves, as functions of the inputs and of the outputs'
// gradients (`grad_outputs`, or generated values if that list is empty).
bool gradgradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& grad_outputs = {},
                   const GradcheckOptions& options = {});

}  // namespace flow

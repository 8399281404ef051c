// Derivatives of functions of tensors (torch.autograd.functional, torch.func): products with the
// Jacobian, whole Jacobians and Hessians, and functions mapped over a dim. A function may read
// other tensors, such as parameters; its derivative with respect to these is not taken. It must not
// change its inputs in place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

using TensorFunction = std::function<Tensor(const Tensor&)>;
using TensorsFunction = std::function<Tensor(const std::vector<Tensor>&)>;

struct FunctionalOptions {
  // Records the computation, so that the results can be differentiated again.
  bool create_graph = false;
};

// Returns f(x) and the gradient of sum(v f(x)) with respect to x: the product of v and the
// Jacobian. v has the shape of f(x); it may be left out if that has one element. An input that f
// does not use has a gradient of zeros.
std::pair<Tensor, Tensor> vjp(const TensorFunction& f, const Tensor& x, const Tensor& v = {},
                              const FunctionalOptions& options = {});
std::pair<Tensor, std::vector<Tensor>> vjp(const TensorsFunction& f,
                                           const std::vector<Tensor>& inputs, const Tensor& v = {},
                                           const FunctionalOptions& options = {});

// Returns f(x) and the derivative of f at x in the direction v, of the shape of f(x): the product
// of the Jacobian and v, which has the shape of x. It runs backward twice (Townsend 2017), so the
// ops of f need second derivatives.
std::pair<Tensor, Tensor> jvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const FunctionalOptions& options = {});
std::pair<Tensor, Tensor> jvp(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& v, const FunctionalOptions& options = {});

// The derivative of each element of f(x) with respect to each element of x, of the shape f(x).shape
// + x.shape. Runs backward once for each element of f(x).
//   jacobian([](const auto& x) { return flow::square(x); }, x (3)): (3, 3)
Tensor jacobian(const TensorFunction& f, const Tensor& x, const FunctionalOptions& options = {});
// One for each input.
std::vector<Tensor> jacobian(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                             const FunctionalOptions& options = {});

// The second derivatives of f, which returns one element: x.shape + x.shape. Runs backward once for
// each element of x. Throws InvalidArgument if f returns more elements.
Tensor hessian(const TensorFunction& f, const Tensor& x, const FunctionalOptions& options = {});
// [i][j]: by inputs i and j, of the shape inputs[i].shape + inputs[j].shape.
std::vector<std::vector<Tensor>> hessian(const TensorsFunction& f,
                                         const std::vector<Tensor>& inputs,
                                         const FunctionalOptions& options = {});

struct VmapOptions {
  int64_t in_dim = 0;
  int64_t out_dim = 0;
};

// Returns the function that calls f on each slice of its input along in_dim and stacks the results
// along out_dim. This is a loop: it takes as long as the calls of f one after another. A function
// whose ops accept the additional dim is faster without vmap.
//   vmap([](const auto& row) { return flow::matmul(w, row); })(x (5, 3)): (5, ...)
TensorFunction vmap(TensorFunction f, const VmapOptions& options = {});

using TensorsToTensors = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// The dims of a function of several tensors.
struct VmapDims {
  // For each input, the dim along which it is sliced, or std::nullopt: every call of f gets the
  // whole input. One entry counts for all inputs.
  std::vector<std::optional<int64_t>> in_dims = {0};
  // For each result, the dim along which it is stacked. One entry counts for all results.
  std::vector<int64_t> out_dims = {0};
};

// The same for functions of several tensors, with one or several results. The sliced dims must have
// one size, which is the number of calls. Cost: as many calls of f as there are slices, one after
// another, and a copy of each result.
//   vmap([](const std::vector<Tensor>& x) { return flow::matmul(x[0], x[1]); },
//        {.in_dims = {std::nullopt, 1}})({w (4, 3), x (3, 5)}): (5, 4)
TensorsFunction vmap(TensorsFunction f, const VmapDims& dims);
TensorsToTensors vmap(TensorsToTensors f, const VmapDims& dims);

}  // namespace flow

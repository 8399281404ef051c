#include "autograd/functional.h"

#include "autograd/engine.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// Inputs of which gradients can be taken. Without create_graph they have no history. Each is a
// tensor of its own, so that other uses of the given ones do not count.
std::vector<Tensor> prepared(const std::vector<Tensor>& inputs, bool create_graph) {
  std::vector<Tensor> result;
  for (const Tensor& x : inputs) {
    const bool continues = create_graph && x.requires_grad();
    result.push_back(continues ? x.view(x.shape()) : x.detach().requires_grad_());
  }
  return result;
}

// The gradients of `outputs`; zeros where an input has no influence.
std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& weights, bool create_graph) {
  std::vector<Tensor> found;
  std::vector<Tensor> used, used_weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    used.push_back(outputs[i]);
    if (!weights.empty()) used_weights.push_back(weights[i]);
  }
  if (!used.empty()) {
    found = grad(used, inputs,
                 {.grad_outputs = used_weights,
                  .retain_graph = true,
                  .create_graph = create_graph,
                  .allow_unused = true});
  } else {
    found.resize(inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!found[i].defined()) found[i] = zeros_like(inputs[i]);
  return found;
}

// The result of a call, without history unless it is wanted.
Tensor without_history(const Tensor& x, bool create_graph) {
  return create_graph ? x : x.detach();
}

void check_shape(const char* function, const char* what, const Tensor& v, const Tensor& expected) {
  if (v.shape() == expected.shape() && v.dtype() == expected.dtype()) return;
  throw InvalidArgument(str("[", function, "] v must have the shape and dtype of ", what, ", ",
                            expected.meta(), "; received ", v.meta()));
}

TensorsFunction of_list(const TensorFunction& f) {
  return [&f](const std::vector<Tensor>& inputs) { return f(inputs[0]); };
}

}  // namespace

std::pair<Tensor, std::vector<Tensor>> vjp(const TensorsFunction& f,
                                           const std::vector<Tensor>& inputs, const Tensor& v,
                                           const FunctionalOptions& options) {
  const EnableGradGuard recording;
  const std::vector<Tensor> x = prepared(inputs, options.create_graph);
  const Tensor y = f(x);
  if (v.defined()) check_shape("vjp", "the result", v, y);
  if (!v.defined() && y.numel() != 1) {
    throw InvalidArgument(
        str("[vjp] v may be left out only if the function returns one element; it "
            "returned the shape ",
            y.shape(), "; give v of this shape"));
  }
  const std::vector<Tensor> weights = v.defined() ? std::vector<Tensor>{v} : std::vector<Tensor>{};
  return {without_history(y, options.create_graph),
          gradients({y}, x, weights, options.create_graph)};
}

std::pair<Tensor, Tensor> vjp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const FunctionalOptions& options) {
  auto [y, result] = vjp(of_list(f), std::vector<Tensor>{x}, v, options);
  return {y, result[0]};
}

// The gradient g of sum(u f(x)) is linear in u, and its derivative with respect to u, weighted by
// v, is J v.
std::pair<Tensor, Tensor> jvp(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& v, const FunctionalOptions& options) {
  const EnableGradGuard recording;
  if (v.size() != inputs.size()) {
    throw InvalidArgument(str("[jvp] v must have one tensor for each of the ", inputs.size(),
                              " inputs; received ", v.size()));
  }
  for (size_t i = 0; i < v.size(); ++i)
    check_shape("jvp", "its input", v[i], inputs[i]);
  const std::vector<Tensor> x = prepared(inputs, options.create_graph);
  const Tensor y = f(x);
  const Tensor u = zeros_like(y).requires_grad_();
  const std::vector<Tensor> g = gradients({y}, x, {u}, true);
  const Tensor result = gradients(g, {u}, v, options.create_graph)[0];
  return {without_history(y, options.create_graph), result};
}

std::pair<Tensor, Tensor> jvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const FunctionalOptions& options) {
  return jvp(of_list(f), std::vector<Tensor>{x}, std::vector<Tensor>{v}, options);
}

std::vector<Tensor> jacobian(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                             const FunctionalOptions& options) {
  const EnableGradGuard recording;
  const std::vector<Tensor> x = prepared(inputs, options.create_graph);
  const Tensor y = f(x);
  const Tensor elements = y.flatten();
  std::vector<std::vector<Tensor>> rows(inputs.size());
  for (int64_t i = 0; i < elements.size(0); ++i) {
    const std::vector<Tensor> g = gradients({elements.select(0, i)}, x, {}, options.create_graph);
    for (size_t j = 0; j < g.size(); ++j)
      rows[j].push_back(g[j]);
  }
  std::vector<Tensor> result;
  for (size_t j = 0; j < inputs.size(); ++j) {
    Shape shape = y.shape();
    for (const int64_t size : inputs[j].shape())
      shape.push_back(size);
    result.push_back(rows[j].empty() ? zeros(shape, options_like(inputs[j]))
                                     : stack(rows[j], 0).reshape(shape));
  }
  return result;
}

Tensor jacobian(const TensorFunction& f, const Tensor& x, const FunctionalOptions& options) {
  return jacobian(of_list(f), std::vector<Tensor>{x}, options)[0];
}

std::vector<std::vector<Tensor>> hessian(const TensorsFunction& f,
                                         const std::vector<Tensor>& inputs,
                                         const FunctionalOptions& options) {
  std::vector<std::vector<Tensor>> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorsFunction gradient = [&](const std::vector<Tensor>& x) {
      const Tensor y = f(x);
      if (y.numel() != 1) {
        throw InvalidArgument(
            str("[hessian] the function must return one element; it returned the "
                "shape ",
                y.shape(), "; take a sum, or call jacobian twice"));
      }
      return gradients({y}, {x[i]}, {}, true)[0];
    };
    result.push_back(jacobian(gradient, inputs, options));
  }
  return result;
}

Tensor hessian(const TensorFunction& f, const Tensor& x, const FunctionalOptions& options) {
  return hessian(of_list(f), std::vector<Tensor>{x}, options)[0][0];
}

TensorFunction vmap(TensorFunction f, const VmapOptions& options) {
  return [f = std::move(f), options](const Tensor& x) {
    std::vector<Tensor> results;
    for (const Tensor& slice : unbind(x, options.in_dim))
      results.push_back(f(slice));
    if (results.empty()) {
      throw InvalidArgument(str("[vmap] dim ", options.in_dim,
                                " of the input has no slices, so the "
                                "shape of a result is unknown; received ",
                                x.meta()));
    }
    return stack(results, options.out_dim);
  };
}

namespace {

// One entry for each of `count` tensors.
template <class T>
std::vector<T> for_each_of(const std::vector<T>& given, size_t count, const char* what,
                           const char* tensors) {
  if (given.size() == count) return given;
  if (given.size() == 1) return std::vector<T>(count, given[0]);
  throw InvalidArgument(str("[vmap] ", what, " has ", given.size(), " entries for ", count, " ",
                            tensors, "; give one for each, or one for all"));
}

// The arguments of the calls of a function whose inputs are sliced.
std::vector<std::vector<Tensor>> arguments_of_calls(const std::vector<Tensor>& inputs,
                                                    const VmapDims& dims) {
  const auto in_dims = for_each_of(dims.in_dims, inputs.size(), "in_dims", "inputs");
  std::optional<int64_t> count;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!in_dims[i]) continue;
    const int64_t size = inputs[i].shape()[normalize_dim(*in_dims[i], inputs[i].dim(), "vmap")];
    if (count && *count != size) {
      throw InvalidArgument(str("[vmap] the sliced dims must have one size; received ", *count,
                                " and, of input ", i, ", ", size));
    }
    count = size;
  }
  if (!count) throw InvalidArgument("[vmap] no input is sliced: every entry of in_dims is nullopt");
  std::vector<std::vector<Tensor>> calls(static_cast<size_t>(*count));
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Tensor> slices;
    if (in_dims[i]) slices = unbind(inputs[i], *in_dims[i]);
    for (size_t call = 0; call < calls.size(); ++call)
      calls[call].push_back(in_dims[i] ? slices[call] : inputs[i]);
  }
  if (calls.empty()) {
    throw InvalidArgument(
        "[vmap] the sliced dims have no slices, so the shape of a result is unknown");
  }
  return calls;
}

}  // namespace

TensorsToTensors vmap(TensorsToTensors f, const VmapDims& dims) {
  return [f = std::move(f), dims](const std::vector<Tensor>& inputs) {
    std::vector<std::vector<Tensor>> results;  // [result][call]
    for (const std::vector<Tensor>& arguments : arguments_of_calls(inputs, dims)) {
      const std::vector<Tensor> own = f(arguments);
      if (results.empty()) results.resize(own.size());
      if (results.size() != own.size()) {
        throw InvalidArgument(str("[vmap] the function returned ", results.size(), " and then ",
                                  own.size(), " results; it must return the same number"));
      }
      for (size_t i = 0; i < own.size(); ++i)
        results[i].push_back(own[i]);
    }
    const auto out_dims = for_each_of(dims.out_dims, results.size(), "out_dims", "results");
    std::vector<Tensor> stacked;
    for (size_t i = 0; i < results.size(); ++i)
      stacked.push_back(stack(results[i], out_dims[i]));
    return stacked;
  };
}

TensorsFunction vmap(TensorsFunction f, const VmapDims& dims) {
  const TensorsToTensors of_lists = vmap(
      [f = std::move(f)](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {f(x)}; },
      dims);
  return [of_lists](const std::vector<Tensor>& inputs) { return of_lists(inputs)[0]; };
}

}  // namespace flow

#include "autograd/gradcheck.h"

#include <cmath>
#include <optional>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"

namespace flow {

namespace {

// jacobian[i][k] is the derivative of element k of an output with respect to element i of an input.
using Jacobian = std::vector<std::vector<double>>;

void check_input(const Tensor& input, size_t i) {
  const TensorMeta& meta = input.meta();
  bool overlaps = false;
  for (int64_t d = 0; d < meta.strides.size(); ++d)
    overlaps |= meta.strides[d] == 0 && meta.local_shape[d] > 1;
  if (meta.dtype == DType::kFloat64 && !meta.is_global() && !overlaps) return;
  throw InvalidArgument(str("[gradcheck] input ", i, " is ", meta, overlaps ? " and expanded" : "",
                            "; inputs that require grad must be local float64 tensors whose "
                            "elements do not share memory"));
}

// The element at the row-major position `i`.
double& element(const Tensor& tensor, int64_t i) {
  const TensorMeta& meta = tensor.meta();
  int64_t offset = 0;
  for (int64_t d = meta.shape.size() - 1; d >= 0; --d) {
    offset += i % meta.shape[d] * meta.strides[d];
    i /= meta.shape[d];
  }
  return tensor.data<double>()[offset];
}

// The elements of the floating outputs, one list per output.
std::vector<std::vector<double>> values_of(const std::vector<Tensor>& outputs) {
  std::vector<std::vector<double>> values;
  for (const Tensor& output : outputs) {
    values.emplace_back();
    if (output.defined() && is_floating(output.dtype())) values.back() = output.to_vector<double>();
  }
  return values;
}

// Restores an element, even if an exception is thrown.
class Perturbed {
 public:
  explicit Perturbed(double& element) : element_(element), original_(element) {}

  ~Perturbed() { element_ = original_; }

  Perturbed(const Perturbed&) = delete;
  Perturbed& operator=(const Perturbed&) = delete;

  void shift(double by) const { element_ = original_ + by; }

 private:
  double& element_;
  double original_;
};

std::vector<Jacobian> numeric_jacobians(const GradcheckFunction& fn,
                                        const std::vector<Tensor>& inputs, const Tensor& input,
                                        size_t num_outputs, double eps) {
  const NoGradGuard no_grad;
  std::vector<Jacobian> jacobians(num_outputs);
  for (int64_t i = 0; i < input.numel(); ++i) {
    const Perturbed x(element(input, i));
    x.shift(eps);
    const auto above = values_of(fn(inputs));
    x.shift(-eps);
    const auto below = values_of(fn(inputs));
    for (size_t o = 0; o < num_outputs; ++o) {
      std::vector<double> row(above[o].size());
      for (size_t k = 0; k < row.size(); ++k)
        row[k] = (above[o][k] - below[o][k]) / (2 * eps);
      jacobians[o].push_back(std::move(row));
    }
  }
  return jacobians;
}

// The Jacobians of one output with respect to all `inputs`, from one backward per output element.
std::vector<Jacobian> rule_jacobians(const Tensor& output, const std::vector<Tensor>& inputs) {
  const auto num_elements = static_cast<size_t>(output.numel());
  std::vector<Jacobian> jacobians;
  for (const Tensor& input : inputs) {
    jacobians.emplace_back(static_cast<size_t>(input.numel()),
                           std::vector<double>(num_elements, 0.0));
  }
  if (!output.requires_grad()) return jacobians;
  for (size_t k = 0; k < num_elements; ++k) {
    std::vector<double> unit(num_elements, 0.0);
    unit[k] = 1;
    const Tensor dy = tensor(unit, output.shape(), {.dtype = output.dtype()});
    const auto gradients =
        grad({output}, inputs, {.grad_outputs = {dy}, .retain_graph = true, .allow_unused = true});
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (!gradients[j].defined()) continue;
      const auto column = gradients[j].to_vector<double>();
      for (size_t i = 0; i < column.size(); ++i)
        jacobians[j][i][k] = column[i];
    }
  }
  return jacobians;
}

// The message for the first entry that differs too much.
std::optional<std::string> compare(const Jacobian& numeric, const Jacobian& rule,
                                   const GradcheckOptions& options, size_t output, size_t input) {
  for (size_t i = 0; i < rule.size(); ++i) {
    for (size_t k = 0; k < rule[i].size(); ++k) {
      const double expected = numeric[i][k];
      // A limit in proportion to an infinite derivative would admit every rule.
      const double limit =
          std::isfinite(expected) ? options.atol + options.rtol * std::abs(expected) : 0;
      if (expected == rule[i][k] || std::abs(expected - rule[i][k]) <= limit) continue;
      return str("[gradcheck] the derivative of element ", k, " of output ", output, " by element ",
                 i, " of input ", input, " is ", expected, " numerically and ", rule[i][k],
                 " by the gradient rule; they may differ by at most ", limit);
    }
  }
  return std::nullopt;
}

}  // namespace

bool gradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs,
               const GradcheckOptions& options) {
  std::vector<Tensor> varied;
  std::vector<size_t> positions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    check_input(inputs[i], i);
    varied.push_back(inputs[i]);
    positions.push_back(i);
  }
  if (varied.empty()) {
    throw InvalidArgument(
        "[gradcheck] no input requires grad; call requires_grad_() on at least one");
  }
  const EnableGradGuard enable_grad;
  const std::vector<Tensor> outputs = fn(inputs);
  std::vector<std::vector<Jacobian>> numeric;  // indexed by input, then output
  for (const Tensor& input : varied)
    numeric.push_back(numeric_jacobians(fn, inputs, input, outputs.size(), options.eps));
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].defined() || !is_floating(outputs[o].dtype())) continue;
    const std::vector<Jacobian> rules = rule_jacobians(outputs[o], varied);
    for (size_t j = 0; j < varied.size(); ++j) {
      const auto difference = compare(numeric[j][o], rules[j], options, o, positions[j]);
      if (!difference) continue;
      if (options.raise_exception) throw InvalidArgument(*difference);
      return false;
    }
  }
  return true;
}

bool gradgradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& grad_outputs, const GradcheckOptions& options) {
  const EnableGradGuard enable_grad;
  std::vector<Tensor> all = inputs;
  std::vector<Tensor> given = grad_outputs;
  uint64_t draw = 0;
  for (const Tensor& output : fn(inputs)) {
    if (!output.defined() || !output.requires_grad()) continue;
    if (grad_outputs.empty()) {
      std::vector<double> values(static_cast<size_t>(output.numel()));
      for (double& value : values)
        value = uniform_float(philox({.seed = 1}, draw++)[0]) - 0.5;
      given.push_back(tensor(values, output.shape(), {.dtype = output.dtype()}).requires_grad_());
    }
  }
  all.insert(all.end(), given.begin(), given.end());
  const size_t num_inputs = inputs.size();
  const auto gradients = [&fn, num_inputs](const std::vector<Tensor>& in) {
    const EnableGradGuard enable;
    const std::vector<Tensor> first(in.begin(), in.begin() + static_cast<int64_t>(num_inputs));
    std::vector<Tensor> outputs;
    for (const Tensor& output : fn(first)) {
      if (output.defined() && output.requires_grad()) outputs.push_back(output);
    }
    std::vector<Tensor> wanted;
    for (const Tensor& input : first) {
      if (input.defined() && input.requires_grad()) wanted.push_back(input);
    }
    return grad(outputs, wanted,
                {.grad_outputs = {in.begin() + static_cast<int64_t>(num_inputs), in.end()},
                 .create_graph = true,
                 .allow_unused = true});
  };
  return gradcheck(gradients, all, options);
}

}  // namespace flow

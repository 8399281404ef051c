// One case of an op spec, and the table of functions that run cases.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

using Outputs = std::vector<Tensor>;

// The name under which Case::uses() contains the number of inputs.
inline constexpr const char* kNumberOfInputs = "(number of inputs)";

struct Input {
  std::string name;
  Tensor tensor;
};

// The view of a case that a binding has. Inputs are in PyTorch's argument order, and a name may
// occur twice.
class Case {
 public:
  Case(const Json& spec, std::vector<Input> inputs, DType floating);

  const std::string& op() const { return op_; }

  // The field `expr` of a slice.
  const std::string& expr() const { return expr_; }

  DType floating() const { return floating_; }

  // Noted as an argument, because a binding asks for it to choose between the forms of an op.
  size_t num_inputs();

  // The input at a position. Throws NotSupported if there are fewer inputs.
  const Tensor& in(size_t position);
  // The optional input of this name, or an undefined tensor.
  Tensor named(const Names& names);
  // Noted as an argument, as num_inputs() is.
  std::vector<Tensor> all();
  // The dtype of output 0.
  DType output_dtype() const;

  Attrs attrs;

  // The arguments that were read, optional inputs and the number of inputs among them.
  std::vector<ArgumentUse> uses() const;

  // Throws NotSupported if an input or argument was not read.
  void check_all_read() const;

 private:
  std::string op_;
  std::string expr_;
  std::string output_dtype_;
  DType floating_;
  std::vector<Input> inputs_;
  std::set<std::string> read_;
  std::vector<ArgumentUse> uses_;
};

class Bindings {
 public:
  using Binding = std::function<Outputs(Case&)>;

  // fn(Case&) returns a Tensor, ValuesIndices or a list of tensors.
  template <class F>
  void add(const Names& names, F fn) {
    for (const char* name : names)
      table_[name] = [fn](Case& c) { return outputs(fn(c)); };
  }

  // Throws NotSupported for an op that is not in the table.
  const Binding& find(const std::string& op) const;

  std::vector<std::string> ops() const;

 private:
  static Outputs outputs(Tensor y) { return {std::move(y)}; }

  static Outputs outputs(ValuesIndices y) { return {std::move(y.values), std::move(y.indices)}; }

  static Outputs outputs(Outputs y) { return y; }

  std::map<std::string, Binding> table_;
};

// Each adds the ops of one family.
void bind_pointwise(Bindings& table);
void bind_activations(Bindings& table);
void bind_ranks(Bindings& table);
void bind_reductions(Bindings& table);
void bind_products(Bindings& table);
void bind_selection(Bindings& table);
void bind_shapes(Bindings& table);
void bind_vectors(Bindings& table);
void bind_indexing(Bindings& table);
void bind_windows(Bindings& table);
void bind_norms(Bindings& table);
void bind_linalg(Bindings& table);
void bind_fourier(Bindings& table);
void bind_polynomials(Bindings& table);
void bind_losses(Bindings& table);
void bind_creation(Bindings& table);

Bindings all_bindings();

// x[...] as Python writes it: numbers, slices, None, Ellipsis, names of inputs.
Tensor index_by_expression(Case& c);

}  // namespace flow::conform

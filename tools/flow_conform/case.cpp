#include "tools/flow_conform/case.h"

#include <algorithm>

namespace flow::conform {

Case::Case(const Json& spec, std::vector<Input> inputs, DType floating)
    : attrs(spec.value("attrs", Json::object()), floating),
      op_(spec.at("op")),
      expr_(spec.value("expr", std::string())),
      floating_(floating),
      inputs_(std::move(inputs)) {
  if (spec.contains("outputs") && !spec["outputs"].empty()) {
    output_dtype_ = spec["outputs"][0].value("dtype", std::string());
  }
}

const Tensor& Case::in(size_t position) {
  if (position >= inputs_.size()) {
    throw NotSupported(str("a call with only ", inputs_.size(), " inputs"));
  }
  const Input& input = inputs_[position];
  read_.insert(input.name);
  return input.tensor;
}

size_t Case::num_inputs() {
  uses_.push_back({kNumberOfInputs, ArgumentUse::Type::kNumber, str(inputs_.size()), false});
  return inputs_.size();
}

Tensor Case::named(const Names& names) {
  using Type = ArgumentUse::Type;
  for (const char* name : names) {
    read_.insert(name);
    for (const Input& input : inputs_) {
      if (input.name != name) continue;
      uses_.push_back({*names.begin(), Type::kTensor, "given", false});
      return input.tensor;
    }
  }
  uses_.push_back({*names.begin(), Type::kTensor, "", true});
  return {};
}

std::vector<Tensor> Case::all() {
  std::vector<Tensor> tensors;
  const size_t count = num_inputs();
  for (size_t i = 0; i < count; ++i)
    tensors.push_back(in(i));
  return tensors;
}

DType Case::output_dtype() const {
  if (output_dtype_.empty()) throw BadSpec("the case does not give the dtype of its output");
  return dtype_named(output_dtype_, floating_);
}

std::vector<ArgumentUse> Case::uses() const {
  std::vector<ArgumentUse> uses = attrs.uses();
  uses.insert(uses.end(), uses_.begin(), uses_.end());
  return uses;
}

void Case::check_all_read() const {
  for (const Input& input : inputs_) {
    if (!read_.contains(input.name)) throw NotSupported("input " + input.name);
  }
  const std::vector<std::string> unread = attrs.unread();
  if (!unread.empty()) throw NotSupported("argument " + unread.front());
}

const Bindings::Binding& Bindings::find(const std::string& op) const {
  const auto found = table_.find(op);
  if (found == table_.end()) throw NotSupported("op " + op);
  return found->second;
}

std::vector<std::string> Bindings::ops() const {
  std::vector<std::string> names;
  for (const auto& [name, binding] : table_)
    names.push_back(name);
  return names;
}

Bindings all_bindings() {
  Bindings table;
  bind_pointwise(table);
  bind_activations(table);
  bind_ranks(table);
  bind_reductions(table);
  bind_products(table);
  bind_selection(table);
  bind_shapes(table);
  bind_vectors(table);
  bind_indexing(table);
  bind_windows(table);
  bind_norms(table);
  bind_linalg(table);
  bind_fourier(table);
  bind_polynomials(table);
  bind_losses(table);
  bind_creation(table);
  return table;
}

}  // namespace flow::conform

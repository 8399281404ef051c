#include "nn/layers/container.h"

#include <algorithm>

namespace flow::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (AnyModule& module : modules_)
    y = module(y);
  return y;
}

AnyModule& Sequential::operator[](PositionArg i) {
  return modules_[internal::checked_position("Sequential", i, size())];
}

namespace internal {
size_t checked_position(const char* list, PositionArg i, int64_t size) {
  const int64_t position = i.value < 0 ? i.value + size : i.value;
  if (position >= 0 && position < size) return static_cast<size_t>(position);
  throw InvalidArgument(str("[", list, "] index ", i.value, " is out of range: the list has ", size,
                            " elements; use an index from -size() to size() - 1"),
                        i.site);
}
}  // namespace internal

namespace {

// "  (0): Parameter containing: [float32 of size 2x3]".
std::string parameter_line(const std::string& name, const std::string& type, const Tensor& x) {
  std::string sizes;
  for (const int64_t size : x.shape())
    sizes += str(sizes.empty() ? "" : "x", size);
  return str("  (", name, "): Parameter containing: [", type, " of size ", sizes, "]");
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace

ParameterList::ParameterList(const std::vector<Tensor>& parameters, Site site) {
  const SiteScope scope(site);
  for (const Tensor& parameter : parameters)
    push_back(parameter);
}

void ParameterList::push_back(const Tensor& parameter, Site site) {
  const SiteScope scope(site);
  parameters_.push_back(register_parameter(std::to_string(parameters_.size()), parameter));
  std::vector<std::string> lines;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    lines.push_back(parameter_line(std::to_string(i), str(parameters_[i].dtype()), parameters_[i]));
  }
  set_extra_repr(joined_lines(lines));
}

const Tensor& ParameterList::operator[](PositionArg i) const {
  return parameters_[internal::checked_position("ParameterList", i, size())];
}

ParameterDict::ParameterDict(const NamedTensors& parameters, Site site) {
  const SiteScope scope(site);
  for (const auto& [key, parameter] : parameters)
    insert(key, parameter);
}

void ParameterDict::insert(const std::string& key, const Tensor& parameter, Site site) {
  const SiteScope scope(site);
  parameters_.emplace_back(key, register_parameter(key, parameter));
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : parameters_)
    lines.push_back(parameter_line(name, str(tensor.dtype()), tensor));
  set_extra_repr(joined_lines(lines));
}

bool ParameterDict::contains(const std::string& key) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

const Tensor& ParameterDict::operator[](const KeyArg& key) const {
  for (const auto& [name, tensor] : parameters_) {
    if (name == key.value) return tensor;
  }
  throw InvalidArgument(str("[ParameterDict] no parameter has the key '", key.value,
                            "'; add it with insert, or ask contains(key) first"),
                        key.site);
}

}  // namespace flow::nn

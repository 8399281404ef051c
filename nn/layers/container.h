// Containers of modules.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/calls/position_arg.h"
#include "core/error.h"
#include "nn/module.h"

namespace flow::nn {

// A module without parameters that calls a function of a tensor.
class Lambda : public Module<Lambda> {
 public:
  template <class F>

  requires(!std::derived_from<F, ModuleBase> &&
           std::is_invocable_r_v<Tensor, F&, const Tensor&>) explicit Lambda(F function)
      : function_(std::move(function)) {}

  Tensor forward(const Tensor& x) { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

namespace internal {
template <class M>
concept IsModule = std::derived_from<std::remove_cvref_t<M>, ModuleBase>;
// What can be a part of Sequential.
template <class M>
concept IsPart = IsModule<M> || std::is_invocable_r_v < Tensor,
        std::remove_cvref_t<M>
&, const Tensor& > ;
}  // namespace internal

// Calls its modules one after another, each on the result of the one before. They are named 0, 1,
// …. A function of a tensor becomes a Lambda.
//   nn::Sequential net(nn::Linear(4, 8), [](const Tensor& x) { return x * x; }, nn::Linear(8, 2));
class Sequential : public Module<Sequential> {
 public:
  Sequential() = default;
  // The layers draw their initial values in this order, whichever of them the compiler makes first.
  template <class... M>

  requires(sizeof...(M) > 0 && (internal::IsPart<M> && ...) &&
           !(sizeof...(M) == 1 && (std::same_as<std::remove_cvref_t<M>, Sequential> &&
                                   ...))) explicit Sequential(M&&... modules) {
    draw_in_order({made_here<M>(modules)...});
    (push_back(std::forward<M>(modules), Site::none()), ...);
  }

  template <class M>
  requires internal::IsPart<M>

  void push_back(M part, Site site = Site::here()) {
    if constexpr (internal::IsModule<M>) {
      modules_.push_back(register_module(std::to_string(modules_.size()), AnyModule(part), site));
    } else {
      push_back(Lambda(std::move(part)), site);
    }
  }

  Tensor forward(const Tensor& x);

  // Counts from the end if `i` is negative. Throws InvalidArgument if there is no such part.
  AnyModule& operator[](PositionArg i);

  auto begin() { return modules_.begin(); }

  auto end() { return modules_.end(); }

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }

 private:
  template <class M>
  static const ModuleBase* made_here(const std::remove_reference_t<M>& part) {
    if constexpr (internal::IsModule<M> && !std::is_lvalue_reference_v<M>) return &part;
    return nullptr;
  }

  std::vector<AnyModule> modules_;
};

namespace internal {
// Counts from the end if `i` is negative. Throws InvalidArgument, naming `list`, unless
// -size <= i < size.
size_t checked_position(const char* list, PositionArg i, int64_t size);
}  // namespace internal

// A list of modules of one type, named 0, 1, …. It has no forward.
template <class M>
class ModuleList : public Module<ModuleList<M>> {
 public:
  void push_back(M module, Site site = Site::here()) {
    modules_.push_back(
        this->register_module(std::to_string(modules_.size()), std::move(module), site));
  }

  // Counts from the end if `i` is negative. Throws InvalidArgument if there is no such module.
  M& operator[](PositionArg i) {
    return modules_[internal::checked_position("ModuleList", i, size())];
  }

  auto begin() { return modules_.begin(); }

  auto end() { return modules_.end(); }

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }

 private:
  std::vector<M> modules_;
};

// A map from keys to modules of one type, in order of insertion. It has no forward.
template <class M>
class ModuleDict : public Module<ModuleDict<M>> {
 public:
  ModuleDict() = default;

  explicit ModuleDict(std::vector<std::pair<std::string, M>> modules, Site site = Site::here()) {
    for (auto& [key, module] : modules)
      insert(key, std::move(module), site);
  }

  void insert(const std::string& key, M module, Site site = Site::here()) {
    modules_.emplace_back(key, this->register_module(key, std::move(module), site));
  }

  bool contains(const std::string& key) const { return find(key) < modules_.size(); }

  M& operator[](const KeyArg& key) {
    const size_t at = find(key.value);
    if (at == modules_.size())
      throw InvalidArgument(str("[ModuleDict] no module is named ", key.value,
                                "; add it with insert, or ask contains(key) first"),
                            key.site);
    return modules_[at].second;
  }

  auto begin() { return modules_.begin(); }

  auto end() { return modules_.end(); }

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }

 private:
  size_t find(const std::string& key) const {
    size_t at = 0;
    while (at < modules_.size() && modules_[at].first != key)
      ++at;
    return at;
  }

  std::vector<std::pair<std::string, M>> modules_;
};

// A list of parameters, named 0, 1, …. It has no forward.
class ParameterList : public Module<ParameterList> {
 public:
  ParameterList() = default;
  explicit ParameterList(const std::vector<Tensor>& parameters, Site site = Site::here());

  // The tensor becomes a parameter, which records gradients.
  void push_back(const Tensor& parameter, Site site = Site::here());

  // Counts from the end if `i` is negative. Throws InvalidArgument if there is no such parameter.
  const Tensor& operator[](PositionArg i) const;

  auto begin() const { return parameters_.begin(); }

  auto end() const { return parameters_.end(); }

  int64_t size() const { return static_cast<int64_t>(parameters_.size()); }

 private:
  std::vector<Tensor> parameters_;
};

// A map from keys to parameters, in order of insertion. It has no forward.
class ParameterDict : public Module<ParameterDict> {
 public:
  ParameterDict() = default;
  explicit ParameterDict(const NamedTensors& parameters, Site site = Site::here());

  // Throws InvalidArgument for a key that exists.
  void insert(const std::string& key, const Tensor& parameter, Site site = Site::here());
  bool contains(const std::string& key) const;
  // Throws InvalidArgument for a key that does not exist.
  const Tensor& operator[](const KeyArg& key) const;

  // Pairs of key and tensor.
  auto begin() const { return parameters_.begin(); }

  auto end() const { return parameters_.end(); }

  int64_t size() const { return static_cast<int64_t>(parameters_.size()); }

 private:
  NamedTensors parameters_;
};

}  // namespace flow::nn

#include "nn/parameters/parametrize.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "autograd/recompute.h"
#include "autograd/tensor_autograd.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/init.h"
#include "nn/layers/container.h"
#include "nn/layers/conv.h"
#include "nn/module_state.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/linear/similarity.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow::nn {

namespace {

// The parameters from which one tensor of a module is computed, and the modules that compute it.
class ParametrizationList : public Module<ParametrizationList> {
 public:
  using ModuleBase::register_parameter;

  void push_back(const AnyModule& module) {
    modules_.push_back(register_module(std::to_string(modules_.size()), module));
  }

  void add_named(const std::string& name, const ModuleBase& module) {
    register_module(name, module);
  }

  Tensor forward(const Tensor& original) {
    Tensor x = original;
    for (AnyModule& module : modules_)
      x = module(TensorArg(x, Site::none()));
    return x;
  }

 private:
  std::vector<AnyModule> modules_;
};

}  // namespace

// Adds computed tensors to a module, and removes them.
class Parametrized {
 public:
  explicit Parametrized(const ModuleBase& module) : module_(module), state_(module.live_state()) {}

  bool has(const std::string& name) const {
    return name.empty() ? !state_.computed.empty() : find(name) != state_.computed.end();
  }

  bool is_a(const std::type_info& type) const {
    return state_.type != nullptr && *state_.type == type;
  }

  ParametrizationList& list_of(const std::string& name) {
    return static_cast<ParametrizationList&>(*find(name)->list);
  }

  // The parameter that will be computed.
  Tensor parameter(const std::string& name) const {
    for (const auto& [own, tensor] : state_.parameters) {
      if (own == name) return tensor;
    }
    throw InvalidArgument(str("[parametrize] the module has no parameter '", name,
                              "' of its own; give the module that registered it, and one of the "
                              "names that own_parameters() lists"));
  }

  void add(const std::string& name, const ParametrizationList& list,
           std::function<Tensor(ModuleBase& list)> compute) {
    const Tensor member = parameter(name);
    if (!state_.owns_alone(member)) {
      throw InvalidArgument(str("[parametrize] the parameter '", name,
                                "' is tied, so the other module that uses it would use the "
                                "computed value and not be trained; compute the value in "
                                "forward() instead"));
    }
    std::erase_if(state_.parameters, [&](const auto& entry) { return entry.first == name; });
    member.requires_grad_(false);
    if (state_.computed.empty()) {
      const ModuleDict<ParametrizationList> dict{};
      module_.add_child("parametrizations", dict, typeid(ModuleDict<ParametrizationList>));
    }
    module_.get_submodule("parametrizations").add_child(name, list, typeid(ParametrizationList));
    state_.computed.push_back({name, member, std::move(compute), internal::ModuleObject(list)});
    refresh();
  }

  // Gives the members the values that a call would compute, and makes programs that have called the
  // module look again.
  void refresh() {
    const NoGradGuard no_grad;
    state_.compute_members();
    module_.note_registration();
  }

  void remove(const std::string& name, bool keeps_value) {
    const auto found = find(name);
    if (found == state_.computed.end()) {
      throw InvalidArgument(str("[remove_parametrizations] '", name,
                                "' of this module is not parametrized; ask is_parametrized first"));
    }
    const NamedTensors& originals = found->list->own_parameters();
    if (!keeps_value && originals.size() != 1) {
      throw InvalidArgument(str("[remove_parametrizations] '", name, "' has ", originals.size(),
                                " originals, so it can only keep its computed value; leave "
                                "leave_parametrized true"));
    }
    const Tensor original = originals[0].second;
    {
      const NoGradGuard no_grad;
      const Tensor value = keeps_value ? found->compute(*found->list) : original;
      found->member.set_data(value.detach().clone());
    }
    found->member.requires_grad_(original.requires_grad());
    state_.own(found->member);
    state_.parameters.emplace_back(name, found->member);
    state_.computed.erase(found);
    remove_child(module_.get_submodule("parametrizations"), name);
    if (state_.computed.empty()) remove_child(module_, "parametrizations");
    module_.note_registration();
  }

 private:
  std::vector<ModuleBase::State::Computed>::iterator find(const std::string& name) const {
    return std::find_if(state_.computed.begin(), state_.computed.end(),
                        [&](const auto& one) { return one.name == name; });
  }

  static void remove_child(const ModuleBase& module, const std::string& name) {
    ModuleBase::State& state = module.live_state();
    for (size_t i = 0; i < state.children.size(); ++i) {
      if (state.children[i].first != name) continue;
      state.children.erase(state.children.begin() + static_cast<std::ptrdiff_t>(i));
      state.child_types.erase(state.child_types.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  ModuleBase module_;
  ModuleBase::State& state_;
};

namespace utils {

namespace {

// A new parameter with a copy of the value, which is trained if `like` is.
Tensor copy_as_parameter(ParametrizationList& list, const char* name, const Tensor& value,
                         const Tensor& like) {
  const bool is_trained = like.requires_grad();
  Tensor original = list.register_parameter(name, value.detach().clone());
  original.requires_grad_(is_trained);
  return original;
}

}  // namespace

namespace parametrize {

void internal::add_parametrization(const ModuleBase& module, const std::string& name,
                                   const AnyModule& parametrization,
                                   const std::function<Tensor(const Tensor&)>& inverse) {
  Parametrized parametrized(module);
  if (parametrized.has(name)) {
    if (inverse) {
      throw InvalidArgument(str("[register_parametrization] '", name,
                                "' is parametrized already; received another parametrization with "
                                "a right_inverse; register that one first"));
    }
    parametrized.list_of(name).push_back(parametrization);
    parametrized.refresh();
    return;
  }
  const Tensor value = parametrized.parameter(name);
  ParametrizationList list;
  const NoGradGuard no_grad;
  const Tensor original =
      copy_as_parameter(list, "original", inverse ? inverse(value) : value, value);
  list.push_back(parametrization);
  parametrized.add(name, list, [original](ModuleBase& own) {
    // Not as a call, which warns of parameters that are no members of the object.
    return static_cast<ParametrizationList&>(own).forward(original);
  });
}

void remove_parametrizations(const ModuleBase& module, const std::string& name,
                             const RemoveOptions& options, Site site) {
  const SiteScope scope(site);
  Parametrized(module).remove(name, options.leave_parametrized);
}

bool is_parametrized(const ModuleBase& module, const std::string& name) {
  return Parametrized(module).has(name);
}

}  // namespace parametrize

namespace parametrizations {

namespace {

// g v / ‖v‖, with a norm for each index of `dim`, or one norm.
class WeightNorm : public Module<WeightNorm> {
 public:
  explicit WeightNorm(const WeightNormOptions& options) : dim_(options.dim) {}

  Tensor forward(const Tensor& g, const Tensor& v) { return v * (g / norm_of(v)); }

  Tensor norm_of(const Tensor& v) const {
    if (!dim_) return norm(v);
    std::vector<int64_t> others;
    for (int64_t i = 0; i < v.dim(); ++i) {
      if (i != *dim_) others.push_back(i);
    }
    if (others.empty()) return v.abs();
    return norm(v, {.p = 2.0, .dim = others, .keepdim = true});
  }

 private:
  std::optional<int64_t> dim_;
};

// Divides by the largest singular value, which power iterations find.
class SpectralNorm : public Module<SpectralNorm> {
 public:
  SpectralNorm(const Tensor& weight, int64_t dim, const SpectralNormOptions& options)
      : dim_(dim), options_(options) {
    if (weight.dim() < 2) return;
    const NoGradGuard no_grad;
    const Tensor matrix = as_matrix(weight);
    const auto drawn = [&](int64_t size) {
      return normalized(init::normal_(new_zeros(weight, {size})));
    };
    u_ = register_buffer("_u", drawn(matrix.size(0)));
    v_ = register_buffer("_v", drawn(matrix.size(1)));
    iterate(matrix, 15);
  }

  Tensor forward(const Tensor& weight) {
    if (weight.dim() < 2) return normalized(weight);
    const Tensor matrix = as_matrix(weight);
    if (is_training() && !is_recomputing()) iterate(matrix, options_.n_power_iterations);
    // The next call writes u and v; backward needs those of this one.
    const Tensor u = u_.clone(), v = v_.clone();
    return weight / (u * matmul(matrix, v)).sum();
  }

 private:
  Tensor normalized(const Tensor& x) const { return normalize(x, {.dim = 0, .eps = options_.eps}); }

  Tensor as_matrix(const Tensor& weight) const {
    std::vector<int64_t> order{dim_};
    for (int64_t i = 0; i < weight.dim(); ++i) {
      if (i != dim_) order.push_back(i);
    }
    return weight.permute(order).reshape({weight.size(dim_), -1});
  }

  void iterate(const Tensor& matrix, int64_t times) const {
    const NoGradGuard no_grad;
    for (int64_t i = 0; i < times; ++i) {
      u_.copy_(normalized(matmul(matrix, v_)));
      v_.copy_(normalized(matmul(matrix.transpose(0, 1), u_)));
    }
  }

  int64_t dim_;
  SpectralNormOptions options_;
  Tensor u_, v_;
};

bool is_transposed_conv(const ModuleBase& module) {
  const Parametrized parametrized(module);
  return parametrized.is_a(typeid(ConvTranspose1d)) || parametrized.is_a(typeid(ConvTranspose2d)) ||
         parametrized.is_a(typeid(ConvTranspose3d));
}

void refuse_second(const char* caller, const ModuleBase& module, const std::string& name) {
  if (!Parametrized(module).has(name)) return;
  throw InvalidArgument(str("[", caller, "] '", name,
                            "' is parametrized already; call "
                            "parametrize::remove_parametrizations(module, \"",
                            name, "\") first"));
}

}  // namespace

void internal::add_weight_norm(const ModuleBase& module, const WeightNormOptions& options) {
  refuse_second("weight_norm", module, options.name);
  Parametrized parametrized(module);
  const Tensor value = parametrized.parameter(options.name);
  if (options.dim && (*options.dim < 0 || *options.dim >= value.dim())) {
    throw InvalidArgument(str("[weight_norm] dim must be one of the ", value.dim(),
                              " dims of the parameter; received ", *options.dim,
                              "; give std::nullopt for one norm of the whole"));
  }
  const NoGradGuard no_grad;
  ParametrizationList list;
  const WeightNorm rule(options);
  const Tensor g = copy_as_parameter(list, "original0", rule.norm_of(value), value);
  const Tensor v = copy_as_parameter(list, "original1", value, value);
  list.add_named("0", rule);
  parametrized.add(options.name, list, [rule, g, v](ModuleBase&) { return rule(g, v); });
}

void internal::add_spectral_norm(const ModuleBase& module, const SpectralNormOptions& options) {
  refuse_second("spectral_norm", module, options.name);
  const Tensor value = Parametrized(module).parameter(options.name);
  const int64_t dim = options.dim.value_or(is_transposed_conv(module) && value.dim() > 1 ? 1 : 0);
  if (dim < 0 || dim >= value.dim() || options.n_power_iterations <= 0) {
    throw InvalidArgument(str("[spectral_norm] dim must be one of the ", value.dim(),
                              " dims of the parameter and n_power_iterations positive; received ",
                              dim, " and ", options.n_power_iterations));
  }
  parametrize::register_parametrization(module, options.name, SpectralNorm(value, dim, options));
}

}  // namespace parametrizations

}  // namespace utils

}  // namespace flow::nn

// Parametrizations (torch.nn.utils.parametrize): a parameter of a module that is computed, at each
// call of the module, from other parameters.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/calls/site_scope.h"
#include "nn/module.h"

namespace flow::nn::utils {

namespace parametrize {

namespace internal {
// `inverse`: maps the present value to that of the unconstrained parameter; may be empty.
void add_parametrization(const ModuleBase& module, const std::string& name,
                         const AnyModule& parametrization,
                         const std::function<Tensor(const Tensor&)>& inverse);
}  // namespace internal

// From now on each call of `module` computes its parameter `name` as parametrization(original),
// where original is a new parameter "parametrizations.NAME.original". It begins as
// parametrization.right_inverse(value) if there is such a function, otherwise as the present value.
// A second parametrization of a name is applied to the result of the first; it has no
// right_inverse. The member tensor (module.weight) holds the value of the last call, and optimizers
// must be made afterwards. Throws InvalidArgument if the module has no such parameter, and a call
// does if the shape changes.
//   struct Symmetric : nn::Module<Symmetric> {
//     Tensor forward(const Tensor& x) { return x.triu() + x.triu(1).transpose(0, 1); }
//   };
//   parametrize::register_parametrization(layer, "weight", Symmetric());
template <class P>

requires std::derived_from<P, ModuleBase>

void register_parametrization(const ModuleBase& module, const std::string& name, P parametrization,
                              Site site = Site::here()) {
  const SiteScope scope(site);
  std::function<Tensor(const Tensor&)> inverse;
  if constexpr (requires(P & p, const Tensor& x) { p.right_inverse(x); }) {
    inverse = [parametrization](const Tensor& x) mutable {
      return parametrization.right_inverse(x);
    };
  }
  internal::add_parametrization(module, name, AnyModule(parametrization), inverse);
}

struct RemoveOptions {
  bool leave_parametrized = true;  // keep the computed value; if false, that of the original
};

// Makes `name` a plain parameter again; the new one is the last of the module's. Throws
// InvalidArgument if it is not parametrized, and with leave_parametrized = false after weight_norm,
// which has two originals.
void remove_parametrizations(const ModuleBase& module, const std::string& name,
                             const RemoveOptions& options = {}, Site site = Site::here());

// Whether the parameter `name` of this module itself, or any if it is empty, is parametrized.
bool is_parametrized(const ModuleBase& module, const std::string& name = "");

}  // namespace parametrize

namespace parametrizations {

struct WeightNormOptions {
  std::string name = "weight";
  // The dim that keeps its own norms. Unset: one norm of the whole parameter.
  std::optional<int64_t> dim = 0;
};

struct SpectralNormOptions {
  std::string name = "weight";
  int64_t n_power_iterations = 1;  // at each call in training
  double eps = 1e-12;              // the least norm that a vector is divided by
  // The dim of the outputs. Unset: 1 for transposed convolutions, else 0.
  std::optional<int64_t> dim = {};
};

namespace internal {
void add_weight_norm(const ModuleBase& module, const WeightNormOptions& options);
void add_spectral_norm(const ModuleBase& module, const SpectralNormOptions& options);
}  // namespace internal

// Computes a parameter as g v / ‖v‖, with its norm and its direction as separate parameters
// (Salimans and Kingma 2016): "parametrizations.weight.original0" is g, with size 1 in all dims but
// `dim`, "parametrizations.weight.original1" is v. Returns the module.
//   nn::Linear layer = nn::utils::parametrizations::weight_norm(nn::Linear(20, 40));
template <class M>

requires std::derived_from<M, ModuleBase> M weight_norm(M module,
                                                        const WeightNormOptions& options = {},
                                                        Site site = Site::here()) {
  const SiteScope scope(site);
  internal::add_weight_norm(module, options);
  return module;
}

// Divides a parameter, as a matrix, by its largest singular value (Miyato et al. 2018), which power
// iterations approximate: "parametrizations.weight.original", and the vectors
// "parametrizations.weight.0._u" and "….0._v". A parameter with one dim is divided by its norm.
// Returns the module.
template <class M>

requires std::derived_from<M, ModuleBase> M spectral_norm(M module,
                                                          const SpectralNormOptions& options = {},
                                                          Site site = Site::here()) {
  const SiteScope scope(site);
  internal::add_spectral_norm(module, options);
  return module;
}

}  // namespace parametrizations

}  // namespace flow::nn::utils

#include "tools/flow_conform/optimizer_spec.h"

#include "nn/optim/adadelta.h"
#include "nn/optim/adafactor.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adam.h"
#include "nn/optim/adamax.h"
#include "nn/optim/adamw.h"
#include "nn/optim/asgd.h"
#include "nn/optim/lamb.h"
#include "nn/optim/muon.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "nn/optim/sgd.h"

namespace flow::conform {

namespace {
using Params = std::map<std::string, Tensor>;

// Arguments that change how PyTorch computes a step, but not its values.
bool is_way_of_working(const std::string& name) {
  return name == "foreach" || name == "fused" || name == "capturable" || name == "differentiable";
}

// Sets the option that an argument names. A null means the default.
template <class Options>
void set_option(Options& o, const std::string& name, const Json& value) {
  if (value.is_null()) return;
  bool is_known = is_way_of_working(name) && value == false;
  const auto take = [&](const char* own, auto& field) {
    if (name != own) return;
    value.get_to(field);
    is_known = true;
  };
  take("lr", o.lr);
  if constexpr (requires { o.maximize; }) take("maximize", o.maximize);
  take("shard_state", o.shard_state);
  if constexpr (requires { o.master_weights; }) take("master_weights", o.master_weights);
  if constexpr (requires { o.weight_decay; }) take("weight_decay", o.weight_decay);
  if constexpr (requires { o.betas; }) take("betas", o.betas);
  if constexpr (requires { o.eps.second; }) {
    if (name == "eps") {
      if (!value.at(0).is_null()) o.eps.first = value.at(0).get<double>();
      o.eps.second = value.at(1);
      is_known = true;
    }
  } else if constexpr (requires { o.eps; }) {
    take("eps", o.eps);
  }
  if constexpr (requires { o.beta2_decay; }) take("beta2_decay", o.beta2_decay);
  if constexpr (requires { o.d; }) take("d", o.d);
  if constexpr (requires { o.amsgrad; }) take("amsgrad", o.amsgrad);
  if constexpr (requires { o.momentum; }) take("momentum", o.momentum);
  if constexpr (requires { o.dampening; }) take("dampening", o.dampening);
  if constexpr (requires { o.nesterov; }) take("nesterov", o.nesterov);
  if constexpr (requires { o.alpha; }) take("alpha", o.alpha);
  if constexpr (requires { o.lambd; }) take("lambd", o.lambd);
  if constexpr (requires { o.t0; }) take("t0", o.t0);
  if constexpr (requires { o.etas; }) take("etas", o.etas);
  if constexpr (requires { o.step_sizes; }) take("step_sizes", o.step_sizes);
  if constexpr (requires { o.centered; }) take("centered", o.centered);
  if constexpr (requires { o.rho; }) take("rho", o.rho);
  if constexpr (requires { o.lr_decay; }) take("lr_decay", o.lr_decay);
  if constexpr (requires { o.initial_accumulator_value; }) {
    take("initial_accumulator_value", o.initial_accumulator_value);
  }
  if constexpr (requires { o.momentum_decay; }) take("momentum_decay", o.momentum_decay);
  if constexpr (requires { o.decoupled_weight_decay; }) {
    take("decoupled_weight_decay", o.decoupled_weight_decay);
  }
  if constexpr (requires { o.ns_coefficients; }) take("ns_coefficients", o.ns_coefficients);
  if constexpr (requires { o.ns_steps; }) take("ns_steps", o.ns_steps);
  if constexpr (requires { o.adjust_lr_fn; }) take("adjust_lr_fn", o.adjust_lr_fn);
  if constexpr (requires { o.adam_w_mode; }) take("adam_w_mode", o.adam_w_mode);
  if (!is_known) throw NotSupported("argument " + name);
}

template <class Optimizer, class Options>
std::unique_ptr<optim::Optimizer> make(const Json& spec, const Params& params) {
  Options options;
  const Json args = spec.value("args", Json::object());
  for (const auto& [name, value] : args.items())
    set_option(options, name, value);
  if (!spec.contains("param_groups") || spec["param_groups"].is_null()) {
    optim::ParamGroup<Options> group{{}, options};
    for (const auto& [name, param] : params)
      group.params.push_back(param);
    return std::make_unique<Optimizer>(std::vector{group});
  }
  const Json& overrides = spec["param_groups"];
  for (const auto& [name, value] : overrides.items()) {
    if (!params.contains(name))
      throw BadSpec("param_groups names the parameter " + name + ", which does not exist");
  }
  std::vector<optim::ParamGroup<Options>> groups;
  for (const auto& [name, param] : params) {
    Options own = options;
    const Json given = overrides.value(name, Json::object());
    for (const auto& [option, value] : given.items())
      set_option(own, option, value);
    groups.push_back({{param}, own});
  }
  return std::make_unique<Optimizer>(groups);
}
}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const Json& spec, const Params& params) {
  const std::string name = spec.at("optimizer");
  if (name == "SGD") return make<optim::SGD, optim::SGDOptions>(spec, params);
  if (name == "Adam") return make<optim::Adam, optim::AdamOptions>(spec, params);
  if (name == "AdamW") return make<optim::AdamW, optim::AdamWOptions>(spec, params);
  if (name == "Adamax") return make<optim::Adamax, optim::AdamaxOptions>(spec, params);
  if (name == "NAdam") return make<optim::NAdam, optim::NAdamOptions>(spec, params);
  if (name == "RAdam") return make<optim::RAdam, optim::RAdamOptions>(spec, params);
  if (name == "RMSprop") return make<optim::RMSprop, optim::RMSpropOptions>(spec, params);
  if (name == "Adagrad") return make<optim::Adagrad, optim::AdagradOptions>(spec, params);
  if (name == "Adafactor") return make<optim::Adafactor, optim::AdafactorOptions>(spec, params);
  if (name == "Adadelta") return make<optim::Adadelta, optim::AdadeltaOptions>(spec, params);
  if (name == "LAMB") return make<optim::LAMB, optim::LAMBOptions>(spec, params);
  if (name == "Muon") return make<optim::Muon, optim::MuonOptions>(spec, params);
  if (name == "ASGD") return make<optim::ASGD, optim::ASGDOptions>(spec, params);
  if (name == "Rprop") return make<optim::Rprop, optim::RpropOptions>(spec, params);
  throw NotSupported("optimizer " + name);
}

}  // namespace flow::conform

#include "tools/flow_conform/optim_command.h"

#include <cmath>
#include <fstream>

#include "core/context.h"
#include "core/default_dtype.h"
#include "eager/runtime.h"
#include "nn/clip_grad.h"
#include "nn/optim/sgd.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/shape/concat.h"
#include "tools/flow_conform/optimizer_spec.h"
#include "tools/flow_conform/scheduler_spec.h"

namespace flow::conform {

namespace {

constexpr int64_t kNumRates = 50;
constexpr size_t kParamPrefix = 6;  // "param."

void check_device(const RunOptions& run) {
  if (run.device != "cpu") throw NotSupported("device " + run.device);
}

// Returns the norm before clipping, or an undefined tensor if values are clipped.
Tensor clip(const Json& spec, const std::vector<Tensor>& params) {
  const std::string kind = spec.at("kind");
  if (kind == "value") {
    nn::utils::clip_grad_value_(params, spec.at("clip_value"));
    return {};
  }
  if (kind != "norm") throw NotSupported("clipping by " + kind);
  double norm_type = 2;
  if (spec.contains("norm_type")) convert(spec["norm_type"], norm_type);
  return nn::utils::clip_grad_norm_(params, spec.at("max_norm"), {.norm_type = norm_type});
}

// The parameters of one optimizer over the steps.
nn::StateDict trajectories(const Json& spec, int64_t steps, const nn::StateDict& inputs) {
  std::map<std::string, Tensor> params;
  for (const auto& [name, value] : inputs) {
    if (name.starts_with("param.")) {
      params[name.substr(kParamPrefix)] = value.clone().requires_grad_();
    }
  }
  const auto optimizer = make_optimizer(spec, params);
  std::map<std::string, std::vector<Tensor>> values;
  for (int64_t step = 0; step < steps; ++step) {
    for (const auto& [name, param] : params) {
      const auto grads = inputs.find("grads." + name);
      if (grads == inputs.end()) throw BadSpec("the tensor grads." + name + " is missing");
      param.set_grad(grads->second.select(0, step).clone());
    }
    if (spec.contains("clip")) {
      const Tensor total = clip(spec["clip"], optimizer->parameters());
      if (total.defined()) values["total_norm"].push_back(total);
    }
    optimizer->step();
    for (const auto& [name, param] : params)
      values["traj." + name].push_back(param.detach().clone());
  }
  nn::StateDict results;
  for (const auto& [name, list] : values)
    results[str(std::string(spec.at("id")), '/', name)] = stack(list);
  return results;
}

std::vector<double> rates(const Json& spec) {
  const Tensor parameter = zeros({1}, {.requires_grad = true});
  optim::SGD optimizer({parameter}, {.lr = spec.at("base_lr"), .momentum = 0.9});
  ScheduleCase schedule = make_schedule(spec, optimizer);
  const Json metrics = spec.value("metrics", Json::array());
  std::vector<double> rates;
  for (int64_t step = 0; step < kNumRates; ++step) {
    rates.push_back(optimizer.lr());
    optimizer.step();
    const auto i = static_cast<size_t>(step);
    schedule.step(i < metrics.size() ? metrics[i].get<double>() : 0);
  }
  return rates;
}

}  // namespace

ExitCode run_optimizers(const OptimOptions& options) {
  set_default_dtype(options.run.floating);
  return run_spec(options.spec, [&](const Json& spec) {
    nn::StateDict inputs = nn::load_safetensors(path_next_to(options.spec, spec.at("inputs")));
    for (auto& [name, value] : inputs) {
      if (is_floating(value.dtype())) value = cast(value, options.run.floating);
    }
    const int64_t steps = spec.at("steps");
    nn::StateDict results;
    Report report;
    for (const char* list : {"optimizers", "clip"}) {
      if (!spec.contains(list)) continue;
      for (const Json& one : spec[list]) {
        report.run(one.at("id"), [&] {
          check_device(options.run);
          results.merge(trajectories(one, steps, inputs));
        });
      }
    }
    if (env::rank() == 0) nn::save_safetensors(options.out, results);
    return report.exit_code();
  });
}

ExitCode run_schedulers(const OptimOptions& options) {
  return run_spec(options.spec, [&](const Json& spec) {
    Json results = Json::object();
    Report report;
    if (spec.contains("schedulers")) {
      for (const Json& one : spec["schedulers"]) {
        const std::string id = one.at("id");
        report.run(id, [&] {
          check_device(options.run);
          results[id] = rates(one);
        });
      }
    }
    if (env::rank() == 0 && !(std::ofstream(options.out) << results.dump(1) << '\n')) {
      throw IoError("[flow-conform] cannot write " + options.out);
    }
    return report.exit_code();
  });
}

}  // namespace flow::conform

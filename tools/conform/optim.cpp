// flow-conform optim and scheduler.
#include <cmath>

#include "core/error.h"
#include "nn/clip_grad.h"
#include "nn/file.h"
#include "nn/optim/sgd.h"
#include "nn/safetensors.h"
#include "ops/concat.h"
#include "ops/creation.h"
#include "ops/slice.h"
#include "tools/conform/optim_cases.h"
#include "tools/conform/scheduler_cases.h"

namespace flow::conform {

namespace {
constexpr size_t kEpochs = 50;

std::vector<Tensor> clip(const Json& spec, const std::vector<Tensor>& params) {
  const Json& clip = spec.at("clip");
  if (clip.at("kind") == "value") {
    nn::utils::clip_grad_value_(params, to_number(clip.at("clip_value")));
    return {};
  }
  const double norm_type = clip.contains("norm_type") ? to_number(clip["norm_type"]) : 2;
  return {
      nn::utils::clip_grad_norm_(params, to_number(clip.at("max_norm")), {.norm_type = norm_type})};
}
}  // namespace

nn::StateDict run_optim_case(const Json& spec, int64_t steps, const nn::StateDict& inputs,
                             int64_t resume_at) {
  std::map<std::string, Tensor> params;
  for (const auto& [name, value] : inputs) {
    if (name.starts_with("param.")) params[name.substr(6)] = value.clone().requires_grad_();
  }
  auto optimizer = make_optimizer(spec, params);
  std::map<std::string, std::vector<Tensor>> trajectories;
  std::vector<Tensor> norms;
  for (int64_t step = 0; step < steps; ++step) {
    for (const auto& [name, param] : params)
      param.set_grad(inputs.at("grads." + name).select(0, step).clone());
    if (spec.contains("clip")) {
      for (const Tensor& norm : clip(spec, optimizer->parameters()))
        norms.push_back(norm);
    }
    optimizer->step();
    for (const auto& [name, param] : params)
      trajectories[name].push_back(param.detach().clone());
    if (step == resume_at) {
      auto next = make_optimizer(spec, params);
      next->load_state_dict(optimizer->state_dict());
      optimizer = std::move(next);
    }
  }
  nn::StateDict out;
  for (const auto& [name, values] : trajectories)
    out.emplace("traj." + name, stack(values));
  if (!norms.empty()) out.emplace("total_norm", stack(norms));
  return out;
}

Rates run_schedule_case(const Json& spec, size_t resume_at) {
  const Tensor p = zeros({1}, {.requires_grad = true});
  const auto make = [&] {
    return std::make_unique<optim::SGD>(
        std::vector<Tensor>{p}, optim::SGDOptions{.lr = spec.at("base_lr"), .momentum = 0.9});
  };
  auto optimizer = make();
  ScheduleCase schedule = make_schedule(spec, *optimizer);
  Rates rates;
  for (size_t epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == resume_at) {
      auto next = make();
      ScheduleCase next_schedule = make_schedule(spec, *next);
      next->load_state_dict(optimizer->state_dict());
      next_schedule.load_state_dict(schedule.state_dict());
      optimizer = std::move(next);
      schedule = std::move(next_schedule);
    }
    rates.lr.push_back(optimizer->lr());
    rates.momentum.push_back(optimizer->momentum().value());
    if (epoch + 1 == kEpochs) break;
    schedule.step(spec.contains("metrics") ? to_number(spec["metrics"].at(epoch)) : 0);
  }
  return rates;
}

int run_optim(const Spec& spec, const Options& options, const std::string& out) {
  const nn::StateDict inputs = spec.tensors(spec.json.at("inputs"), options);
  Report report;
  nn::StateDict results;
  for (const char* list : {"optimizers", "clip"}) {
    for (const Json& item : spec.json.value(list, Json::array())) {
      const std::string id = item.at("id");
      try {
        for (const auto& [name, tensor] : run_optim_case(item, spec.json.at("steps"), inputs))
          results.emplace(id + "/" + name, tensor);
      } catch (const NotSupported& error) {
        report.leave_out(id, error.what());
      }
    }
  }
  nn::save_safetensors(out, results);
  return report.status();
}

int run_scheduler(const Spec& spec, const std::string& out) {
  Report report;
  Json results = Json::object();
  for (const Json& item : spec.json.value("schedulers", Json::array())) {
    const std::string id = item.at("id");
    try {
      results[id] = run_schedule_case(item).lr;
    } catch (const NotSupported& error) {
      report.leave_out(id, error.what());
    }
  }
  const std::string text = results.dump() + "\n";
  nn::OutputFile file(out);
  file.write(text.data(), text.size());
  file.commit();
  return report.status();
}

}  // namespace flow::conform

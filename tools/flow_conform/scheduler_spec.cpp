#include "tools/flow_conform/scheduler_spec.h"

#include "nn/optim/lr_combine.h"
#include "nn/optim/lr_cycle.h"
#include "nn/optim/lr_decay.h"

namespace flow::conform {

namespace {
namespace lrs = optim::lr_scheduler;
using Owned = std::vector<std::unique_ptr<lrs::LRScheduler>>;

// Reads arguments by name, and checks that all of them were read.
class Args {
 public:
  explicit Args(const Json& args) : args_(args) {}

  template <class T>
  Args& take(const char* name, T& field) {
    if (const Json* value = find(name)) value->get_to(field);
    return *this;
  }

  Args& take(const char* name, std::optional<int64_t>& field) {
    if (const Json* value = find(name)) field = value->get<int64_t>();
    return *this;
  }

  // Reads a number or a list of numbers.
  Args& take(const char* name, flow::optim::lr_scheduler::PerGroup& field) {
    const Json* value = find(name);
    if (value == nullptr) return *this;
    field = value->is_array() ? value->get<std::vector<double>>()
                              : std::vector<double>{value->get<double>()};
    return *this;
  }

  void done() const {
    if (num_taken_ != args_.size()) throw NotSupported("one of the arguments " + args_.dump());
  }

 private:
  // Returns null if the argument is absent or None.
  const Json* find(const char* name) {
    const auto found = args_.find(name);
    if (found == args_.end()) return nullptr;
    ++num_taken_;
    return found->is_null() ? nullptr : &*found;
  }

  const Json& args_;
  size_t num_taken_ = 0;
};

lrs::LambdaLROptions lambda_options(const Json& args) {
  const auto table = args.at("lr_lambda").get<std::vector<double>>();
  if (table.empty()) throw BadSpec("lr_lambda has no rates");
  return {.lr_lambda = [table](int64_t epoch) {
    return table[std::min(static_cast<size_t>(epoch), table.size() - 1)];
  }};
}

void add(Owned& owned, const Json& spec, optim::Optimizer& optimizer);

std::vector<lrs::LRScheduler*> add_parts(Owned& owned, const Json& list,
                                         optim::Optimizer& optimizer) {
  std::vector<lrs::LRScheduler*> parts;
  for (const Json& part : list) {
    add(owned, part, optimizer);
    parts.push_back(owned.back().get());
  }
  return parts;
}

template <class Scheduler, class Options>
void add_one(Owned& owned, optim::Optimizer& optimizer, const Args& args, const Options& options) {
  args.done();
  owned.push_back(std::make_unique<Scheduler>(optimizer, options));
}

void add_cycle(Owned& owned, const std::string& name, Args& args, optim::Optimizer& optimizer) {
  if (name == "CyclicLR") {
    lrs::CyclicLROptions o;
    args.take("base_lr", o.base_lr).take("max_lr", o.max_lr).take("step_size_up", o.step_size_up);
    args.take("step_size_down", o.step_size_down).take("mode", o.mode).take("gamma", o.gamma);
    args.take("cycle_momentum", o.cycle_momentum).take("base_momentum", o.base_momentum);
    args.take("max_momentum", o.max_momentum);
    add_one<lrs::CyclicLR>(owned, optimizer, args, o);
  } else if (name == "OneCycleLR") {
    lrs::OneCycleLROptions o;
    args.take("max_lr", o.max_lr).take("total_steps", o.total_steps).take("epochs", o.epochs);
    args.take("steps_per_epoch", o.steps_per_epoch).take("pct_start", o.pct_start);
    args.take("anneal_strategy", o.anneal_strategy).take("cycle_momentum", o.cycle_momentum);
    args.take("base_momentum", o.base_momentum).take("max_momentum", o.max_momentum);
    args.take("div_factor", o.div_factor).take("final_div_factor", o.final_div_factor);
    args.take("three_phase", o.three_phase);
    add_one<lrs::OneCycleLR>(owned, optimizer, args, o);
  } else if (name == "CosineAnnealingLR") {
    lrs::CosineAnnealingLROptions o;
    args.take("T_max", o.T_max).take("eta_min", o.eta_min);
    add_one<lrs::CosineAnnealingLR>(owned, optimizer, args, o);
  } else if (name == "CosineAnnealingWarmRestarts") {
    lrs::CosineAnnealingWarmRestartsOptions o;
    args.take("T_0", o.T_0).take("T_mult", o.T_mult).take("eta_min", o.eta_min);
    add_one<lrs::CosineAnnealingWarmRestarts>(owned, optimizer, args, o);
  } else {
    throw NotSupported("scheduler " + name);
  }
}

void add(Owned& owned, const Json& spec, optim::Optimizer& optimizer) {
  const std::string name = spec.at("scheduler");
  const Json json = spec.value("args", Json::object());
  Args args(json);
  if (name == "LambdaLR") {
    owned.push_back(std::make_unique<lrs::LambdaLR>(optimizer, lambda_options(json)));
  } else if (name == "MultiplicativeLR") {
    owned.push_back(std::make_unique<lrs::MultiplicativeLR>(optimizer, lambda_options(json)));
  } else if (name == "StepLR") {
    lrs::StepLROptions o;
    args.take("step_size", o.step_size).take("gamma", o.gamma);
    add_one<lrs::StepLR>(owned, optimizer, args, o);
  } else if (name == "MultiStepLR") {
    lrs::MultiStepLROptions o;
    args.take("milestones", o.milestones).take("gamma", o.gamma);
    add_one<lrs::MultiStepLR>(owned, optimizer, args, o);
  } else if (name == "ConstantLR") {
    lrs::ConstantLROptions o;
    args.take("factor", o.factor).take("total_iters", o.total_iters);
    add_one<lrs::ConstantLR>(owned, optimizer, args, o);
  } else if (name == "LinearLR") {
    lrs::LinearLROptions o;
    args.take("start_factor", o.start_factor).take("end_factor", o.end_factor);
    args.take("total_iters", o.total_iters);
    add_one<lrs::LinearLR>(owned, optimizer, args, o);
  } else if (name == "ExponentialLR") {
    lrs::ExponentialLROptions o;
    args.take("gamma", o.gamma);
    add_one<lrs::ExponentialLR>(owned, optimizer, args, o);
  } else if (name == "PolynomialLR") {
    lrs::PolynomialLROptions o;
    args.take("total_iters", o.total_iters).take("power", o.power);
    add_one<lrs::PolynomialLR>(owned, optimizer, args, o);
  } else if (name == "ChainedScheduler") {
    const auto parts = add_parts(owned, json["schedulers"], optimizer);
    owned.push_back(std::make_unique<lrs::ChainedScheduler>(parts));
  } else if (name == "SequentialLR") {
    const auto parts = add_parts(owned, json["schedulers"], optimizer);
    lrs::SequentialLROptions o{.milestones = json["milestones"]};
    owned.push_back(std::make_unique<lrs::SequentialLR>(optimizer, parts, o));
  } else {
    add_cycle(owned, name, args, optimizer);
  }
}
}  // namespace

void ScheduleCase::step(double metric) {
  if (plateau) {
    plateau->step(metric);
  } else {
    owned.back()->step();
  }
}

nn::StateDict ScheduleCase::state_dict() const {
  return plateau ? plateau->state_dict() : owned.back()->state_dict();
}

void ScheduleCase::load_state_dict(const nn::StateDict& state) {
  if (plateau) {
    plateau->load_state_dict(state);
  } else {
    owned.back()->load_state_dict(state);
  }
}

ScheduleCase make_schedule(const Json& spec, optim::Optimizer& optimizer) {
  ScheduleCase schedule;
  if (spec.at("scheduler") != "ReduceLROnPlateau") {
    add(schedule.owned, spec, optimizer);
    return schedule;
  }
  lrs::ReduceLROnPlateauOptions o;
  const Json json = spec.value("args", Json::object());
  Args args(json);
  args.take("mode", o.mode).take("factor", o.factor).take("patience", o.patience);
  args.take("threshold", o.threshold).take("threshold_mode", o.threshold_mode);
  args.take("cooldown", o.cooldown).take("min_lr", o.min_lr).take("eps", o.eps);
  args.done();
  schedule.plateau = std::make_unique<lrs::ReduceLROnPlateau>(optimizer, o);
  return schedule;
}

}  // namespace flow::conform

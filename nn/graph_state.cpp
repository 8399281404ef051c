// The state of a graph: that of its modules, optimizers, schedules and GradScaler in one
// dictionary.
#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "nn/checkpoint_file.h"
#include "nn/graph.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/optim/optimizer.h"

namespace flow::nn {

namespace {

constexpr const char* kOptimizer = "optimizer";
constexpr const char* kSchedule = "lr_scheduler";
constexpr const char* kScaler = "grad_scaler";

bool is_reserved(std::string_view name) {
  return name == kOptimizer || name == kSchedule || name == kScaler;
}

// Throws InvalidArgument for a parameter that no module names.
void check_is_named(const optim::Optimizer& optimizer, size_t number, const NamedModules& modules) {
  std::vector<Tensor> named;
  for (const auto& [name, module] : modules) {
    const std::vector<Tensor> own = module.parameters();
    named.insert(named.end(), own.begin(), own.end());
  }
  const std::vector<Tensor> parameters = optimizer.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto is_it = [&](const Tensor& other) { return other.is_same(parameters[i]); };
    if (std::any_of(named.begin(), named.end(), is_it)) continue;
    throw InvalidArgument(
        str("[graph] parameter ", i, " of optimizer ", number, ", ", parameters[i].meta(),
            ", belongs to no registered module, so state_dict() would miss it; register the module "
            "in the constructor of the graph: model(register_module(\"model\", m))"));
  }
}

// Gives each name to the part that it begins with, and collects in `problems` what does not fit.
std::map<std::string, StateDict> split_by_part(const StateDict& state,
                                               const std::vector<std::string>& parts,
                                               std::string& problems) {
  std::map<std::string, StateDict> split;
  for (const auto& entry : state) {
    const std::string& name = entry.first;
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const std::string& candidate) {
      return name.starts_with(candidate + ".");
    });
    if (part == parts.end()) {
      problems += str("\n  unexpected: ", name);
    } else {
      split[*part].emplace(name.substr(part->size() + 1), entry.second);
    }
  }
  return split;
}

}  // namespace

void GraphBase::add_module(std::string_view name, const ModuleBase& module) {
  const bool is_taken = std::any_of(modules_.begin(), modules_.end(),
                                    [&](const auto& other) { return other.first == name; });
  if (name.empty() || name.find('.') != std::string_view::npos || is_reserved(name) || is_taken) {
    throw InvalidArgument(str("[graph] '", name, "' cannot name a module of the graph: ",
                              is_taken ? "another module has this name"
                                       : "a name must not be empty, contain a dot, or be "
                                         "optimizer, lr_scheduler or grad_scaler",
                              "; choose another name"));
  }
  modules_.emplace_back(name, module);
}

std::vector<GraphBase::StatePart> GraphBase::state_parts() const {
  std::vector<StatePart> parts;
  for (const auto& [name, module] : modules_) {
    parts.push_back(
        {name, [module = module] { return module.state_dict(); },
         [module = module](const StateDict& state) mutable { module.load_state_dict(state); }});
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optim::Optimizer* optimizer = optimizers_[i].optimizer;
    const bool is_sharded = config_.zero_.stage > 0;
    parts.push_back({str(kOptimizer, '.', i), [optimizer] { return optimizer->state_dict(); },
                     [optimizer, is_sharded](const StateDict& state) {
                       if (is_sharded) optimizer->shard_state();
                       optimizer->load_state_dict(state);
                     }});
    auto* schedule = optimizers_[i].options.lr_scheduler;
    if (schedule == nullptr) continue;
    parts.push_back({str(kSchedule, '.', i), [schedule] { return schedule->state_dict(); },
                     [schedule](const StateDict& state) { schedule->load_state_dict(state); }});
  }
  if (optim::GradScaler* scaler = config_.grad_scaler()) {
    parts.push_back({kScaler, [scaler] { return scaler->state_dict(); },
                     [scaler](const StateDict& state) { scaler->load_state_dict(state); }});
  }
  return parts;
}

StateDict GraphBase::state_dict() const {
  for (size_t i = 0; i < optimizers_.size(); ++i)
    check_is_named(*optimizers_[i].optimizer, i, modules_);
  std::vector<std::pair<std::string, StateDict>> states;
  for (const StatePart& part : state_parts())
    states.emplace_back(part.name, part.save());
  return joined(states);
}

void GraphBase::load_state_dict(const StateDict& state) {
  const std::vector<StatePart> parts = state_parts();
  std::vector<std::string> names;
  for (const StatePart& part : parts)
    names.push_back(part.name);
  std::string problems;
  std::map<std::string, StateDict> split = split_by_part(state, names, problems);
  for (const StatePart& part : parts) {
    if (!split.contains(part.name) && !part.save().empty()) {
      problems += str("\n  missing: ", part.name);
    }
  }
  if (!problems.empty()) {
    throw InvalidArgument(str("[graph] the state does not fit the graph:", problems,
                              "\nnothing was loaded; load the state of a graph with the same "
                              "modules, optimizers, schedules and scaler"));
  }
  for (const StatePart& part : parts)
    part.load(split[part.name]);
}

}  // namespace flow::nn

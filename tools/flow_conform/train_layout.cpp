#include "tools/flow_conform/train_layout.h"

#include <charconv>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/tensor_meta.h"
#include "nn/file.h"
#include "nn/graph_module.h"
#include "ops/shape/slice.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

namespace {

// Consecutive modules with their names.
using Chain = std::vector<nn::NamedModules>;

// The modules of a model in the order in which they run: its sub-modules, or the elements of a list
// of blocks. A module that is not called by itself belongs to the one before it.
Chain chain_of(const nn::ModuleBase& model) {
  Chain chain;
  for (const auto& [name, child] : model.children()) {
    if (child.parameters().empty()) continue;
    if (name == "h" || name == "features") {
      for (const auto& [number, block] : child.children())
        chain.push_back({{str(name, '.', number), block}});
    } else if (name == "wpe" || name == "lm_head") {
      chain.back().emplace_back(name, child);
    } else {
      chain.push_back({{name, child}});
    }
  }
  return chain;
}

// The number N in "dpN", which follows the letters of `kind`.
int64_t count_in(const std::string& word, std::string_view kind) {
  int64_t count = 0;
  const char* end = word.data() + word.size();
  const auto [stop, status] = std::from_chars(word.data() + kind.size(), end, count);
  if (status != std::errc() || stop != end || count < 1) throw NotSupported("layout " + word);
  return count;
}

bool has_part(const std::string& name, const std::string& part) {
  return name.find(part) != std::string::npos;
}

// The dim along which a parameter is split over tensor-parallel ranks, or -1 if it stays whole.
// Columns follow rows, so that the values between them stay split.
int64_t split_dim(const std::string& name) {
  const bool is_weight = name.ends_with(".weight");
  for (const char* rows :
       {"fc1.", "fc3.", "fc5.", "hidden.", ".c_q.", ".c_k.", ".c_v.", ".c_fc."}) {
    if (has_part(name, rows)) return 0;
  }
  for (const char* columns : {"fc2.", "fc4.", "fc6.", "outlayer.", ".c_proj.", "classifier."}) {
    if (has_part(name, columns)) return is_weight ? 1 : -1;
  }
  return -1;
}

}  // namespace

void TrainLayout::parse(const std::string& word) {
  if (word.starts_with("ddp")) {
    data_ = count_in(word, "ddp");
    has_replicas_ = true;
  } else if (word.starts_with("dp")) {
    data_ = count_in(word, "dp");
  } else if (word.starts_with("tp")) {
    tensor_ = count_in(word, "tp");
  } else if (word.starts_with("pp")) {
    workers_ = count_in(word, "pp");
  } else if (word.starts_with("zero")) {
    zero_stage_ = count_in(word, "zero");
  } else if (word == "recompute") {
    recomputes_ = true;
  } else if (word == "amp") {
    is_mixed_precision_ = true;
  } else {
    throw NotSupported("layout " + word);
  }
}

void TrainLayout::check_together(const std::string& text) const {
  if (has_replicas_ && text.find('+') != std::string::npos) {
    throw NotSupported("layout " + text + ", because ddp trains local tensors");
  }
  const int64_t num_ranks = workers_ * data_ * tensor_;
  if (num_ranks != env::world_size()) {
    throw BadSpec(
        str("layout ", text, " needs ", num_ranks, " ranks, but the job has ", env::world_size()));
  }
}

void TrainLayout::assign_stages(const Pipelining& pipelining) {
  using Kind = pipeline::ScheduleRule::Kind;
  worker_of_ = {0};
  if (workers_ == 1) return;
  const pipeline::ScheduleRule& rule = pipelining.rule;
  int64_t num_stages = workers_;
  if (rule.kind == Kind::kInterleaved) num_stages *= rule.chunks;
  if (rule.kind == Kind::kZbV) num_stages *= 2;
  if (rule.kind == Kind::kTable) num_stages = pipeline::parse_schedule(rule.table).num_stages;
  const pipeline::Schedule schedule =
      pipeline::make_schedule(rule, num_stages, pipelining.micro_batches);
  if (static_cast<int64_t>(schedule.actions.size()) != workers_) {
    throw BadSpec(str("the schedule has ", schedule.actions.size(), " workers, but the layout has ",
                      workers_));
  }
  worker_of_.assign(static_cast<size_t>(num_stages), 0);
  for (size_t worker = 0; worker < schedule.actions.size(); ++worker) {
    for (const pipeline::Action& action : schedule.actions[worker])
      worker_of_[static_cast<size_t>(action.stage)] = static_cast<int64_t>(worker);
  }
}

pipeline::ScheduleRule schedule_named(const std::string& text) {
  if (text.empty()) return {};
  if (text == "interleaved") return pipeline::interleaved(2);
  if (std::filesystem::exists(text)) return pipeline::schedule_table(nn::read_text(text));
  try {
    return pipeline::parse_schedule_rule(text);
  } catch (const InvalidArgument& error) {
    throw NotSupported(error.what());
  }
}

TrainLayout::TrainLayout(const std::string& text, const Pipelining& pipelining) {
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, '+');)
    parse(word);
  assign_stages(pipelining);
  if (text.empty()) return;
  check_together(text);
  if (has_replicas_ || (env::world_size() == 1 && zero_stage_ == 0)) return;
  Shape shape;
  if (data_ > 1 || tensor_ == 1) shape.push_back(data_);
  if (tensor_ > 1) shape.push_back(tensor_);
  std::vector<int64_t> ranks(static_cast<size_t>(data_ * tensor_));
  for (const int64_t worker : worker_of_) {
    std::iota(ranks.begin(), ranks.end(), worker * data_ * tensor_);
    placements_.emplace_back(DeviceType::kCpu, shape, ranks);
  }
}

NdSbp TrainLayout::nd_sbp(Sbp data, Sbp tensor) const {
  NdSbp nd_sbp;
  if (data_ > 1 || tensor_ == 1) nd_sbp.push_back(data);
  if (tensor_ > 1) nd_sbp.push_back(tensor);
  return nd_sbp;
}

// `prefix`: the beginning of the names of the module's tensors in the model.
void TrainLayout::place(nn::ModuleBase& module, const std::string& prefix, int64_t stage) const {
  nn::SbpPatterns patterns;
  for (const auto& [name, value] : module.named_parameters()) {
    const int64_t dim = split_dim(prefix + name);
    const Sbp tensor = dim < 0 ? sbp::broadcast : sbp::split(dim);
    patterns.emplace_back(name, nd_sbp(sbp::broadcast, tensor));
  }
  for (const auto& [name, value] : module.named_buffers())
    patterns.emplace_back(name, nd_sbp(sbp::broadcast, sbp::broadcast));
  module.to_global(placements_[static_cast<size_t>(stage)], patterns);
}

void TrainLayout::place_stages(const nn::ModuleBase& model) const {
  const Chain chain = chain_of(model);
  const auto length = static_cast<int64_t>(chain.size());
  if (length < num_stages()) {
    throw NotSupported(str(num_stages(), " stages for ", length, " modules"));
  }
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    const Range part = balanced_part(length, num_stages(), stage);
    for (int64_t i = part.begin; i < part.begin + part.size; ++i) {
      for (auto [name, module] : chain[static_cast<size_t>(i)]) {
        place(module, name + '.', stage);
        nn::graph_module(module).set_stage(stage, placements_[static_cast<size_t>(stage)]);
      }
    }
  }
}

void TrainLayout::lay_out(nn::ModuleBase& model) const {
  if (num_stages() > 1) {
    place_stages(model);
  } else if (is_global()) {
    place(model, "", 0);
  }
  if (!recomputes_) return;
  for (const nn::NamedModules& modules : chain_of(model)) {
    for (const auto& [name, module] : modules)
      nn::graph_module(module).set_activation_checkpointing();
  }
}

Tensor TrainLayout::rows(const Tensor& batch, int64_t stage) const {
  if (has_replicas_) {
    const Range own = balanced_part(batch.size(0), data_, env::rank());
    return slice(batch, 0, own.begin, own.begin + own.size);
  }
  if (!is_global()) return batch;
  const Placement& placement = placements_[static_cast<size_t>(stage)];
  return batch.to_global({.placement = placement, .sbp = nd_sbp(sbp::broadcast, sbp::broadcast)})
      .to_global({.sbp = nd_sbp(sbp::split(0), sbp::broadcast)});
}

}  // namespace flow::conform

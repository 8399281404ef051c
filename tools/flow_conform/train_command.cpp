#include "tools/flow_conform/train_command.h"

#include <filesystem>

#include "core/allocator.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "core/grad_mode.h"
#include "core/tensor_meta.h"
#include "eager/runtime.h"
#include "nn/comm.h"
#include "nn/safetensors.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "tools/flow_conform/optimizer_spec.h"
#include "tools/flow_conform/train_job.h"
#include "tools/flow_conform/train_layout.h"
#include "tools/flow_conform/train_log.h"
#include "tools/flow_conform/train_model.h"
#include "tools/flow_conform/train_step.h"

namespace flow::conform {

namespace {

// Whole tensors, on every rank.
nn::StateDict gathered(const nn::StateDict& tensors) {
  nn::StateDict whole;
  for (const auto& [name, value] : tensors)
    whole[name] = value.detach().full();
  return whole;
}

nn::StateDict widened(nn::StateDict tensors, DType floating) {
  for (auto& [name, value] : tensors) {
    if (is_floating(value.dtype())) value = cast(value, floating);
  }
  return tensors;
}

// A table of actions determines the number of micro-batches.
Pipelining pipelining_of(const TrainOptions& options) {
  Pipelining pipelining{.rule = schedule_named(options.schedule),
                        .micro_batches = std::max<int64_t>(options.micro_batches, 1)};
  if (options.micro_batches == 0 && !pipelining.rule.table.empty()) {
    pipelining.micro_batches = pipeline::parse_schedule(pipelining.rule.table).num_micro_batches;
  }
  return pipelining;
}

class Training {
 public:
  Training(const TrainOptions& options, const Json& spec)
      : options_(options),
        spec_(spec),
        folder_(options.folder),
        pipelining_(pipelining_of(options)),
        layout_(options.layout, pipelining_),
        data_(tensors_of("data")),
        other_bytes_(memory_stats().bytes_in_use),
        model_(make_model(spec.at("model"), options.run.floating, tensors_of("init"))) {
    layout_.lay_out(model_);
    std::map<std::string, Tensor> params;
    for (const auto& [name, param] : model_.named_parameters())
      params.emplace(name, param);
    Json args = spec.value("optimizer_args", Json::object());
    if (layout_.zero_stage() > 0) args["shard_state"] = true;
    optimizer_ = make_optimizer({{"optimizer", spec.at("optimizer")}, {"args", args}}, params);
    make_step();
  }

  void run() {
    const int64_t steps = options_.steps >= 0 ? options_.steps : spec_.at("steps").get<int64_t>();
    constexpr int64_t kToTimeline = 5;  // the first step, one warm-up step, three measured steps
    if (!options_.timeline.empty() && (graph_ == nullptr || steps < kToTimeline)) {
      throw BadSpec(
          str("--timeline measures three steps of a graph after the first two; give --graph or a "
              "pipeline, and at least ",
              kToTimeline, " steps"));
    }
    std::filesystem::create_directories(folder_);
    for (int64_t i = 0; i < steps; ++i)
      run_step(i);
    save("final.safetensors", model_.state_dict());
    write("log.jsonl", log_);
    if (graph_ != nullptr) write("summary.json", summary_of(graph_->record()));
  }

 private:
  nn::StateDict tensors_of(const char* key) const {
    return widened(nn::load_safetensors(path_next_to(options_.spec, spec_.at(key))),
                   options_.run.floating);
  }

  void make_step() {
    const bool in_graph = options_.in_graph || options_.micro_batches > 0 ||
                          !options_.schedule.empty() || layout_.num_stages() > 1;
    if (!in_graph) {
      if (layout_.recomputes()) throw NotSupported("recompute without --graph");
      if (layout_.zero_stage() > 1) throw NotSupported(str("zero", layout_.zero_stage()));
      step_ = std::make_unique<EagerStep>(model_, *optimizer_, layout_);
      return;
    }
    if (layout_.zero_stage() > 3) throw NotSupported(str("zero", layout_.zero_stage()));
    auto graph = std::make_unique<GraphStep>(
        model_, *optimizer_, layout_,
        GraphStepOptions{
            .pipelining = pipelining_, .other_bytes = other_bytes_, .timeline = options_.timeline});
    graph_ = graph.get();
    step_ = std::move(graph);
  }

  void run_step(int64_t number) {
    const Tensor& x = data_.at("x");
    const int64_t batch = number % x.size(0);
    const Tensor inputs = layout_.inputs(x.select(0, batch).clone());
    const Tensor targets = layout_.targets(data_.at("y").select(0, batch).clone());
    const double rate = optimizer_->lr();
    const StepResult result = step_->run(inputs, targets, number == 0);
    if (number == 0) save("grad_step0.safetensors", as_in_files(gathered(result.gradients)));
    log_ += log_line(number, loss_of_all(result.loss, x.size(1)), result.grad_norm, rate);
  }

  // The mean over the rows of all replicas.
  double loss_of_all(const Tensor& loss, int64_t num_rows) const {
    if (!layout_.has_replicas()) return loss.item<double>();
    const NoGradGuard no_grad;
    const auto own =
        static_cast<double>(balanced_part(num_rows, env::world_size(), env::rank()).size);
    return comm::all_reduce(loss * own).item<double>() / static_cast<double>(num_rows);
  }

  // Returns whole tensors; every rank must call it.
  void save(const char* name, const nn::StateDict& tensors) const {
    const nn::StateDict whole = gathered(tensors);
    if (env::rank() == 0) nn::save_safetensors((folder_ / name).string(), whole);
  }

  void write(const char* name, const std::string& text) const {
    if (env::rank() == 0) write_text((folder_ / name).string(), text);
  }

  const TrainOptions& options_;
  const Json& spec_;
  std::filesystem::path folder_;
  Pipelining pipelining_;
  TrainLayout layout_;
  nn::StateDict data_;
  int64_t other_bytes_;  // held by the rank, but not part of the training
  nn::AnyModule model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<TrainStep> step_;
  GraphStep* graph_ = nullptr;  // set if the step is a graph
  std::string log_;
};

}  // namespace

ExitCode run_training(const TrainOptions& options) {
  if (const auto layout = job_layout(options.layout)) return run_job_training(options, *layout);
  set_default_dtype(options.run.floating);
  return run_spec(options.spec, [&](const Json& spec) {
    Report report;
    report.run("train", [&] {
      if (options.run.device != "cpu") throw NotSupported("device " + options.run.device);
      Training(options, spec).run();
    });
    return report.exit_code();
  });
}

}  // namespace flow::conform

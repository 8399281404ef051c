#include "tools/flow_conform/train_command.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "autograd/grad_mode.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "core/tensor_meta.h"
#include "eager/runtime.h"
#include "nn/clip_grad.h"
#include "nn/comm.h"
#include "nn/file.h"
#include "nn/models/gpt.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "nn/models/mobilenet.h"
#include "nn/parallel/distributed.h"
#include "nn/safetensors.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/cross_entropy.h"
#include "tools/flow_conform/optimizer_spec.h"
#include "tools/flow_conform/train_layout.h"

namespace flow::conform {

namespace {

std::string shortest(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// What the parameters of one name in files are called: GPT's three projections are joined there.
nn::StateDict as_in_files(const nn::StateDict& tensors) {
  constexpr std::string_view kQuery = ".attn.c_q.";
  nn::StateDict joined = tensors;
  for (const auto& [name, query] : tensors) {
    const size_t at = name.find(kQuery);
    if (at == std::string::npos) continue;
    const std::string before = name.substr(0, at) + ".attn.";
    const std::string after = name.substr(at + kQuery.size() - 1);
    const std::string key = before + "c_k" + after;
    const std::string value = before + "c_v" + after;
    joined[before + "c_attn" + after] = cat({query, tensors.at(key), tensors.at(value)});
    for (const std::string& part : {name, key, value})
      joined.erase(part);
  }
  return joined;
}

// Whole, on every rank.
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

void load(nn::ModuleBase& model, const nn::StateDict& init) {
  const nn::LoadResult result = model.load_state_dict(init, {.strict = false});
  std::string wrong;
  for (const std::string& name : result.missing_keys) {
    if (!name.ends_with("num_batches_tracked")) wrong += " missing " + name;
  }
  for (const std::string& name : result.unexpected_keys)
    wrong += " unexpected " + name;
  if (!wrong.empty()) throw BadSpec("init does not fit the model:" + wrong);
}

// `multiple`: what the channels of MobileNetV2 are rounded to.
nn::AnyModule empty_model(const Json& spec, int64_t multiple) {
  const std::string kind = spec.at("kind");
  if (kind == "mlp") {
    return models::Mlp(spec.at("sizes"), spec.value("activations", std::vector<std::string>()));
  }
  if (kind == "lenet") return models::Lenet({.dropout = spec.value("dropout", 0.0)});
  if (kind == "gpt") {
    return models::Gpt({.vocab_size = spec.at("vocab"),
                        .block_size = spec.at("T"),
                        .n_layer = spec.at("layers"),
                        .n_head = spec.at("heads"),
                        .n_embd = spec.at("d"),
                        .tied = spec.value("tied", false),
                        .gelu = spec.value("gelu", "none")});
  }
  if (kind == "mobilenet_v2") {
    return models::MobileNetV2({.num_classes = spec.at("classes"),
                                .inverted_residual_setting = spec.at("settings"),
                                .round_nearest = multiple,
                                .dropout = spec.value("dropout", 0.0),
                                .input_channel = spec.at("stem"),
                                .last_channel = spec.at("last")});
  }
  throw NotSupported("model " + kind);
}

class Training {
 public:
  Training(const TrainOptions& options, const Json& spec)
      : options_(options),
        spec_(spec),
        layout_(options.layout),
        model_(make_model(spec.at("model"), options.run.floating, tensors_of("init"))) {
    layout_.lay_out(model_);
    if (layout_.has_replicas()) replicas_.emplace(model_);
    data_ = tensors_of("data");
    for (const auto& [name, param] : model_.named_parameters())
      params_.emplace(name, param);
    Json args = spec.value("optimizer_args", Json::object());
    if (layout_.shards_state()) args["shard_state"] = true;
    optimizer_ = make_optimizer({{"optimizer", spec.at("optimizer")}, {"args", args}}, params_);
  }

  void run() {
    const int64_t steps = options_.steps >= 0 ? options_.steps : spec_.at("steps").get<int64_t>();
    for (int64_t i = 0; i < steps; ++i)
      step(i);
    const nn::StateDict final_state = gathered(model_.state_dict());
    if (env::rank() != 0) return;
    const std::filesystem::path folder(options_.folder);
    std::filesystem::create_directories(folder);
    nn::OutputFile file((folder / "log.jsonl").string());
    file.write(log_.data(), log_.size());
    file.commit();
    nn::save_safetensors((folder / "grad_step0.safetensors").string(), first_grads_);
    nn::save_safetensors((folder / "final.safetensors").string(), final_state);
  }

 private:
  nn::StateDict tensors_of(const char* key) const {
    return widened(nn::load_safetensors(beside(options_.spec, spec_.at(key))),
                   options_.run.floating);
  }

  void step(int64_t number) {
    const Tensor& x = data_.at("x");
    const int64_t batch = number % x.size(0);
    optimizer_->zero_grad();
    const Tensor rows = layout_.rows(x.select(0, batch));
    const Tensor logits = replicas_ ? (*replicas_)(rows) : model_(rows);
    const Tensor targets = layout_.rows(data_.at("y").select(0, batch)).flatten();
    const Tensor loss = cross_entropy(logits.reshape({-1, logits.size(-1)}), targets);
    loss.backward();
    if (number == 0) keep_gradients();
    const Tensor norm = nn::utils::clip_grad_norm_(model_.parameters(), INFINITY);
    log_ += str("{\"step\": ", number, ", \"loss\": ", shortest(loss_of_all(loss, x.size(1))),
                ", \"grad_norm\": ", shortest(norm.item<double>()),
                ", \"lr\": ", shortest(optimizer_->lr()), "}\n");
    optimizer_->step();
  }

  // Over the rows of all replicas.
  double loss_of_all(const Tensor& loss, int64_t num_rows) const {
    if (!replicas_) return loss.item<double>();
    const NoGradGuard no_grad;
    const auto own =
        static_cast<double>(balanced_part(num_rows, env::world_size(), env::rank()).size);
    return comm::all_reduce(loss * own).item<double>() / static_cast<double>(num_rows);
  }

  void keep_gradients() {
    const NoGradGuard no_grad;
    nn::StateDict grads;
    for (const auto& [name, param] : params_) {
      if (param.grad().defined()) grads[name] = param.grad().clone();
    }
    first_grads_ = as_in_files(gathered(grads));
  }

  const TrainOptions& options_;
  const Json& spec_;
  TrainLayout layout_;
  nn::AnyModule model_;
  std::optional<nn::parallel::DistributedDataParallel<nn::AnyModule>> replicas_;
  std::map<std::string, Tensor> params_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  nn::StateDict data_;
  nn::StateDict first_grads_;
  std::string log_;
};

}  // namespace

nn::AnyModule make_model(const Json& spec, DType floating, const nn::StateDict& init) {
  constexpr int64_t kTorchvision = 8;
  nn::AnyModule model = empty_model(spec, kTorchvision);
  model.to(floating);
  try {
    load(model, init);
  } catch (const InvalidArgument&) {  // the channels may be meant as they are
    model = empty_model(spec, 1);
    model.to(floating);
    load(model, init);
  }
  return model;
}

ExitCode run_training(const TrainOptions& options) {
  set_default_dtype(options.run.floating);
  const Json spec = read_json(options.spec);
  Report report;
  report.run("train", [&] {
    if (options.run.device != "cpu") throw NotSupported("device " + options.run.device);
    if (options.in_graph || options.micro_batches > 0 || !options.schedule.empty()) {
      throw NotSupported("graphs");
    }
    Training(options, spec).run();
  });
  return report.exit_code();
}

}  // namespace flow::conform

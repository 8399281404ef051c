// flow-conform train.
#include <charconv>
#include <filesystem>

#include "nn/clip_grad.h"
#include "nn/file.h"
#include "nn/models/gpt.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "nn/models/mobilenet.h"
#include "nn/safetensors.h"
#include "ops/concat.h"
#include "ops/creation.h"
#include "ops/cross_entropy.h"
#include "ops/slice.h"
#include "tools/conform/optim_cases.h"
#include "tools/conform/train_cases.h"

namespace flow::conform {

nn::AnyModule make_model(const Json& spec) {
  const std::string kind = spec.at("kind");
  if (kind == "mlp") return models::Mlp(spec.at("sizes"), spec.at("activations"));
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
                                .round_nearest = 1,
                                .dropout = spec.value("dropout", 0.0),
                                .input_channel = spec.at("stem"),
                                .last_channel = spec.at("last")});
  }
  throw NotSupported("no model " + kind);
}

namespace {

// Gradients by the names of state_dict(): GPT's three projections joined.
nn::StateDict gradients(const nn::ModuleBase& model) {
  nn::StateDict grads;
  for (const auto& [name, param] : model.named_parameters()) {
    if (param.grad().defined()) grads.emplace(name, param.grad().clone());
  }
  nn::StateDict joined;
  for (const auto& [name, grad] : grads) {
    const size_t at = name.find(".attn.c_");
    const char kind = at == std::string::npos ? ' ' : name[at + 8];
    if (kind == 'q') {
      const auto part = [&](const char* other) {
        std::string key = name;
        return grads.at(key.replace(at + 6, 3, other));
      };
      std::string key = name;
      joined.emplace(key.replace(at + 6, 3, "c_attn"), cat({grad, part("c_k"), part("c_v")}, 0));
    } else if (kind != 'k' && kind != 'v') {
      joined.emplace(name, grad);
    }
  }
  return joined;
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
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

}  // namespace

std::vector<StepRecord> run_training(nn::AnyModule model, const Json& spec, const Tensor& x,
                                     const Tensor& y, int64_t steps, nn::StateDict* first_grads) {
  std::map<std::string, Tensor> params;
  for (const auto& [name, param] : model.named_parameters())
    params.emplace(name, param);
  const Json rule{{"optimizer", spec.at("optimizer")},
                  {"args", spec.value("optimizer_args", Json::object())}};
  const auto optimizer = make_optimizer(rule, params);
  const int64_t batches = x.size(0);
  std::vector<StepRecord> records;
  for (int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    const Tensor logits = model(x.select(0, step % batches));
    const Tensor loss =
        cross_entropy(logits.reshape({-1, logits.size(-1)}), y.select(0, step % batches).flatten());
    loss.backward();
    if (step == 0 && first_grads != nullptr) *first_grads = gradients(model);
    const Tensor norm =
        nn::utils::clip_grad_norm_(model.parameters(), std::numeric_limits<double>::infinity());
    records.push_back({loss.item<double>(), norm.item<double>(), optimizer->lr()});
    optimizer->step();
  }
  return records;
}

int run_train(const Spec& spec, const Options& options, const std::string& out_folder) {
  const Json& run = spec.json;
  Report report;
  try {
    nn::AnyModule model = make_model(run.at("model"));
    if (options.widens) model.to(float64);
    load(model, spec.tensors(run.at("init"), options));
    const nn::StateDict data = spec.tensors(run.at("data"), options);
    const int64_t steps = options.steps >= 0 ? options.steps : run.at("steps").get<int64_t>();
    nn::StateDict first;
    const auto records = run_training(model, run, data.at("x"), data.at("y"), steps, &first);
    std::filesystem::create_directories(out_folder);
    const std::filesystem::path folder(out_folder);
    std::string log;
    for (size_t i = 0; i < records.size(); ++i) {
      const StepRecord& r = records[i];
      log += "{\"step\": " + std::to_string(i) + ", \"loss\": " + shortest(r.loss) +
             ", \"grad_norm\": " + shortest(r.grad_norm) + ", \"lr\": " + shortest(r.lr) + "}\n";
    }
    nn::OutputFile file((folder / "log.jsonl").string());
    file.write(log.data(), log.size());
    file.commit();
    nn::save_safetensors((folder / "grad_step0.safetensors").string(), first);
    nn::save_safetensors((folder / "final.safetensors").string(), model.state_dict());
  } catch (const NotSupported& error) {
    report.leave_out("train", error.what());
  }
  return report.status();
}

}  // namespace flow::conform

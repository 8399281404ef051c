#include "tools/flow_conform/train_model.h"

#include "nn/models/gpt.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "nn/models/mobilenet.h"
#include "ops/shape/concat.h"

namespace flow::conform {

namespace {

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

// `multiple`: the channels of MobileNetV2 are rounded to a multiple of this.
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

}  // namespace

nn::AnyModule make_model(const Json& spec, DType floating, const nn::StateDict& init) {
  constexpr int64_t kTorchvision = 8;
  nn::AnyModule model = empty_model(spec, kTorchvision);
  model.to(floating);
  try {
    load(model, init);
  } catch (const InvalidArgument&) {  // the channels may be given without rounding
    model = empty_model(spec, 1);
    model.to(floating);
    load(model, init);
  }
  return model;
}

std::map<std::string, std::vector<std::string>> joined_names(
    const std::vector<std::string>& names) {
  constexpr std::string_view kQuery = ".attn.c_q.";
  std::map<std::string, std::vector<std::string>> joined;
  for (const std::string& query : names) {
    const size_t at = query.find(kQuery);
    if (at == std::string::npos) continue;
    const std::string before = query.substr(0, at) + ".attn.";
    const std::string after = query.substr(at + kQuery.size() - 1);
    joined[str(before, "c_attn", after)] = {query, str(before, "c_k", after),
                                            str(before, "c_v", after)};
  }
  return joined;
}

nn::StateDict as_in_files(const nn::StateDict& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    names.push_back(name);
  nn::StateDict result = tensors;
  for (const auto& [name, parts] : joined_names(names)) {
    std::vector<Tensor> pieces;
    for (const std::string& part : parts) {
      pieces.push_back(tensors.at(part));
      result.erase(part);
    }
    result[name] = cat(pieces);
  }
  return result;
}

}  // namespace flow::conform

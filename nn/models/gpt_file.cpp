#include "nn/models/gpt_file.h"

#include <array>
#include <string_view>

#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::models {

namespace {

constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kVocabulary = "wte.weight";
constexpr std::string_view kHead = "lm_head.weight";

bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// The weights that transformers keeps as (in, out).
bool is_transposed(std::string_view name) {
  constexpr std::array<std::string_view, 3> kLayers = {".c_attn.weight", ".c_fc.weight",
                                                       ".c_proj.weight"};
  for (const std::string_view layer : kLayers) {
    if (name.ends_with(layer)) return true;
  }
  return false;
}

Tensor other_layout(const std::string& name, const Tensor& tensor) {
  return is_transposed(name) && tensor.dim() == 2 ? tensor.t().clone() : tensor;
}

Tensor with_rows(const std::string& name, const Tensor& table, int64_t rows) {
  if (table.dim() != 2 || table.size(0) == rows) return table;
  if (table.size(0) > rows) {
    throw InvalidArgument(str("[load_gpt] ", name, " has ", table.size(0),
                              " rows, and the model's vocabulary has ", rows,
                              "; make the model with a vocab_size of at least ", table.size(0)));
  }
  return cat({table, new_zeros(table, {rows - table.size(0), table.size(1)})}, 0);
}

}  // namespace

nn::StateDict gpt_state_of_file(const nn::StateDict& file, const GptOptions& options, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  nn::StateDict state;
  for (const auto& [full_name, tensor] : file) {
    std::string name = full_name;
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    if (is_mask(name) || (options.tied && name == kHead)) continue;
    Tensor value = other_layout(name, tensor);
    if (name == kVocabulary || name == kHead) value = with_rows(name, value, options.vocab_size);
    state.emplace(name, value);
  }
  return state;
}

nn::StateDict file_of_gpt_state(const nn::StateDict& state, int64_t vocab_size, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  nn::StateDict file;
  for (const auto& [name, tensor] : state) {
    Tensor value = other_layout(name, tensor.is_global() ? tensor.full() : tensor);
    const bool has_words = name == kVocabulary || name == kHead;
    if (has_words && vocab_size > 0) value = value.narrow(0, 0, vocab_size).clone();
    file.emplace(name, value);
  }
  return file;
}

void load_gpt(Gpt& model, const std::string& path, Site site) {
  const SiteScope scope(site);
  model.load_state_dict(gpt_state_of_file(nn::load_safetensors(path), model.options()));
}

void save_gpt(const Gpt& model, const std::string& path, int64_t vocab_size, Site site) {
  const SiteScope scope(site);
  nn::save_safetensors(path, file_of_gpt_state(model.state_dict(), vocab_size), {{"format", "pt"}});
}

}  // namespace flow::models

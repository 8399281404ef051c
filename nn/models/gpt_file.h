// Weights of GPT-2 in files with the names and layouts of Hugging Face's transformers: wte.weight,
// h.0.attn.c_attn.weight and so on, where the weights of c_attn, c_fc and c_proj are (in, out), the
// transpose of this library's.
#pragma once

#include <cstdint>
#include <string>

#include "nn/models/gpt.h"
#include "nn/module.h"

namespace flow::models {

// Turns the tensors of such a file into those that Gpt::load_state_dict takes. Names may begin with
// "transformer."; masks (attn.bias, attn.masked_bias) are left out, and so is lm_head.weight of a
// tied model. If the file has fewer rows of the vocabulary than options.vocab_size, the others
// become zero. Throws InvalidArgument for a vocabulary with more rows.
nn::StateDict gpt_state_of_file(const nn::StateDict& file, const GptOptions& options,
                                Site site = Site::here());

// The opposite: the tensors of a file, from model.state_dict(). The first `vocab_size` rows of the
// vocabulary are kept, or all of them if it is 0. With global tensors the call is collective.
nn::StateDict file_of_gpt_state(const nn::StateDict& state, int64_t vocab_size = 0,
                                Site site = Site::here());

// Reads and writes a safetensors file. Throws IoError and BadFile as load_safetensors, and
// InvalidArgument if the tensors do not fit the model. The model may be global.
void load_gpt(Gpt& model, const std::string& path, Site site = Site::here());
void save_gpt(const Gpt& model, const std::string& path, int64_t vocab_size = 0,
              Site site = Site::here());

}  // namespace flow::models

#include "nn/models/gpt_file.h"

#include <string>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow::models {
namespace {

const GptOptions kSmall{.vocab_size = 11, .block_size = 6, .n_layer = 2, .n_head = 2, .n_embd = 4};

GptOptions padded() {
  GptOptions options = kSmall;
  options.vocab_size = 16;
  return options;
}

class GptFile : public testing::Test {
 protected:
  const TempFolder folder_;
  const std::string path_ = folder_.file("gpt.safetensors");
};

TEST_F(GptFile, HasTheNamesAndLayoutsOfHuggingFace) {
  Gpt model(kSmall);
  save_gpt(model, path_);

  const nn::StateDict file = nn::load_safetensors(path_);
  EXPECT_EQ(file.size(), 4 + 12 * 2);
  EXPECT_EQ(file.at("wte.weight").shape(), Shape({11, 4}));
  EXPECT_EQ(file.at("h.1.attn.c_attn.weight").shape(), Shape({4, 12}));
  EXPECT_EQ(file.at("h.1.attn.c_attn.bias").shape(), Shape({12}));
  EXPECT_EQ(file.at("h.0.mlp.c_fc.weight").shape(), Shape({4, 16}));
  EXPECT_EQ(file.at("h.0.mlp.c_proj.weight").shape(), Shape({16, 4}));
  // The queries' weight is the first third of the columns.
  EXPECT_EQ(file.at("h.0.attn.c_attn.weight").narrow(1, 0, 4).t().to_vector<float>(),
            model.blocks[0].attn.c_q.weight.to_vector<float>());
}

TEST_F(GptFile, APaddedModelHasTheOutputsOfTheFileAndKeepsItsVocabulary) {
  Gpt model(kSmall);
  save_gpt(model, path_);
  Gpt larger(padded());
  load_gpt(larger, path_);

  const Tensor tokens = tensor({{1, 10, 3, 0, 7}});
  const Tensor logits = larger(tokens);
  EXPECT_TRUE(logits.narrow(2, 0, 11).allclose(model(tokens)));
  EXPECT_EQ(logits.narrow(2, 11, 5).abs().max().item<float>(), 0);

  save_gpt(larger, path_, 11);
  Gpt again(kSmall);
  load_gpt(again, path_);
  EXPECT_EQ(again(tokens).to_vector<float>(), model(tokens).to_vector<float>());
}

TEST_F(GptFile, PrefixesMasksAndATiedHeadAreSkipped) {
  const Gpt model(kSmall);
  nn::StateDict file;
  for (const auto& [name, value] : file_of_gpt_state(model.state_dict()))
    file.emplace("transformer." + name, value);
  file.emplace("transformer.h.0.attn.bias", ones({1, 1, 6, 6}));
  file.emplace("transformer.h.0.attn.masked_bias", ones({}));
  file.emplace("lm_head.weight", ones({11, 4}));

  Gpt other(kSmall);
  other.load_state_dict(gpt_state_of_file(file, kSmall));
  const Tensor tokens = tensor({{1, 2, 3}});
  EXPECT_EQ(other(tokens).to_vector<float>(), Gpt(model)(tokens).to_vector<float>());
}

TEST_F(GptFile, AFileThatDoesNotFitIsRefusedByName) {
  save_gpt(Gpt(padded()), path_);
  Gpt model(kSmall);
  try {
    load_gpt(model, path_);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("wte.weight has 16 rows, and the model's vocabulary has 11"),
              std::string::npos)
        << text;
  }
}

TEST_F(GptFile, GlobalModelsReadAndWriteTheSameFile) {
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    manual_seed(3);
    Gpt one(kSmall);
    if (env::rank() == 0) save_gpt(one, path_);
    comm::barrier();
    Gpt global(kSmall);
    global.to_global(both, {{"*.c_fc.*", sbp::split(0)}, {"*", sbp::broadcast}});
    load_gpt(global, path_);
    const Tensor tokens = tensor({{1, 2, 3, 4}});
    const Tensor logits = global(tokens.to_global(both, sbp::broadcast)).full();
    EXPECT_TRUE(logits.allclose(one(tokens)));
    save_gpt(global, path_ + ".again");  // collective
    if (env::rank() == 0) {
      const nn::StateDict first = nn::load_safetensors(path_);
      for (const auto& [name, value] : nn::load_safetensors(path_ + ".again"))
        EXPECT_EQ(value.to_vector<float>(), first.at(name).to_vector<float>()) << name;
    }
  });
}

}  // namespace
}  // namespace flow::models

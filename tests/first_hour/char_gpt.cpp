// Trains a small GPT on characters, and lets it write.
#include "tests/first_hour/expect.h"

int main() {
  flow::manual_seed(1);
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "the quick brown fox jumps over the lazy dog. ";
  const flow::data::CharVocabulary vocabulary(text);
  const flow::data::TokenDataset dataset(vocabulary.encode(text), 32, {.stride = 7});
  flow::data::DataLoader loader(dataset, {.batch_size = 16, .shuffle = true, .drop_last = true});

  flow::models::Gpt model(
      {.vocab_size = vocabulary.size(), .block_size = 32, .n_layer = 2, .n_head = 2, .n_embd = 32});
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 8; ++epoch) {
    for (const auto& [tokens, targets] : loader) {
      const flow::Tensor logits = model(tokens);  // (batch, length, vocabulary)
      const flow::Tensor loss = flow::cross_entropy(logits.flatten(0, 1), targets.flatten());
      optimizer.zero_grad();
      loss.backward();
      flow::nn::utils::clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      last = loss.item();
      if (first == 0) first = last;
    }
  }
  const flow::Tensor prompt = flow::tensor(vocabulary.encode("the quick"), {1, 9});
  const flow::Tensor written =
      flow::models::generate(model, prompt, {.max_new_tokens = 20, .temperature = 0});
  const std::string line = vocabulary.decode(written[0].to_vector<int64_t>());
  flow::print("first loss", first, "last loss", last, "text:", line);
  expect_near(first, std::log(static_cast<double>(vocabulary.size())),
              "the first loss is that of a guess", 0.1);
  expect(last < 0.3, "the model has learned the sentence");
  expect(line == "the quick brown fox jumps ove", "it goes on with the sentence");
}

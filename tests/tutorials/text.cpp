// Sequences: word embeddings, taggers, recurrent classifiers, translation with attention and a
// Transformer.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;

namespace {

struct NGram : nn::Module<NGram> {
  nn::Embedding embeddings{register_module("embeddings", nn::Embedding(12, 10))};
  nn::Linear linear1{register_module("linear1", nn::Linear(20, 32))};
  nn::Linear linear2{register_module("linear2", nn::Linear(32, 12))};

  flow::Tensor forward(const flow::Tensor& words) {
    const flow::Tensor embeds = embeddings(words).reshape({words.size(0), -1});
    return flow::log_softmax(linear2(flow::relu(linear1(embeds))), 1);
  }
};

void ngram_embeddings() {
  // Each word follows from the two before it.
  const flow::Tensor text = (flow::arange(60) * 5) % 12;
  const flow::Tensor context = flow::stack({text.narrow(0, 0, 58), text.narrow(0, 1, 58)}, 1);
  const flow::Tensor target = text.narrow(0, 2, 58);
  NGram model;
  nn::NLLLoss loss_fn;
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.5});
  double last = 0;
  for (int epoch = 0; epoch < 60; ++epoch) {
    model.zero_grad();
    const flow::Tensor loss = loss_fn(model(context), target);
    loss.backward();
    optimizer.step();
    last = loss.item();
  }
  expect(last < 0.1, "the model predicts the words");
  expect(model.embeddings.weight[5].shape() == flow::Shape{10}, "a word's vector");
}

// A tagger of words: noun, verb or article, where the tag of one word depends on the word before.
struct Tagger : nn::Module<Tagger> {
  nn::Embedding word_embeddings{register_module("word_embeddings", nn::Embedding(6, 6))};
  nn::LSTM lstm;
  nn::Linear hidden2tag;

  explicit Tagger(bool bidirectional)
      : lstm(register_module("lstm", nn::LSTM(6, 8, {.bidirectional = bidirectional}))),
        hidden2tag(register_module("hidden2tag", nn::Linear(bidirectional ? 16 : 8, 3))) {}

  // (T, N) → (T, N, tags).
  flow::Tensor forward(const flow::Tensor& sentence) {
    return hidden2tag(lstm(word_embeddings(sentence)).output);
  }
};

double trained_tagger(bool bidirectional, int64_t shift) {
  Tagger model(bidirectional);
  flow::optim::Adam optimizer(model.parameters(), {.lr = 0.02});
  double accuracy = 0;
  for (int step = 0; step < 120; ++step) {
    const flow::Tensor words = flow::randint(6, {7, 32}, {.dtype = flow::int64});
    // The tag depends on the word and on its neighbour.
    const flow::Tensor tags = (words + flow::roll(words, shift, 0)) % 3;
    const flow::Tensor scores = model(words);
    optimizer.zero_grad();
    flow::cross_entropy(scores.reshape({-1, 3}), tags.reshape({-1})).backward();
    optimizer.step();
    // Where the neighbour is at the other end, it cannot be known.
    const flow::Tensor hit = (scores.argmax(-1) == tags).to(flow::float32);
    accuracy = hit.narrow(0, shift > 0 ? 1 : 0, 6).mean().item();
  }
  return accuracy;
}

void pos_tagging_lstm() {
  expect(trained_tagger(false, 1) > 0.95, "the LSTM remembers the word before");
}

void bidirectional_lstm() {
  const double forward = trained_tagger(false, -1);
  flow::manual_seed(1);
  const double both = trained_tagger(true, -1);
  flow::print("forward", forward, "both directions", both);
  expect(forward < 0.6, "a forward LSTM does not see the next word");
  expect(both > 0.95, "a bidirectional one does");
}

struct CharRnn : nn::Module<CharRnn> {
  nn::RNN rnn{register_module("rnn", nn::RNN(26, 24))};
  nn::Linear h2o{register_module("h2o", nn::Linear(24, 2))};
  nn::LogSoftmax softmax{register_module("softmax", nn::LogSoftmax(1))};

  flow::Tensor forward(const flow::Tensor& line) { return softmax(h2o(rnn(line).h[0])); }
};

flow::Tensor line_to_tensor(const std::string& name) {
  std::vector<int64_t> letters;
  for (const char letter : name)
    letters.push_back(letter - 'a');
  const auto length = static_cast<int64_t>(name.size());
  return flow::one_hot(flow::tensor(letters, {length, 1}), 26).to(flow::float32);
}

void char_rnn_classification() {
  const std::vector<std::vector<std::string>> names = {
      {"ivanov", "petrov", "smirnov", "popov", "sokolov", "lebedev"},
      {"rossi", "russo", "ferrari", "bianchi", "romano", "colombo"}};
  CharRnn model;
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.05});
  nn::NLLLoss criterion;
  for (int epoch = 0; epoch < 40; ++epoch) {
    for (size_t i = 0; i < 6; ++i) {
      for (int64_t category = 0; category < 2; ++category) {
        const flow::Tensor output = model(line_to_tensor(names[static_cast<size_t>(category)][i]));
        optimizer.zero_grad();
        criterion(output, flow::tensor({category})).backward();
        nn::utils::clip_grad_norm_(model.parameters(), 3);
        optimizer.step();
      }
    }
  }
  const flow::NoGradGuard no_grad;
  for (const char* unseen : {"romanov", "pavlov", "kozlov"})
    expect(model(line_to_tensor(unseen)).argmax(1).item() == 0, unseen);
  for (const char* unseen : {"rizzo", "moretti", "conti"})
    expect(model(line_to_tensor(unseen)).argmax(1).item() == 1, unseen);
}

// Translates a sequence to its reverse: an encoder, and a decoder with additive attention.
struct Seq2Seq : nn::Module<Seq2Seq> {
  nn::Embedding embedding{register_module("embedding", nn::Embedding(8, 24))};
  nn::GRU encoder{register_module("encoder", nn::GRU(24, 32, {.batch_first = true}))};
  nn::Linear query{register_module("query", nn::Linear(32, 32))};
  nn::Linear key{register_module("key", nn::Linear(32, 32))};
  nn::Linear score{register_module("score", nn::Linear(32, 1))};
  nn::GRUCell decoder{register_module("decoder", nn::GRUCell(24 + 32, 32))};
  nn::Linear out{register_module("out", nn::Linear(32, 8))};

  // source: (N, T); target: (N, T), of which each step sees the token before (teacher forcing).
  flow::Tensor forward(const flow::Tensor& source, const flow::Tensor& target) {
    const auto [outputs, last] = encoder(embedding(source));
    flow::Tensor hidden = last[0];
    const flow::Tensor keys = key(outputs);
    std::vector<flow::Tensor> logits;
    flow::Tensor token = flow::zeros_like(source.select(1, 0));  // the start
    for (int64_t t = 0; t < target.size(1); ++t) {
      const flow::Tensor scores = score(flow::tanh(query(hidden).unsqueeze(1) + keys));
      const flow::Tensor weights = flow::softmax(scores, 1);
      const flow::Tensor context = (weights * outputs).sum(1);
      hidden = decoder(flow::cat({embedding(token), context}, 1), hidden);
      logits.push_back(out(hidden));
      token = target.select(1, t);
    }
    return flow::stack(logits, 1);
  }
};

void seq2seq_attention() {
  Seq2Seq model;
  flow::optim::Adam optimizer(model.parameters(), {.lr = 5e-3});
  double accuracy = 0;
  for (int step = 0; step < 350; ++step) {
    const flow::Tensor source = flow::randint(1, 8, {64, 5}, {.dtype = flow::int64});
    const flow::Tensor target = flow::flip(source, {1});
    const flow::Tensor logits = model(source, target);
    optimizer.zero_grad();
    flow::cross_entropy(logits.reshape({-1, 8}), target.reshape({-1})).backward();
    nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    accuracy = (logits.argmax(-1) == target).to(flow::float32).mean().item();
  }
  flow::print("accuracy", accuracy);
  expect(accuracy > 0.9, "the decoder reverses the sequence");
}

struct TransformerModel : nn::Module<TransformerModel> {
  nn::Embedding embedding{register_module("embedding", nn::Embedding(10, 32))};
  flow::Tensor positions;
  nn::TransformerEncoder encoder{register_module(
      "encoder", nn::TransformerEncoder(
                     nn::TransformerEncoderLayer(
                         32, 4, {.dim_feedforward = 64, .dropout = 0.0, .batch_first = true}),
                     2))};
  nn::Linear linear{register_module("linear", nn::Linear(32, 10))};

  TransformerModel() {
    const flow::Tensor position = flow::arange(16, {.dtype = flow::float32}).unsqueeze(1);
    const flow::Tensor frequency =
        (flow::arange(0, 32, 2, {.dtype = flow::float32}) * (-std::log(10000.0) / 32)).exp();
    positions = register_buffer(
        "positions",
        flow::cat({flow::sin(position * frequency), flow::cos(position * frequency)}, 1));
  }

  flow::Tensor forward(const flow::Tensor& tokens) {
    const int64_t length = tokens.size(1);
    const flow::Tensor x = embedding(tokens) * std::sqrt(32.0) + positions.narrow(0, 0, length);
    const flow::Tensor mask = nn::Transformer::generate_square_subsequent_mask(length);
    return linear(encoder(x, nn::EncoderStackCallOptions{.mask = mask}));
  }
};

void transformer_language_model() {
  // Token t + 1 is the sum of the two before it.
  const auto sample = [](int64_t batch) {
    std::vector<flow::Tensor> tokens = {flow::randint(10, {batch}, {.dtype = flow::int64}),
                                        flow::randint(10, {batch}, {.dtype = flow::int64})};
    while (tokens.size() < 9)
      tokens.push_back((tokens[tokens.size() - 1] + tokens[tokens.size() - 2]) % 10);
    return flow::stack(tokens, 1);
  };
  TransformerModel model;
  flow::optim::Adam optimizer(model.parameters(), {.lr = 3e-3});
  double accuracy = 0;
  for (int step = 0; step < 250; ++step) {
    const flow::Tensor tokens = sample(64);
    const flow::Tensor logits = model(tokens.narrow(1, 0, 8)), next = tokens.narrow(1, 1, 8);
    optimizer.zero_grad();
    flow::cross_entropy(logits.reshape({-1, 10}), next.reshape({-1})).backward();
    nn::utils::clip_grad_norm_(model.parameters(), 0.5);
    optimizer.step();
    // The first prediction has one token before it, and cannot be known.
    accuracy = (logits.argmax(-1) == next).narrow(1, 1, 7).to(flow::float32).mean().item();
  }
  flow::print("accuracy", accuracy);
  expect(accuracy > 0.9, "the model adds");

  // No position sees what follows it.
  const flow::NoGradGuard no_grad;
  const flow::Tensor tokens = sample(1).narrow(1, 0, 8).clone();
  const flow::Tensor before = model(tokens);
  tokens.index({0, 7}) = (tokens.index({0, 7}) + 1) % 10;
  expect(flow::equal(model(tokens).narrow(1, 0, 7), before.narrow(1, 0, 7)), "the mask is causal");
}

void translation_transformer() {
  // An encoder and a decoder that copy a sequence.
  struct Translator : nn::Module<Translator> {
    nn::Embedding embedding{register_module("embedding", nn::Embedding(9, 32))};
    nn::Embedding positions{register_module("positions", nn::Embedding(8, 32))};
    nn::Transformer transformer{
        register_module("transformer", nn::Transformer({.d_model = 32,
                                                        .nhead = 4,
                                                        .num_encoder_layers = 1,
                                                        .num_decoder_layers = 1,
                                                        .dim_feedforward = 64,
                                                        .dropout = 0.0,
                                                        .batch_first = true}))};
    nn::Linear generator{register_module("generator", nn::Linear(32, 9))};

    flow::Tensor embed(const flow::Tensor& tokens) {
      return embedding(tokens) + positions(flow::arange(tokens.size(1)));
    }

    flow::Tensor forward(const flow::Tensor& source, const flow::Tensor& target) {
      const flow::Tensor mask = nn::Transformer::generate_square_subsequent_mask(target.size(1));
      return generator(
          transformer(embed(source), embed(target), nn::TransformerCallOptions{.tgt_mask = mask}));
    }
  };

  Translator model;
  flow::optim::Adam optimizer(model.parameters(), {.lr = 3e-3});
  double last = 0;
  for (int step = 0; step < 250; ++step) {
    const flow::Tensor source = flow::randint(1, 9, {32, 5}, {.dtype = flow::int64});
    const flow::Tensor shifted =
        flow::cat({flow::zeros({32, 1}, {.dtype = flow::int64}), source.narrow(1, 0, 4)}, 1);
    const flow::Tensor loss =
        flow::cross_entropy(model(source, shifted).reshape({-1, 9}), source.reshape({-1}));
    optimizer.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    last = loss.item();
  }
  flow::print("loss", last);
  expect(last < 0.3, "the model copies (guessing has the loss 2.08)");
}

}  // namespace

int main() {
  return run_tutorials({{"ngram_embeddings", ngram_embeddings},
                        {"pos_tagging_lstm", pos_tagging_lstm},
                        {"bidirectional_lstm", bidirectional_lstm},
                        {"char_rnn_classification", char_rnn_classification},
                        {"seq2seq_attention", seq2seq_attention},
                        {"transformer_language_model", transformer_language_model},
                        {"translation_transformer", translation_transformer}});
}

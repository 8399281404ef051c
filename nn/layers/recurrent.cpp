#include "nn/layers/recurrent.h"

#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "nn/layers/recurrent_sequence.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/index/index.h"
#include "ops/linear/matmul.h"
#include "ops/random/dropout.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::nn {

namespace {

// Adds a batch dim of size 1 to the state of a single sequence.
Tensor with_batch(const Tensor& state) {
  return state.defined() ? state.unsqueeze(1) : state;
}

}  // namespace

RecurrentWeights::RecurrentWeights(const char* layer, int64_t input_size, int64_t hidden_size,
                                   RecurrentOptions options, Site site)
    : layer_(layer), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  const SiteScope scope(site);
  internal::check_positive(layer,
                           {{"input_size", input_size},
                            {"hidden_size", hidden_size},
                            {"num_layers", options.num_layers}},
                           site);
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw InvalidArgument(
        str("[", layer, "] dropout must be a probability from 0 to 1; received ", options.dropout));
  }
  if (options.proj_size < 0 || options.proj_size >= hidden_size) {
    throw InvalidArgument(
        str("[", layer, "] proj_size is out of range: received ", options.proj_size,
            "; give 0 (no projection) or a size below hidden_size = ", hidden_size));
  }
}

std::vector<std::pair<std::string, Tensor>> RecurrentWeights::make(int64_t num_gates) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size_));
  const int64_t num_directions = options_.bidirectional ? 2 : 1;
  std::vector<std::pair<std::string, Tensor>> named;
  for (int64_t i = 0; i < options_.num_layers * num_directions; ++i) {
    const int64_t layer = i / num_directions;
    const int64_t in = layer == 0 ? input_size_ : state_size() * num_directions;
    const std::string suffix = str("_l", layer, i % num_directions == 1 ? "_reverse" : "");
    const auto add = [&](const char* name, const Shape& shape) {
      return named.emplace_back(name + suffix, init::uniform_(empty(shape), -bound, bound)).second;
    };
    Direction& direction = directions.emplace_back();
    direction.weight_ih = add("weight_ih", {num_gates * hidden_size_, in});
    direction.weight_hh = add("weight_hh", {num_gates * hidden_size_, state_size()});
    if (options_.bias) {
      direction.bias_ih = add("bias_ih", {num_gates * hidden_size_});
      direction.bias_hh = add("bias_hh", {num_gates * hidden_size_});
    }
    if (options_.proj_size > 0) {
      direction.weight_hr = add("weight_hr", {options_.proj_size, hidden_size_});
    }
  }
  return named;
}

std::string RecurrentWeights::option_text() const {
  using internal::text_of;
  std::string text = str(input_size_, ", ", hidden_size_);
  const RecurrentOptions& o = options_;
  if (o.proj_size != 0) text += str(", proj_size=", o.proj_size);
  if (o.num_layers != 1) text += str(", num_layers=", o.num_layers);
  if (!o.bias) text += ", bias=False";
  if (o.batch_first) text += ", batch_first=True";
  if (o.dropout != 0) text += ", dropout=" + text_of(o.dropout);
  if (o.bidirectional) text += ", bidirectional=True";
  return text;
}

std::vector<RecurrentWeights::CellState> RecurrentWeights::first_states(const Tensor& x,
                                                                        const Tensor& h,
                                                                        const Tensor& c,
                                                                        bool has_cell) const {
  if (x.dim() != 3 || x.size(2) != input_size_) {
    throw InvalidArgument(str("[", layer_, "] the input must have three dims, the last of size ",
                              input_size_, "; received ", x.meta(),
                              "; reshape it, or make the layer with its input_size"));
  }
  return states_for(x, x.size(options_.batch_first ? 0 : 1), h, c, has_cell);
}

std::vector<RecurrentWeights::CellState> RecurrentWeights::first_states(
    const utils::rnn::PackedSequence& x, const Tensor& h, const Tensor& c, bool has_cell) const {
  if (x.data.dim() != 2 || x.data.size(1) != input_size_) {
    throw InvalidArgument(str("[", layer_, "] the packed steps must be vectors of size ",
                              input_size_, "; received ", x.data.meta(),
                              "; make the layer with its input_size"));
  }
  return states_for(x.data, x.batch_sizes[0], h, c, has_cell);
}

std::vector<RecurrentWeights::CellState> RecurrentWeights::states_for(
    const Tensor& x, int64_t batch, const Tensor& h, const Tensor& c, bool has_cell) const {
  const auto num = static_cast<int64_t>(directions.size());
  const auto check = [&](const char* name, const Tensor& given, int64_t size) {
    const Shape expected{num, batch, size};
    if (!given.defined() || given.shape() == expected) return;
    throw InvalidArgument(str("[", layer_, "] the initial ", name,
                              " state has the wrong shape; received ", given.meta(),
                              "; give one of shape ", expected));
  };
  check("hidden", h, state_size());
  check("cell", c, hidden_size_);
  const TensorOptions like = ops::whole_like(x);
  const Tensor no_hidden = h.defined() ? Tensor() : zeros({batch, state_size()}, like);
  const Tensor no_cell = has_cell && !c.defined() ? zeros({batch, hidden_size_}, like) : Tensor();
  std::vector<CellState> states;
  for (int64_t i = 0; i < num; ++i) {
    CellState& state = states.emplace_back();
    state.h = h.defined() ? h.select(0, i) : no_hidden;
    if (has_cell) state.c = c.defined() ? c.select(0, i) : no_cell;
  }
  return states;
}

RecurrentWeights::Run RecurrentWeights::run(const Tensor& x, const std::vector<CellState>& first,
                                            bool is_training, const internal::Cell& cell) const {
  const size_t num_directions = options_.bidirectional ? 2 : 1;
  Run result;
  Tensor input = options_.batch_first ? x.transpose(0, 1) : x;
  for (size_t layer = 0; layer * num_directions < directions.size(); ++layer) {
    std::vector<Tensor> outputs;
    for (size_t d = 0; d < num_directions; ++d) {
      const size_t number = layer * num_directions + d;
      const Direction& weights = directions[number];
      const internal::SequenceResult steps = internal::run_sequence(
          cell, linear(input, weights.weight_ih, weights.bias_ih), first[number], weights, d == 1);
      outputs.push_back(steps.output);
      result.last.push_back(steps.last);
    }
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, 2);
    const bool is_last = (layer + 1) * num_directions == directions.size();
    if (options_.dropout > 0 && is_training && !is_last) {
      input = dropout(input, {.p = options_.dropout});
    }
  }
  result.output = options_.batch_first ? input.transpose(0, 1) : input;
  return result;
}

// The outputs of all steps, in order. Sequences are sorted by length, so the first rows of a state
// belong to those that have a step.
std::vector<Tensor> RecurrentWeights::packed_steps(const std::vector<Tensor>& gates,
                                                   const CellState& first, const Direction& weights,
                                                   bool is_reverse, const internal::Cell& cell,
                                                   CellState& last) const {
  const auto part = [](const CellState& state, int64_t begin, int64_t end) {
    const auto rows = [&](const Tensor& x) {
      return x.defined() ? x.narrow(0, begin, end - begin) : x;
    };
    return CellState{rows(state.h), rows(state.c)};
  };
  const auto joined = [](const CellState& a, const CellState& b) {
    return CellState{cat({a.h, b.h}, 0), a.c.defined() ? cat({a.c, b.c}, 0) : Tensor()};
  };
  const size_t length = gates.size();
  std::vector<Tensor> outputs(length);
  std::vector<CellState> finished;  // the shortest sequences first
  int64_t rows = gates[is_reverse ? length - 1 : 0].size(0);
  CellState state = part(first, 0, rows);
  for (size_t i = 0; i < length; ++i) {
    const size_t t = is_reverse ? length - 1 - i : i;
    const int64_t count = gates[t].size(0);
    if (count < rows) {
      finished.push_back(part(state, count, rows));
      state = part(state, 0, count);
    } else if (count > rows) {
      state = joined(state, part(first, rows, count));
    }
    rows = count;
    state = internal::cell_step(cell, gates[t], state, weights);
    outputs[t] = state.h;
  }
  for (auto one = finished.rbegin(); one != finished.rend(); ++one)
    state = joined(state, *one);
  last = state;
  return outputs;
}

RecurrentWeights::Run RecurrentWeights::run_packed(const utils::rnn::PackedSequence& x,
                                                   std::vector<CellState> first, bool is_training,
                                                   const internal::Cell& cell) const {
  const auto reordered = [](std::vector<CellState>& states, const Tensor& order) {
    if (!order.defined()) return;
    for (CellState& state : states) {
      state.h = state.h.index_select(0, order);
      if (state.c.defined()) state.c = state.c.index_select(0, order);
    }
  };
  reordered(first, x.sorted_indices);
  const size_t num_directions = options_.bidirectional ? 2 : 1;
  Run result;
  Tensor input = x.data;
  for (size_t layer = 0; layer * num_directions < directions.size(); ++layer) {
    std::vector<Tensor> outputs;
    for (size_t d = 0; d < num_directions; ++d) {
      const size_t number = layer * num_directions + d;
      const Direction& weights = directions[number];
      const std::vector<Tensor> gates =
          split(linear(input, weights.weight_ih, weights.bias_ih), x.batch_sizes, 0);
      CellState last;
      outputs.push_back(cat(packed_steps(gates, first[number], weights, d == 1, cell, last), 0));
      result.last.push_back(last);
    }
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, 1);
    const bool is_last = (layer + 1) * num_directions == directions.size();
    if (options_.dropout > 0 && is_training && !is_last) {
      input = dropout(input, {.p = options_.dropout});
    }
  }
  reordered(result.last, x.unsorted_indices);
  result.output = input;
  return result;
}

Tensor RecurrentWeights::hidden_of(const Run& done) {
  std::vector<Tensor> states;
  for (const CellState& state : done.last)
    states.push_back(state.h);
  return stack(states, 0);
}

Tensor RecurrentWeights::cell_of(const Run& done) {
  std::vector<Tensor> states;
  for (const CellState& state : done.last)
    states.push_back(state.c);
  return stack(states, 0);
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Site site)
    : RecurrentWeights("LSTM", input_size, hidden_size, options, site) {
  const SiteScope scope(site);
  for (const auto& [name, tensor] : make(4))
    register_parameter(name, tensor);
  set_extra_repr(option_text());
}

LstmResult LSTM::forward(const Tensor& x, const LstmState& first) {
  if (x.dim() == 2) {
    const int64_t n = options_.batch_first ? 0 : 1;
    const LstmResult y =
        forward(x.unsqueeze(n), {with_batch(first.hidden), with_batch(first.cell)});
    return {y.output.squeeze(n), y.h.squeeze(1), y.c.squeeze(1)};
  }
  const Run done =
      run(x, first_states(x, first.hidden, first.cell, true), is_training(), internal::kLstmCell);
  return {done.output, hidden_of(done), cell_of(done)};
}

PackedLstmResult LSTM::forward(const utils::rnn::PackedSequence& x, const LstmState& first) {
  const Run done = run_packed(x, first_states(x, first.hidden, first.cell, true), is_training(),
                              internal::kLstmCell);
  PackedLstmResult result{x, hidden_of(done), cell_of(done)};
  result.output.data = done.output;
  return result;
}

GRU::GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Site site)
    : RecurrentWeights("GRU", input_size, hidden_size, options, site) {
  const SiteScope scope(site);
  if (options.proj_size != 0) {
    throw InvalidArgument(str("[GRU] proj_size is supported by LSTM only; received ",
                              options.proj_size, "; leave it out"));
  }
  for (const auto& [name, tensor] : make(3))
    register_parameter(name, tensor);
  set_extra_repr(option_text());
}

GruResult GRU::forward(const Tensor& x, const Tensor& first) {
  if (x.dim() == 2) {
    const int64_t n = options_.batch_first ? 0 : 1;
    const GruResult y = forward(x.unsqueeze(n), with_batch(first));
    return {y.output.squeeze(n), y.h.squeeze(1)};
  }
  const Run done = run(x, first_states(x, first, {}, false), is_training(), internal::kGruCell);
  return {done.output, hidden_of(done)};
}

PackedGruResult GRU::forward(const utils::rnn::PackedSequence& x, const Tensor& first) {
  const Run done =
      run_packed(x, first_states(x, first, {}, false), is_training(), internal::kGruCell);
  PackedGruResult result{x, hidden_of(done)};
  result.output.data = done.output;
  return result;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RnnOptions& options, Site site)
    : RecurrentWeights("RNN", input_size, hidden_size,
                       {.num_layers = options.num_layers,
                        .bias = options.bias,
                        .batch_first = options.batch_first,
                        .dropout = options.dropout,
                        .bidirectional = options.bidirectional},
                       site),
      is_relu_(options.nonlinearity == "relu") {
  const SiteScope scope(site);
  if (!is_relu_ && options.nonlinearity != "tanh") {
    throw InvalidArgument(str("[RNN] the nonlinearity is unknown; received '", options.nonlinearity,
                              "'; give tanh or relu"));
  }
  for (const auto& [name, tensor] : make(1))
    register_parameter(name, tensor);
  set_extra_repr(option_text());
}

RnnResult RNN::forward(const Tensor& x, const Tensor& first) {
  if (x.dim() == 2) {
    const int64_t n = options_.batch_first ? 0 : 1;
    const RnnResult y = forward(x.unsqueeze(n), with_batch(first));
    return {y.output.squeeze(n), y.h.squeeze(1)};
  }
  const Run done = run(x, first_states(x, first, {}, false), is_training(), cell());
  return {done.output, hidden_of(done)};
}

PackedRnnResult RNN::forward(const utils::rnn::PackedSequence& x, const Tensor& first) {
  const Run done = run_packed(x, first_states(x, first, {}, false), is_training(), cell());
  PackedRnnResult result{x, hidden_of(done)};
  result.output.data = done.output;
  return result;
}

const internal::Cell& RNN::cell() const {
  return is_relu_ ? internal::kReluCell : internal::kTanhCell;
}

}  // namespace flow::nn

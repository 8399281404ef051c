#include <sstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

namespace flow::nn {
namespace {

TEST(ParameterVector, GoesThereAndBack) {
  Linear from(3, 2), to(3, 2);
  const Tensor vector = utils::parameters_to_vector(from.parameters());
  utils::vector_to_parameters(vector, to.parameters());

  EXPECT_EQ(vector.shape(), (Shape{8}));
  EXPECT_TRUE(to.weight.equal(from.weight));
  EXPECT_TRUE(to.bias.equal(from.bias));
  vector.square().sum().backward();
  EXPECT_TRUE(from.bias.grad().equal(from.bias.detach() * 2));
  EXPECT_THROW(utils::vector_to_parameters(zeros({7}), to.parameters()), InvalidArgument);
  EXPECT_THROW(utils::parameters_to_vector({}), InvalidArgument);
}

TEST(GradientNorm, IsMeasuredAndClippedInTwoCalls) {
  const Tensor a = zeros({2}, {.requires_grad = true}), b = zeros({1}, {.requires_grad = true});
  a.set_grad(tensor({3.f, 0.f}));
  b.set_grad(tensor({4.f}));
  const Tensor total = utils::get_total_norm({a.grad(), b.grad()});
  utils::clip_grads_with_norm_({a, b}, 1.0, total);

  EXPECT_FLOAT_EQ(total.item<float>(), 5);
  EXPECT_NEAR(a.grad().to_vector<float>()[0], 0.6, 1e-6);
  EXPECT_NEAR(b.grad().item<float>(), 0.8, 1e-6);
  EXPECT_FLOAT_EQ(utils::get_total_norm({a.grad(), b.grad()}, {.norm_type = 1}).item<float>(),
                  1.4F);
  EXPECT_THROW(utils::clip_grads_with_norm_({a}, -1, total), InvalidArgument);
}

// Coefficients of a polynomial, and named ones.
struct Polynomial : Module<Polynomial> {
  ParameterList powers{register_module("powers", ParameterList({ones({1}), full({1}, 2.F)}))};
  ParameterDict named{register_module("named", ParameterDict({{"scale", full({2, 1}, 3.F)}}))};

  Tensor forward(const Tensor& x) { return (powers[0] + powers[1] * x) * named["scale"]; }
};

TEST(ParameterContainers, RegisterTheirTensors) {
  Polynomial model;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.named_parameters())
    names.push_back(name);
  model(full({2, 1}, 5.F)).sum().backward();

  EXPECT_EQ(names, (std::vector<std::string>{"powers.0", "powers.1", "named.scale"}));
  EXPECT_EQ(model.powers[1].grad().item<float>(), 2 * 5 * 3);
  EXPECT_EQ(model.repr(),
            "Polynomial(\n"
            "  (powers): ParameterList(\n"
            "      (0): Parameter containing: [float32 of size 1]\n"
            "      (1): Parameter containing: [float32 of size 1]\n"
            "  )\n"
            "  (named): ParameterDict(  (scale): Parameter containing: [float32 of size 2x1])\n"
            ")");
  EXPECT_TRUE(model.named.contains("scale"));
  EXPECT_FALSE(model.named.contains("bias"));
  EXPECT_THROW(model.named["bias"], InvalidArgument);
  EXPECT_THROW(model.powers[2], InvalidArgument);
  EXPECT_THROW(model.named.insert("scale", ones({1})), InvalidArgument);
}

TEST(ModuleText, IsWrittenToStreams) {
  struct Net : Module<Net> {
    Linear fc{register_module("fc", Linear(2, 3))};

    Net() { set_extra_repr("depth=1"); }

    Tensor forward(const Tensor& x) { return fc(x); }
  };

  std::ostringstream out;
  out << Net();
  EXPECT_EQ(out.str(),
            "Net(\n"
            "  depth=1\n"
            "  (fc): Linear(in_features=2, out_features=3, bias=True)\n"
            ")");
}

TEST(ModuleText, ShowsTheReplacement) {
  struct Net : Module<Net> {
    AnyModule head{register_module("head", AnyModule(Linear(2, 3)))};

    Tensor forward(const Tensor& x) { return head(x); }
  };

  Net net;
  net.replace_module("head", Sequential(Dropout(0.5)));
  EXPECT_EQ(net.repr(),
            "Net(\n"
            "  (head): Sequential(\n"
            "    (0): Dropout(p=0.5, inplace=False)\n"
            "  )\n"
            ")");
}

TEST(Sequences, ArePaddedToTheLongest) {
  const std::vector<Tensor> given = {tensor({{1, 2}, {3, 4}}), tensor({{5, 6}})};
  using utils::rnn::pad_sequence;

  EXPECT_EQ(pad_sequence(given, {.batch_first = true, .padding_value = 9}).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 9, 9}));
  EXPECT_EQ(pad_sequence(given).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 2, 5, 6, 3, 4, 0, 0}));
  EXPECT_EQ(pad_sequence(given, {.padding_side = "left"}).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 2, 0, 0, 3, 4, 5, 6}));
  const std::vector<Tensor> back = utils::rnn::unpad_sequence(pad_sequence(given), tensor({2, 1}));
  EXPECT_TRUE(back[0].equal(given[0]));
  EXPECT_TRUE(back[1].equal(given[1]));
  EXPECT_THROW(pad_sequence({}), InvalidArgument);
  EXPECT_THROW(pad_sequence({zeros({2, 3}), zeros({2, 4})}), InvalidArgument);
  EXPECT_THROW(pad_sequence(given, {.padding_side = "top"}), InvalidArgument);
  EXPECT_THROW(utils::rnn::unpad_sequence(pad_sequence(given), tensor({3, 1})), InvalidArgument);
}

TEST(Sequences, ArePackedStepByStep) {
  namespace rnn = utils::rnn;
  const std::vector<Tensor> given = {tensor({1}), tensor({2, 3, 4}), tensor({5, 6})};
  const rnn::PackedSequence packed = rnn::pack_sequence(given, false);

  EXPECT_EQ(packed.data.to_vector<int64_t>(), (std::vector<int64_t>{2, 5, 1, 3, 6, 4}));
  EXPECT_EQ(packed.batch_sizes, (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(packed.sorted_indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 0}));
  const auto [output, lengths] =
      rnn::pad_packed_sequence(packed, {.batch_first = true, .padding_value = 9});
  EXPECT_EQ(output.to_vector<int64_t>(), (std::vector<int64_t>{1, 9, 9, 2, 3, 4, 5, 6, 9}));
  EXPECT_EQ(lengths.to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_THROW(rnn::pack_sequence(given), InvalidArgument);
  EXPECT_THROW(rnn::pack_sequence({tensor({1}), zeros({0}, {.dtype = int64})}), InvalidArgument);
  EXPECT_THROW(rnn::pad_packed_sequence(packed, {.total_length = 2}), InvalidArgument);
  EXPECT_THROW(LSTM(4, 2)(rnn::pack_sequence({zeros({2, 3})})), InvalidArgument);
}

// Numbers from `begin`.
struct Count {
  using Sample = Tensor;
  int64_t begin, length;

  int64_t size() const { return length; }

  Tensor operator[](int64_t i) const { return tensor(begin + i); }
};

TEST(CombinedDatasets, FollowEachOtherOrStandSideBySide) {
  const data::ConcatDataset joined(std::vector{Count{0, 2}, Count{10, 0}, Count{20, 3}});
  std::vector<int64_t> seen;
  for (const Tensor& batch : data::DataLoader(joined, {.batch_size = 5}))
    seen = batch.to_vector<int64_t>();
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 20, 21, 22}));
  EXPECT_THROW(joined[5], InvalidArgument);
  EXPECT_THROW(joined[-1], InvalidArgument);

  const data::StackDataset pairs(Count{0, 3}, Count{7, 3});
  for (const auto& [a, b] : data::DataLoader(pairs, {.batch_size = 3})) {
    EXPECT_EQ(a.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(b.to_vector<int64_t>(), (std::vector<int64_t>{7, 8, 9}));
  }
  EXPECT_THROW(data::StackDataset(Count{0, 3}, Count{7, 2}), InvalidArgument);
}

}  // namespace
}  // namespace flow::nn

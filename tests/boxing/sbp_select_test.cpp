#include "boxing/sbp_select.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/signature_score.h"
#include "core/error.h"

namespace flow {
namespace {

using boxing::NdSignature;

const Placement kPair("cpu", {0, 1});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;
const Sbp kP = sbp::partial_sum;

void matmul_infer(InferContext& ctx) {
  ctx.add_output({ctx.input(0).shape[0], ctx.input(1).shape[1]}, ctx.input(0).dtype);
}

void matmul_sbp(SbpContext& ctx) {
  ctx.add({kS0, kB}, {kS0});
  ctx.add({kB, kS1}, {kS1});
  ctx.add({kS1, kS0}, {kP});
  ctx.add({kP, kB}, {kP});
  ctx.add({kB, kP}, {kP});
}

const OpDef kMatmul{.name = "test_matmul",
                    .num_inputs = 2,
                    .infer = matmul_infer,
                    .sbp = matmul_sbp,
                    .grad = not_differentiable};

void relu_infer(InferContext& ctx) {
  ctx.add_output_like(0);
}

// Like relu, and legal for even sizes only.
void even_sbp(SbpContext& ctx) {
  for (int64_t dim = 0; dim < ctx.input(0).dim(); ++dim) {
    if (ctx.input(0).shape[dim] % 2 == 0) ctx.add({sbp::split(dim)}, {sbp::split(dim)});
  }
}

const OpDef kEven{
    .name = "test_even", .infer = relu_infer, .sbp = even_sbp, .grad = not_differentiable};
const OpDef kNoRule{
    .name = "test_no_rule", .infer = relu_infer, .sbp = only_broadcast, .grad = not_differentiable};

void add_sbp(SbpContext& ctx) {
  for (int64_t dim = 0; dim < ctx.input(0).dim(); ++dim)
    ctx.add({sbp::split(dim), sbp::split(dim)}, {sbp::split(dim)});
  ctx.add({kP, kP}, {kP});
}

void some_grad(GradContext& /*ctx*/) {}

const OpDef kAdd{
    .name = "test_add", .num_inputs = 2, .infer = relu_infer, .sbp = add_sbp, .grad = some_grad};

// y = x w^T + b
void linear_infer(InferContext& ctx) {
  ctx.add_output({ctx.input(0).shape[0], ctx.input(1).shape[0]}, ctx.input(0).dtype);
}

void linear_sbp(SbpContext& ctx) {
  ctx.add({kS0, kB, kB}, {kS0});
  ctx.add({kB, kS0, kS0}, {kS1});
  ctx.add({kS1, kS1, kP}, {kP});
}

const OpDef kLinear{.name = "test_linear",
                    .num_inputs = 3,
                    .infer = linear_infer,
                    .sbp = linear_sbp,
                    .grad = not_differentiable};

MetaPtr global(const Shape& shape, const Placement& placement, const NdSbp& nd_sbp) {
  return global_meta(shape, float32, placement, nd_sbp, 0);
}

Decision decide(const OpDef& op, const std::vector<MetaPtr>& inputs, uint32_t mutates = 0) {
  InferContext infer(op, inputs, nullptr);
  op.infer(infer);
  Decision decision;
  boxing::choose_layouts(op, inputs, nullptr, infer.outputs(), mutates, 0, decision);
  return decision;
}

std::string message_of(const OpDef& op, const std::vector<MetaPtr>& inputs, uint32_t mutates = 0) {
  try {
    decide(op, inputs, mutates);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(SbpSelect, LayoutsThatFitAreTaken) {
  const Decision rows = decide(kMatmul, {global({4, 5}, kPair, kS0), global({5, 8}, kPair, kB)});
  EXPECT_FALSE(rows.redistributes);
  EXPECT_EQ(rows.outputs[0]->nd_sbp, kS0);
  EXPECT_EQ(rows.outputs[0]->local_shape, (Shape{2, 8}));

  const Decision sums = decide(kMatmul, {global({4, 6}, kPair, kS1), global({6, 8}, kPair, kS0)});
  EXPECT_FALSE(sums.redistributes);
  EXPECT_EQ(sums.outputs[0]->nd_sbp, kP);
}

TEST(SbpSelect, ReplicatedInputsStayReplicated) {
  const Decision both = decide(kMatmul, {global({4, 5}, kPair, kB), global({5, 8}, kPair, kB)});

  EXPECT_FALSE(both.redistributes);
  EXPECT_EQ(both.outputs[0]->nd_sbp, kB);
}

TEST(SbpSelect, FreeSliceBeatsMovingData) {
  // b by rows needs a by columns, which every rank can cut out of its copy.
  const Decision cut = decide(kMatmul, {global({4, 6}, kPair, kB), global({6, 8}, kPair, kS0)});

  EXPECT_TRUE(cut.redistributes);
  EXPECT_EQ(cut.inputs[0].nd_sbp, kS1);
  EXPECT_FALSE(cut.inputs[1].placement.defined());
  EXPECT_EQ(cut.outputs[0]->nd_sbp, kP);
}

TEST(SbpSelect, SmallerInputIsTheOneThatMoves) {
  const Decision small_b =
      decide(kMatmul, {global({512, 64}, kPair, kS0), global({64, 2}, kPair, kS0)});

  EXPECT_FALSE(small_b.inputs[0].placement.defined());
  EXPECT_EQ(small_b.inputs[1].nd_sbp, kB);
  EXPECT_EQ(small_b.outputs[0]->nd_sbp, kS0);
}

TEST(SbpSelect, PartialInputsAreScatteredWhereNoGradientComesBack) {
  const Decision scattered = decide(kEven, {global({512, 512}, kPair, kP)});

  EXPECT_EQ(scattered.inputs[0].nd_sbp, kS0);
  EXPECT_EQ(scattered.outputs[0]->nd_sbp, kS0);
}

TEST(SbpSelect, PartialInputsAreSummedEverywhereWhereAGradientComesBack) {
  OpDef relu = kEven;
  relu.grad = some_grad;

  const Decision summed = decide(relu, {global({512, 512}, kPair, kP)});

  EXPECT_EQ(summed.inputs[0].nd_sbp, kB);
  EXPECT_EQ(summed.outputs[0]->nd_sbp, kB);
}

TEST(SbpSelect, AnAdditionReducesItsOnePartialOperand) {
  const MetaPtr whole = global({512, 512}, kPair, kB);
  const Decision sum = decide(kAdd, {whole, global({512, 512}, kPair, kP)});

  EXPECT_FALSE(sum.inputs[0].placement.defined());
  EXPECT_EQ(sum.inputs[1].nd_sbp, kB);
  EXPECT_EQ(sum.outputs[0]->nd_sbp, kB);
}

TEST(SbpSelect, PartialSumsAreAddedBeforeTheyAreReduced) {
  const MetaPtr partial = global({512, 512}, kPair, kP);
  const Decision sum = decide(kAdd, {partial, partial});

  EXPECT_FALSE(sum.redistributes);
  EXPECT_EQ(sum.outputs[0]->nd_sbp, kP);
}

TEST(SbpSelect, WhatNeedsNoCommunicationIsTaken) {
  // Gathering both matrices would be faster than reducing the large product later.
  const Decision padded = decide(kLinear, {global({512, 8}, kPair, kS1),
                                           global({512, 8}, kPair, kS1), global({512}, kPair, kB)});

  EXPECT_FALSE(padded.inputs[0].placement.defined());
  EXPECT_FALSE(padded.inputs[1].placement.defined());
  EXPECT_EQ(padded.inputs[2].nd_sbp, kP);
  EXPECT_EQ(padded.outputs[0]->nd_sbp, kP);
}

TEST(SbpSelect, CutInputsAreNotPaddedToPartialOnes) {
  // a by rows fits neither its columns nor a whole b; pads would keep all the work on every rank.
  const Decision moved = decide(kAdd, {global({64, 64}, kPair, kS0), global({64, 64}, kPair, kS1)});

  EXPECT_TRUE(moved.outputs[0]->nd_sbp[0].is_split());
}

TEST(SbpSelect, WorkStaysDivided) {
  OpDef product = kMatmul;
  product.cost = [](const SbpContext& ctx) {
    return Cost{2.0 * static_cast<double>(ctx.output(0).shape.numel() * ctx.input(1).shape[0])};
  };

  const Decision rows =
      decide(product, {global({256, 256}, kPair, kS0), global({256, 256}, kPair, kS0)});

  EXPECT_TRUE(rows.outputs[0]->nd_sbp[0].is_split());
}

TEST(SbpSelect, AxesChooseOnTheirOwn) {
  const Decision grid =
      decide(kMatmul, {global({4, 6}, kGrid, {kS0, kS1}), global({6, 8}, kGrid, {kB, kS0})});

  EXPECT_FALSE(grid.redistributes);
  EXPECT_EQ(grid.outputs[0]->nd_sbp, (NdSbp{kS0, kP}));
}

TEST(SbpSelect, InnerAxesSeeTheShapesThatOuterOnesLeave) {
  // Six rows are even, the three rows of a half are not.
  const MetaPtr six = global({6}, kGrid, {kB, kB});
  const std::vector<OutputSpec> outputs = {{.shape = {6}, .dtype = float32}};
  const auto signatures =
      boxing::nd_signatures(kEven, std::vector<MetaPtr>{six}, nullptr, outputs, kGrid);
  const std::vector<NdSignature> expected = {
      {{{kS0, kB}}, {{kS0, kB}}}, {{{kB, kS0}}, {{kB, kS0}}}, {{{kB, kB}}, {{kB, kB}}}};
  EXPECT_EQ(signatures, expected);

  // Ten rows on three: the first ranks keep four, an even number, but the last three.
  const Placement tall("cpu", {{0, 1}, {2, 3}, {4, 5}});
  const MetaPtr ten = global({10}, tall, {kB, kB});
  const std::vector<OutputSpec> ten_out = {{.shape = {10}, .dtype = float32}};
  EXPECT_EQ(boxing::nd_signatures(kEven, std::vector<MetaPtr>{ten}, nullptr, ten_out, tall),
            expected);
}

// Sums x[i] w[i]; a kernel that knows the positions of its parts also takes a whole x.
void dot_sbp(SbpContext& ctx) {
  ctx.add({kS0, kS0}, {kP});
  ctx.add_positional({kB, kS0}, {kP});
}

const OpDef kDot{.name = "test_dot",
                 .num_inputs = 2,
                 .infer = [](InferContext& ctx) { ctx.add_output({}, ctx.input(0).dtype); },
                 .sbp = dot_sbp,
                 .grad = not_differentiable};

bool contains(const std::vector<NdSignature>& list, const NdSignature& signature) {
  return std::find(list.begin(), list.end(), signature) != list.end();
}

TEST(SbpSelect, PartsThatBeginElsewhereAreNotPaired) {
  const std::vector<MetaPtr> inputs = {global({8}, kGrid, {kB, kB}), global({8}, kGrid, {kB, kB})};
  const std::vector<OutputSpec> outputs = {{.shape = {}, .dtype = float32}};

  const auto signatures = boxing::nd_signatures(kDot, inputs, nullptr, outputs, kGrid);

  // Slice j of x would meet slice j of slice i of w.
  EXPECT_FALSE(contains(signatures, {{{kB, kS0}, {kS0, kS0}}, {{kP, kP}}}));
  EXPECT_TRUE(contains(signatures, {{{kS0, kS0}, {kS0, kS0}}, {{kP, kP}}}));
  EXPECT_TRUE(contains(signatures, {{{kB, kB}, {kS0, kS0}}, {{kP, kP}}}));
}

TEST(SbpSelect, MaximaAndMinimaOfDifferentInputsAreNotCombined) {
  const Sbp max = sbp::partial_max;
  const Sbp min = sbp::partial_min;
  static const SbpFn rule = [](SbpContext& ctx) {
    for (const Sbp extremum : {sbp::partial_max, sbp::partial_min}) {
      ctx.add({extremum, kB}, {extremum});
      ctx.add({kB, extremum}, {extremum});
    }
  };
  const OpDef op{.name = "test_add_extrema",
                 .num_inputs = 2,
                 .infer = relu_infer,
                 .sbp = rule,
                 .grad = not_differentiable};
  const std::vector<MetaPtr> inputs = {global({8}, kGrid, {kB, kB}), global({8}, kGrid, {kB, kB})};
  const std::vector<OutputSpec> outputs = {{.shape = {8}, .dtype = float32}};

  const auto signatures = boxing::nd_signatures(op, inputs, nullptr, outputs, kGrid);

  EXPECT_FALSE(contains(signatures, {{{min, kB}, {kB, max}}, {{min, max}}}));
  EXPECT_TRUE(contains(signatures, {{{min, kB}, {kB, min}}, {{min, min}}}));
  EXPECT_TRUE(contains(signatures, {{{min, max}, {kB, kB}}, {{min, max}}}));
}

TEST(SbpSelect, OpsWithoutRuleGather) {
  const Decision gathered = decide(kNoRule, {global({4}, kPair, kS0)});

  EXPECT_EQ(gathered.inputs[0].nd_sbp, kB);
  EXPECT_EQ(gathered.outputs[0]->nd_sbp, kB);
}

TEST(SbpSelect, WrittenTensorsKeepTheirLayout) {
  const Decision written = decide(kEven, {global({4, 6}, kPair, kS1)}, 1);
  EXPECT_FALSE(written.redistributes);
  EXPECT_EQ(written.outputs[0]->nd_sbp, kS1);

  const std::string text = message_of(kEven, {global({4, 6}, kPair, kP)}, 1);
  EXPECT_NE(text.find("[test_even_]"), std::string::npos) << text;
  EXPECT_NE(text.find("P on cpu:(0, 1)"), std::string::npos) << text;
}

TEST(SbpSelect, MixingIsAnErrorThatNamesBoth) {
  const MetaPtr local = local_meta({5, 8}, float32, DeviceType::kCpu);
  const std::string mixed = message_of(kMatmul, {global({4, 5}, kPair, kS0), local});
  EXPECT_NE(mixed.find("local and global"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("input 1 is (5, 8) float32 (local)"), std::string::npos) << mixed;

  const Placement other("cpu", {0, 2});
  const std::string placed =
      message_of(kMatmul, {global({4, 5}, kPair, kS0), global({5, 8}, other, kB)});
  EXPECT_NE(placed.find("cpu:(0, 1)"), std::string::npos) << placed;
  EXPECT_NE(placed.find("cpu:(0, 2)"), std::string::npos) << placed;
}

TEST(SbpSelect, LocalInputsGiveLocalOutputs) {
  const MetaPtr a = local_meta({4, 5}, float32, DeviceType::kCpu);
  const MetaPtr b = local_meta({5, 8}, float32, DeviceType::kCpu);

  const Decision local = decide(kMatmul, {a, b});

  EXPECT_EQ(local.outputs[0], local_meta({4, 8}, float32, DeviceType::kCpu));
}

TEST(SbpSelect, TheLeastScoreWinsAndThenTheEarlierInTheTable) {
  const Placement cube("cpu", {{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}});
  const std::vector<Sbp> entries = {kS0, kS1, kB, kP};
  std::mt19937_64 random(3);
  const auto layout = [&] {
    NdSbp nd_sbp;
    for (int axis = 0; axis < 3; ++axis)
      nd_sbp.push_back(entries[random() % entries.size()]);
    return nd_sbp;
  };
  const auto inputs_of = [&](const OpDef& op, int64_t size) -> std::vector<MetaPtr> {
    if (&op == &kAdd)
      return {global({size, 24}, cube, layout()), global({size, 24}, cube, layout())};
    if (&op == &kMatmul)
      return {global({size, 24}, cube, layout()), global({24, size}, cube, layout())};
    return {global({size, 24}, cube, layout()), global({48, 24}, cube, layout()),
            global({48}, cube, {kB, kP, kB})};
  };
  for (int i = 0; i < 60; ++i) {
    const OpDef& op = i % 3 == 0 ? kAdd : i % 3 == 1 ? kMatmul : kLinear;
    const std::vector<MetaPtr> inputs = inputs_of(op, i % 2 == 0 ? 8 : 1111);
    InferContext infer(op, inputs, nullptr);
    op.infer(infer);
    const auto signatures = boxing::nd_signatures(op, inputs, nullptr, infer.outputs(), cube);
    boxing::SignatureScorer scorer(op, inputs, nullptr, infer.outputs(), cube);
    boxing::Reach least = boxing::Reach::kMoves;
    for (const NdSignature& signature : signatures)
      least = std::min(least, scorer.reach(signature));
    const NdSignature* best = nullptr;
    boxing::Score best_score;
    for (const NdSignature& signature : signatures) {
      if (scorer.reach(signature) != least) continue;
      const boxing::Score score =
          scorer.score(signature, std::numeric_limits<double>::infinity()).value();
      if (best != nullptr && !(score < best_score)) continue;
      best = &signature;
      best_score = score;
    }

    const Decision decision = decide(op, inputs);

    EXPECT_EQ(decision.outputs[0]->nd_sbp, best->outputs[0]) << op.name << ' ' << i;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const bool moves = decision.inputs[k].placement.defined();
      EXPECT_EQ(moves ? decision.inputs[k].nd_sbp : inputs[k]->nd_sbp, best->inputs[k])
          << op.name << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace flow

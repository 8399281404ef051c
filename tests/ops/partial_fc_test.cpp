// Compares the sample of classes with its definition, on one rank and on several.
#include "ops/loss/partial_fc.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/tensor_meta.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace {

using Longs = std::vector<int64_t>;

Tensor labels_of(const Longs& labels) {
  return tensor(labels, {static_cast<int64_t>(labels.size())});
}

// The classes that the definition in ops/loss/partial_fc.h selects.
Longs sample_by_definition(const RandomStream& random, int64_t classes, int64_t num_sample,
                           int64_t parts, const Longs& labels) {
  Longs taken;
  for (int64_t p = 0; p < parts; ++p) {
    const Range own = balanced_part(classes, parts, p);
    std::set<int64_t> part;
    for (const int64_t label : labels) {
      if (label >= own.begin && label < own.begin + own.size) part.insert(label);
    }
    std::vector<std::pair<uint32_t, int64_t>> others;
    for (int64_t c = own.begin; c < own.begin + own.size; ++c) {
      const uint32_t draw =
          philox(random, static_cast<uint64_t>(c / 4))[static_cast<size_t>(c % 4)];
      if (!part.contains(c)) others.emplace_back(draw, c);
    }
    std::sort(others.begin(), others.end());
    for (const auto& [draw, c] : others) {
      if (static_cast<int64_t>(part.size()) < balanced_part(num_sample, parts, p).size)
        part.insert(c);
    }
    taken.insert(taken.end(), part.begin(), part.end());
  }
  return taken;
}

TEST(PartialFc, TakesTheLabelsAndTheSmallestDrawsOfEachPart) {
  const Longs labels{700, 3, 3, 1499, 256};
  const Tensor weight = arange(1500.0).reshape({1500, 1});
  for (const int64_t parts : {1, 2, 7}) {
    manual_seed(11);
    const Longs expected =
        sample_by_definition({.seed = 11, .stream = 0}, 1500, 150, parts, labels);

    const auto [mapped, sampled, rows] =
        distributed_partial_fc_sample(weight, labels_of(labels), 150, {.num_parts = parts});

    EXPECT_EQ(sampled.to_vector<int64_t>(), expected) << parts;
    const Longs places = mapped.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i)
      EXPECT_EQ(expected[static_cast<size_t>(places[i])], labels[i]) << parts;
    EXPECT_EQ(rows.to_vector<float>(), std::vector<float>(expected.begin(), expected.end()));
  }
}

TEST(PartialFc, EveryDrawIsAnother) {
  manual_seed(11);
  const Tensor weight = zeros({1000, 1});
  const Tensor label = labels_of({5});

  const Longs first =
      distributed_partial_fc_sample(weight, label, 10).sampled_label.to_vector<int64_t>();
  const Longs second =
      distributed_partial_fc_sample(weight, label, 10).sampled_label.to_vector<int64_t>();

  EXPECT_NE(first, second);
}

TEST(PartialFc, AllClassesLeaveLabelsAsTheyAre) {
  const Tensor label = cast(labels_of({4, 0, 2}), int32);
  const auto [mapped, sampled, rows] = distributed_partial_fc_sample(zeros({5, 2}), label, 5);

  EXPECT_EQ(mapped.dtype(), int32);
  EXPECT_EQ(mapped.to_vector<int32_t>(), std::vector<int32_t>({4, 0, 2}));
  EXPECT_EQ(sampled.to_vector<int32_t>(), std::vector<int32_t>({0, 1, 2, 3, 4}));
}

TEST(PartialFc, GradientGoesToTheRowsTaken) {
  const Tensor weight = ones({6, 2}, {.requires_grad = true});
  const auto [mapped, sampled, rows] = distributed_partial_fc_sample(weight, labels_of({1, 4}), 2);
  sum(mul(rows, tensor({{1.f, 2.f}, {3.f, 4.f}}))).backward();

  EXPECT_EQ(sampled.to_vector<int64_t>(), Longs({1, 4}));
  EXPECT_EQ(weight.grad().to_vector<float>(),
            std::vector<float>({0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0}));
}

TEST(PartialFc, RanksSampleTheirOwnClassesAsOneRankDoes) {
  const Longs labels{0, 10, 10, 21};
  manual_seed(3);
  const Tensor local = arange(46.0).reshape({23, 2});
  const auto expected =
      distributed_partial_fc_sample(local, labels_of(labels), 9, {.num_parts = 2});

  run_ranks(2, [&] {
    const Placement pair("cpu", {0, 1});
    manual_seed(3);
    const Tensor weight = local.to_global({.placement = pair, .sbp = sbp::broadcast})
                              .to_global({.placement = pair, .sbp = sbp::split(0)})
                              .detach()
                              .requires_grad_();
    const Tensor label = labels_of(labels).to_global({.placement = pair, .sbp = sbp::broadcast});
    const auto [own_mapped, own_sampled, own_rows] =
        distributed_partial_fc_sample(weight, label, 9);

    EXPECT_EQ(own_sampled.sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(own_rows.sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(own_mapped.full().to_vector<int64_t>(), expected.mapped_label.to_vector<int64_t>());
    EXPECT_EQ(own_sampled.full().to_vector<int64_t>(), expected.sampled_label.to_vector<int64_t>());
    EXPECT_EQ(own_rows.full().to_vector<float>(), expected.sampled_weight.to_vector<float>());
    sum(own_rows).backward();
    EXPECT_EQ(weight.grad().sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(sum(weight.grad()).item<float>(), 18);
  });
}

void expect_error(const Tensor& weight, const Tensor& label, int64_t num_sample,
                  const std::string& part) {
  try {
    distributed_partial_fc_sample(weight, label, num_sample);
    FAIL() << part;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("[distributed_partial_fc_sample]"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(PartialFc, SaysWhatDoesNotFit) {
  const Tensor weight = zeros({6, 2});
  expect_error(weight, labels_of({6}), 3, "label 6 is none of the 6 classes");
  expect_error(weight, labels_of({-1}), 3, "label -1 is none of the 6 classes");
  expect_error(weight, labels_of({0, 1, 2}), 2, "raise num_sample");
  expect_error(weight, labels_of({0}), 7, "num_sample 7");
  expect_error(weight, labels_of({0}), 0, "num_sample 0");
  expect_error(zeros({6}), labels_of({0}), 1, "weight must be a floating matrix");
  expect_error(weight, zeros({2}), 1, "label must be (N)");
}

}  // namespace
}  // namespace flow

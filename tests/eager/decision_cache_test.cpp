#include "eager/decision_cache.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/context.h"
#include "core/error.h"
#include "eager/chooser.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/optimizer/update.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using eager::CachedDecision;
using eager::CachingChooser;
using eager::decision_cache;

// The number of calls whose decision was made anew while it lived.
class Misses {
 public:
  Misses() : start_(decision_cache().stats().misses) {}

  int64_t count() const { return decision_cache().stats().misses - start_; }

 private:
  int64_t start_;
};

struct DecisionCache : ::testing::Test {
  DecisionCache() { decision_cache().clear(); }
};

TEST_F(DecisionCache, EqualCallsAreDecidedOnce) {
  const Tensor a = ones({2, 3});
  const Tensor b = ones({2, 3});
  add(a, b);
  const eager::CacheStats before = decision_cache().stats();

  add(b, a);
  add(ones({2, 3}), a);

  EXPECT_EQ(decision_cache().stats().misses - before.misses, 0);
  EXPECT_EQ(decision_cache().stats().hits - before.hits, 3);  // two additions and ones
}

TEST_F(DecisionCache, ShapeIsPartOfTheKey) {
  add(ones({2, 3}), ones({2, 3}));
  const Tensor a = ones({3, 2});
  const Misses misses;

  const Tensor c = add(a, a);

  EXPECT_EQ(misses.count(), 1);
  EXPECT_EQ(c.shape(), (Shape{3, 2}));
}

TEST_F(DecisionCache, DtypeIsPartOfTheKey) {
  add(ones({2, 3}), ones({2, 3}));
  const Tensor a = ones({2, 3}, {.dtype = float64});
  const Misses misses;

  const Tensor c = add(a, a);

  EXPECT_EQ(misses.count(), 1);
  EXPECT_EQ(c.dtype(), float64);
}

TEST_F(DecisionCache, StridesArePartOfTheKey) {
  const Tensor a = tensor({{1.F, 2.F}, {3.F, 4.F}});
  add(a, a);
  const Tensor transposed = t(a);
  const Misses misses;

  const Tensor c = add(transposed, transposed);

  EXPECT_EQ(misses.count(), 1);
  EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{2, 6, 4, 8}));
}

TEST_F(DecisionCache, PlacementAndSbpArePartOfTheKey) {
  const Placement here("cpu", {0});
  const Tensor local = ones({2, 3});
  const Tensor split = ones({2, 3}, {.placement = here, .sbp = sbp::split(0)});
  const Tensor whole = ones({2, 3}, {.placement = here, .sbp = sbp::broadcast});
  add(local, local);
  const Misses misses;

  const Tensor c = add(split, split);
  const Tensor d = add(whole, whole);

  EXPECT_EQ(misses.count(), 2);
  EXPECT_EQ(c.sbp(), NdSbp(sbp::split(0)));
  EXPECT_EQ(d.sbp(), NdSbp(sbp::broadcast));
}

TEST_F(DecisionCache, KeyAttrsArePartOfTheKey) {
  const Tensor a = ones({2, 3});
  sum(a, 0);
  const Misses misses;

  const Tensor c = sum(a, 1);
  const Tensor d = sum(a, 1, {.keepdim = true});

  EXPECT_EQ(misses.count(), 2);
  EXPECT_EQ(c.shape(), (Shape{2}));
  EXPECT_EQ(d.shape(), (Shape{2, 1}));
}

TEST_F(DecisionCache, ValueAttrsOfLocalCallsAreNot) {
  const Tensor a = ones({2, 3});
  mul(a, 2);
  const Misses misses;

  const Tensor c = mul(a, 5);

  EXPECT_EQ(misses.count(), 0);
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(6, 5));
}

TEST_F(DecisionCache, ValueAttrsOfGlobalCallsAre) {
  const Tensor a = ones({2, 3}, {.placement = Placement("cpu", {0}), .sbp = sbp::broadcast});
  mul(a, 2);
  const Misses misses;

  mul(a, 5);

  EXPECT_EQ(misses.count(), 1);
}

TEST_F(DecisionCache, ValueAttrsOfGlobalElementwiseCallsAreNot) {
  const TensorOptions layout{.placement = Placement("cpu", {0}), .sbp = sbp::broadcast};
  const Tensor param = ones({2}, layout), grad = ones({2}, layout);
  sgd_update(param, grad, Tensor(), {.lr = 0.5});
  const Misses misses;

  sgd_update(param, grad, Tensor(), {.lr = 0.25});

  EXPECT_EQ(misses.count(), 0);
}

TEST_F(DecisionCache, WritingInPlaceIsPartOfTheKey) {
  const Tensor a = ones({2, 3});
  add(a, a);
  const Misses misses;

  a.add_(a);

  EXPECT_EQ(misses.count(), 1);
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(6, 2));
}

TEST_F(DecisionCache, UndefinedInputsArePartOfTheKey) {
  const Tensor undefined;
  const Tensor a = ones({3});
  const std::array<const Tensor*, 2> with{&a, &a};
  const std::array<const Tensor*, 2> without{&a, &undefined};
  const OpDef& op = *op_table().find("add");

  const struct { double alpha = 1; } attrs;

  const Call with_call{op, with, &attrs, Site::here()};
  const Call without_call{op, without, &attrs, Site::here()};
  eager::DecisionCache cache;
  cache.find(with_call);
  cache.insert(with_call, std::make_unique<CachedDecision>());

  EXPECT_NE(cache.find(with_call), nullptr);
  EXPECT_EQ(cache.find(without_call), nullptr);
}

TEST_F(DecisionCache, IsBounded) {
  const Tensor a = ones({2, 2});
  const OpDef& op = *op_table().find("reshape");
  eager::DecisionCache cache;
  const std::array<const Tensor*, 1> inputs{&a};
  for (size_t i = 0; i <= eager::DecisionCache::kMaxEntries; ++i) {
    const Shape shape{static_cast<int64_t>(i)};
    const Call call{op, inputs, &shape, Site::here()};
    ASSERT_EQ(cache.find(call), nullptr);
    cache.insert(call, std::make_unique<CachedDecision>());
  }

  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.stats().misses, static_cast<int64_t>(eager::DecisionCache::kMaxEntries) + 1);
}

// A decision outlives the one retirement that calls nested in its own may cause.
TEST_F(DecisionCache, KeepsRetiredDecisionsUntilTheNextTime) {
  const Tensor a = ones({2, 2});
  const OpDef& op = *op_table().find("reshape");
  const std::array<const Tensor*, 1> inputs{&a};
  eager::DecisionCache cache;
  const Shape shape{4};
  const Call call{op, inputs, &shape, Site::here()};
  auto decision = std::make_unique<CachedDecision>();
  decision->redistributes = true;
  const CachedDecision& inserted = cache.insert(call, std::move(decision));

  cache.clear();

  EXPECT_EQ(cache.find(call), nullptr);
  EXPECT_TRUE(inserted.redistributes);
}

// With FLOW_CHECK=1 hits are recomputed: a shape rule that changes its mind is found out.
int64_t unsteady_size = 1;

void infer_unsteady(InferContext& ctx) {
  ctx.add_output(Shape{unsteady_size}, ctx.input(0).dtype);
}

const OpDef kUnsteady{.name = "unsteady_for_test",
                      .infer = infer_unsteady,
                      .sbp = only_broadcast,
                      .grad = not_differentiable};

TEST_F(DecisionCache, CheckModeRecomputesHits) {
  const Tensor a = ones({2});
  const std::array<const Tensor*, 1> inputs{&a};
  const Call call{kUnsteady, inputs, nullptr, Site::here()};
  ::setenv("FLOW_CHECK", "1", 1);
  CachingChooser checking;
  ::unsetenv("FLOW_CHECK");
  CachingChooser trusting;
  for (CachingChooser* chooser : {&checking, &trusting})
    chooser->choose(call);

  unsteady_size = 2;

  EXPECT_THROW(checking.choose(call), InternalError);
  EXPECT_EQ(trusting.choose(call).outputs[0]->shape, (Shape{1}));
  unsteady_size = 1;
}

}  // namespace

}  // namespace flow

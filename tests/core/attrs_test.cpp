#include "core/attrs.h"

#include <limits>

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow {
namespace {

struct EveryKind {
  bool flag = false;
  int64_t number = 0;
  double real = 0;
  DType dtype = float32;
  Scalar scalar = {};
  Shape shape = {};
  Placement placement = {};
  NdSbp layout = {};
  std::array<int64_t, 2> pair = {};
  std::optional<int64_t> maybe = {};
  double value = 0;

  static constexpr auto fields() {
    return std::tuple(
        key_field("flag", &EveryKind::flag), key_field("number", &EveryKind::number),
        key_field("real", &EveryKind::real), key_field("dtype", &EveryKind::dtype),
        key_field("scalar", &EveryKind::scalar), key_field("shape", &EveryKind::shape),
        key_field("placement", &EveryKind::placement), key_field("layout", &EveryKind::layout),
        key_field("pair", &EveryKind::pair), key_field("maybe", &EveryKind::maybe),
        value_field("value", &EveryKind::value));
  }
};

EveryKind sample() {
  return {.flag = true,
          .number = -7,
          .real = 0.1,
          .dtype = bfloat16,
          .scalar = 3.0,
          .shape = {4, 0},
          .placement = Placement("cpu", {{0, 1}, {2, 3}}),
          .layout = NdSbp({sbp::split(0), sbp::partial_max}),
          .pair = {1, 2},
          .maybe = 5,
          .value = 1e-3};
}

TEST(Attrs, TextParsesBack) {
  const AttrsDef& def = *attrs_def<EveryKind>();
  for (const EveryKind& attrs : {EveryKind(), sample()}) {
    EveryKind parsed;
    def.parse(def.to_string(&attrs), &parsed);
    EXPECT_TRUE(def.equal(&attrs, &parsed, true)) << def.to_string(&attrs);
  }
}

TEST(Attrs, ValueFieldsCountOnlyWhenAskedFor) {
  const AttrsDef& def = *attrs_def<EveryKind>();
  const EveryKind a = sample();
  EveryKind b = a;
  b.value = 2;
  EXPECT_TRUE(def.equal(&a, &b, false));
  EXPECT_EQ(def.hash(&a, false), def.hash(&b, false));
  EXPECT_FALSE(def.equal(&a, &b, true));
  EXPECT_NE(def.hash(&a, true), def.hash(&b, true));
}

TEST(Attrs, EveryKeyFieldTellsCallsApart) {
  const AttrsDef& def = *attrs_def<EveryKind>();
  const EveryKind a = sample();
  const auto differs = [&](auto change) {
    EveryKind b = a;
    change(b);
    return !def.equal(&a, &b, false) && def.hash(&a, false) != def.hash(&b, false);
  };
  EXPECT_TRUE(differs([](EveryKind& b) { b.flag = false; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.number = 7; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.real = 0.2; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.dtype = float16; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.scalar = 3; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.shape = {4}; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.placement = Placement(); }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.layout = NdSbp(sbp::split(0)); }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.pair[1] = 3; }));
  EXPECT_TRUE(differs([](EveryKind& b) { b.maybe.reset(); }));
}

TEST(Attrs, NaNEqualsItself) {
  const AttrsDef& def = *attrs_def<EveryKind>();
  EveryKind a, b;
  a.real = b.real = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(def.equal(&a, &b, true));
}

TEST(Attrs, BadTextIsRefused) {
  EveryKind attrs;
  EXPECT_THROW(attrs_def<EveryKind>()->parse("flag=true", &attrs), InvalidArgument);
}

}  // namespace
}  // namespace flow

#include "ops/kernel/cpu_features.h"

#include <string>

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow::ops {
namespace {

TEST(CpuFeatures, LimitNeverWidensWhatTheMachineHas) {
  EXPECT_EQ(choose_isa(CpuIsa::kBaseline, "avx512"), CpuIsa::kBaseline);
}

TEST(CpuFeatures, LimitNarrowsTheChoice) {
  EXPECT_EQ(choose_isa(CpuIsa::kAvx512, "baseline"), CpuIsa::kBaseline);
}

#if FLOW_COMPILED_ISAS == 7
TEST(CpuFeatures, WithoutLimitTheWidestIsTaken) {
  EXPECT_EQ(choose_isa(CpuIsa::kAvx512, ""), CpuIsa::kAvx512);
  EXPECT_EQ(choose_isa(CpuIsa::kAvx2, ""), CpuIsa::kAvx2);
  EXPECT_EQ(choose_isa(CpuIsa::kAvx512, "avx2"), CpuIsa::kAvx2);
}
#endif

TEST(CpuFeatures, WhatIsNotCompiledIsNotChosen) {
  for (const CpuIsa detected : {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    const CpuIsa chosen = choose_isa(detected, "");
    EXPECT_LE(chosen, detected);
    EXPECT_NE(FLOW_COMPILED_ISAS & (1 << static_cast<int>(chosen)), 0) << to_string(chosen);
  }
}

TEST(CpuFeatures, WidestVariantSkipsThoseThatAreNotThere) {
  const std::array<const char*, 3> variants = {"baseline", nullptr, "avx512"};

  EXPECT_STREQ(widest_variant(variants, CpuIsa::kBaseline), "baseline");
  EXPECT_STREQ(widest_variant(variants, CpuIsa::kAvx2), "baseline");
  EXPECT_STREQ(widest_variant(variants, CpuIsa::kAvx512), "avx512");
}

TEST(CpuFeatures, CpuThatLacksWhatTheBuildRequiresIsNamed) {
  EXPECT_NO_THROW(require_isa(CpuIsa::kAvx2, CpuIsa::kAvx512));
  try {
    require_isa(CpuIsa::kAvx512, CpuIsa::kAvx2);
    FAIL() << "accepted";
  } catch (const Unsupported& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("on a CPU with avx512; this CPU has only avx2"), std::string::npos) << text;
  }
}

TEST(CpuFeatures, UnknownLimitIsRefusedWithTheChoices) {
  try {
    choose_isa(CpuIsa::kAvx2, "sse9");
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("sse9"), std::string::npos) << text;
    EXPECT_NE(text.find("baseline, avx2 or avx512"), std::string::npos) << text;
  }
}

TEST(CpuFeatures, NamesRoundTrip) {
  EXPECT_EQ(to_string(CpuIsa::kBaseline), "baseline");
  EXPECT_EQ(to_string(CpuIsa::kAvx2), "avx2");
  EXPECT_EQ(to_string(CpuIsa::kAvx512), "avx512");
}

}  // namespace
}  // namespace flow::ops

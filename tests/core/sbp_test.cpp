#include "core/sbp.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow {
namespace {

TEST(Sbp, TextParsesBack) {
  for (const NdSbp& layout :
       {NdSbp(sbp::split(3)), NdSbp(sbp::broadcast), NdSbp(sbp::partial_max),
        NdSbp({sbp::split(0), sbp::broadcast}), NdSbp({sbp::partial_sum, sbp::partial_min})}) {
    EXPECT_EQ(NdSbp::parse(str(layout)), layout);
  }
  EXPECT_EQ(str(NdSbp({sbp::split(0), sbp::broadcast})), "(S(0), B)");
}

TEST(Sbp, BadTextIsRefused) {
  for (const char* text : {"", "S", "S()", "S(-1)", "S(9)", "Q", "(S(0)", "S(1x)"}) {
    EXPECT_THROW(NdSbp::parse(text), InvalidArgument) << text;
  }
}

TEST(Sbp, NegativeSplitDimIsRefused) {
  EXPECT_THROW(sbp::split(-1), InvalidArgument);
}

TEST(Sbp, OneEntryComparesWithItsSbp) {
  const NdSbp one(sbp::split(1));
  EXPECT_TRUE(one == sbp::split(1));
  EXPECT_FALSE(one == sbp::broadcast);
  EXPECT_FALSE(NdSbp() == sbp::broadcast);
}

}  // namespace
}  // namespace flow

#include "core/version.h"

#include <string>

#include <gtest/gtest.h>

namespace flow {
namespace {

TEST(Version, IsThatOfThisRelease) {
  EXPECT_EQ(version(), "0.1.0");
}

TEST(Version, ConfigurationOpensWithTheVersion) {
  EXPECT_TRUE(build_configuration().starts_with("flow 0.1.0, ")) << build_configuration();
}

}  // namespace
}  // namespace flow

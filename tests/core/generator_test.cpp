#include "core/generator.h"

#include <gtest/gtest.h>

namespace flow {
namespace {

// Known answers of Random123's philox4x32-10 (Salmon et al. 2011).
TEST(Philox, KnownAnswers) {
  const auto zero = philox({}, 0);
  EXPECT_EQ(zero, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  // All bits of counter and key set.
  const RandomStream ones{.seed = ~uint64_t{0}, .stream = ~uint64_t{0}, .rank = 0};
  const auto all = philox(ones, ~uint64_t{0});
  EXPECT_EQ(all, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, RankSeedAndStreamGiveOtherNumbers) {
  const RandomStream base{.seed = 1, .stream = 2, .rank = 0};
  for (const RandomStream& other :
       {RandomStream{2, 2, 0}, RandomStream{1, 3, 0}, RandomStream{1, 2, 1},
        RandomStream{1 + (uint64_t{1} << 32), 2, 0}, RandomStream{1, 2 + (uint64_t{1} << 32), 0}}) {
    EXPECT_NE(philox(base, 0), philox(other, 0));
  }
}

TEST(Generator, StateRestoresTheSequence) {
  Generator generator;
  generator.set_state({.seed = 9, .next_stream = 0});
  generator.next();
  const Generator::State state = generator.state();
  const RandomStream second = generator.next();
  generator.next();
  generator.set_state(state);
  EXPECT_EQ(generator.next(), second);
  EXPECT_EQ(second.stream, 1U);
}

TEST(Generator, UniformsLieInTheHalfOpenInterval) {
  EXPECT_EQ(uniform_float(0), 0.0F);
  EXPECT_LT(uniform_float(~uint32_t{0}), 1.0F);
  EXPECT_LT(uniform_double(~uint32_t{0}, ~uint32_t{0}), 1.0);
}

}  // namespace
}  // namespace flow

// Counter-based random numbers: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). Any slice of a draw can be computed separately, so values depend on the seed
// and the logical element only, never on the layout or the number of ranks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace flow {

// Identifies one draw. In a 32-bit draw, element i is lane i mod 4 of block i div 4; in a 64-bit
// draw, it is lanes 2 (i mod 2) and 2 (i mod 2) + 1 of block i div 2.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t stream = 0;  // ordinal of the random op in program order
  uint64_t rank = 0;    // the drawing rank of a local draw; 0 for global draws

  friend bool operator==(const RandomStream&, const RandomStream&) = default;
};

// The key consists of the low words of seed and stream. The counter consists of the block, the high
// word of the seed, and the high word of the stream mixed with the rank.
constexpr std::array<uint32_t, 4> philox(const RandomStream& random, uint64_t block) {
  uint32_t k0 = static_cast<uint32_t>(random.seed);
  uint32_t k1 = static_cast<uint32_t>(random.stream);
  uint32_t c0 = static_cast<uint32_t>(block);
  uint32_t c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(random.seed >> 32);
  uint32_t c3 = static_cast<uint32_t>(random.stream >> 32) ^ static_cast<uint32_t>(random.rank);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// Makes a float in [0, 1) from 24 random bits, a double from 53.
constexpr float uniform_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

constexpr double uniform_double(uint32_t low, uint32_t high) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// A rank's seed and its counter of draws. Every rank must call next() in program order. Thread
// safe, except that state() and set_state() are not atomic as a whole.
class Generator {
 public:
  struct State {
    uint64_t seed = 0;
    uint64_t next_stream = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  State state() const { return {seed_.load(), next_stream_.load()}; }

  void set_state(const State& state) {
    seed_ = state.seed;
    next_stream_ = state.next_stream;
  }

  RandomStream next() { return {.seed = seed_.load(), .stream = next_stream_.fetch_add(1)}; }

 private:
  std::atomic<uint64_t> seed_{0};
  std::atomic<uint64_t> next_stream_{0};
};

// Sets the seed of this rank's generator and resets its counter.
void manual_seed(uint64_t seed);
Generator::State generator_state();
void set_generator_state(const Generator::State& state);

}  // namespace flow

#include "nn/data/sample_random.h"

#include "core/context.h"

namespace flow::data::internal {

namespace {

// A stream number that no program reaches by drawing.
constexpr uint64_t kTransforms = uint64_t{1} << 62;

uint64_t bits_at(const RandomStream& random, int64_t i) {
  const auto lanes = philox(random, static_cast<uint64_t>(i));
  return uint64_t{lanes[1]} << 32 | lanes[0];
}

}  // namespace

RandomStream transform_stream(const RandomStream& pass, int64_t epoch) {
  RandomStream apart = pass;
  apart.stream |= kTransforms;
  return {.seed = bits_at(apart, epoch), .stream = 0, .rank = 0};
}

SampleRandomScope::SampleRandomScope(const RandomStream& transforms, int64_t sample)
    : generator_(thread_state().context->generator()), outer_(generator_.state()) {
  // Local draws combine the rank with the high word of the stream by XOR. Starting the stream with
  // the rank there cancels it, so every rank draws the same numbers.
  const auto rank = static_cast<uint64_t>(thread_state().context->rank());
  generator_.set_state({.seed = bits_at(transforms, sample), .next_stream = rank << 32});
}

SampleRandomScope::~SampleRandomScope() {
  generator_.set_state(outer_);
}

}  // namespace flow::data::internal

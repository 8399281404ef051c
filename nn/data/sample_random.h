// Random numbers of transforms. The numbers of a sample do not depend on which thread makes the
// sample, nor on when.
#pragma once

#include <cstdint>

#include "core/generator.h"

namespace flow::data::internal {

// The stream that gives each sample of a pass its seed. It is separate from `pass`, which orders
// the samples.
RandomStream transform_stream(const RandomStream& pass, int64_t epoch);

// While an instance lives, random ops of this thread draw from streams with the sample's seed,
// which is the same on every rank. Afterwards the thread's generator is in its previous state.
class SampleRandomScope {
 public:
  SampleRandomScope(const RandomStream& transforms, int64_t sample);
  ~SampleRandomScope();
  SampleRandomScope(const SampleRandomScope&) = delete;
  SampleRandomScope& operator=(const SampleRandomScope&) = delete;

 private:
  Generator& generator_;
  Generator::State outer_;
};

}  // namespace flow::data::internal

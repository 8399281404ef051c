// Random numbers of transforms: those of a sample do not depend on the thread that makes it, nor on
// when it does.
#pragma once

#include <cstdint>

#include "core/generator.h"

namespace flow::data::internal {

// The stream from which the samples of one pass have their seeds. `pass` orders the samples, so it
// is kept apart.
RandomStream transform_stream(const RandomStream& pass, int64_t epoch);

// While it lives, random ops of this thread draw from streams of the sample's own seed, on every
// rank alike. The thread's generator is as it was afterwards.
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

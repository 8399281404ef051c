#include "core/generator.h"

#include "core/context.h"

namespace flow {

void manual_seed(uint64_t seed) {
  thread_state().context->generator().set_state({.seed = seed, .next_stream = 0});
}

Generator::State generator_state() {
  return thread_state().context->generator().state();
}

void set_generator_state(const Generator::State& state) {
  thread_state().context->generator().set_state(state);
}

}  // namespace flow

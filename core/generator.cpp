#include "core/generator.h"

#include "core/context.h"
#include "core/error.h"

namespace flow {

void manual_seed(uint64_t seed) {
  if (thread_state().trace != nullptr) {
    throw InvalidArgument(
        "[manual_seed] the generator is seeded while a graph is traced, and its plan would not do "
        "so; call manual_seed() before the graph");
  }
  thread_state().context->generator().set_state({.seed = seed, .next_stream = 0});
}

Generator::State generator_state() {
  return thread_state().context->generator().state();
}

void set_generator_state(const Generator::State& state) {
  thread_state().context->generator().set_state(state);
}

}  // namespace flow

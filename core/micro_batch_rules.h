// What micro-batching knows of ops that take statistics of their batch, such as the parts of batch
// norm. Each micro-batch is then a batch of its own. The rules are a facet of OpDef; all other ops
// have none, and their SBP signatures say everything.
#pragma once

#include <cstdint>

namespace flow {

class OpContext;
class SbpContext;

// The function that the user called and that took the statistics, for reports.
struct BatchStatistics {
  const char* function = nullptr;  // "batch_norm"
  // Returns the number of elements of the whole batch in each channel.
  int64_t (*elements)(const OpContext& ctx) = nullptr;
};

struct MicroBatchRules {
  // The op adds up samples; its sums are statistics if a `takes_sums` op reads them.
  bool makes_sums = false;
  // The op computes statistics from the sums of a batch, or the gradient of such sums. In a
  // micro-batch, input 0 is the micro-batch's own addend and input 1, if there is one, the
  // micro-batch's own statistics. The output differs between micro-batches.
  bool takes_sums = false;
  // The op updates in place what a layer keeps of the batches it has seen. It runs once for each
  // micro-batch, in their order.
  bool writes_in_turn = false;
  // Adds the signatures that hold if each micro-batch is a batch of its own. A B output then
  // differs between micro-batches. Null: none.
  void (*own_batch_sbp)(SbpContext& ctx) = nullptr;
  // Changes the number of elements in the attrs from those of the whole batch to those of a part
  // with `samples` of its `num_samples` samples. Null: the attrs hold no such number.
  void (*scale_count)(void* attrs, int64_t samples, int64_t num_samples) = nullptr;
  // Set for one op in each call of the user's function.
  BatchStatistics statistics = {};
};

// The `scale_count` of attrs whose field `count` is that number.
template <class Attrs>
void scale_count_of(void* attrs, int64_t samples, int64_t num_samples) {
  int64_t& count = static_cast<Attrs*>(attrs)->count;
  count = count * samples / num_samples;
}

}  // namespace flow

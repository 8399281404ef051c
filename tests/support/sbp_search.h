// Whether an op's SBP rule is true, and whether it is complete: by computing on simulated ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// "S(0), B -> P".
std::string to_string(const SbpSignature& signature);

// The op's 1-D signatures for this call, "all B" included.
std::vector<SbpSignature> signatures_of(const RawCall& call, int64_t num_ranks);

// On 2 and on 3 ranks: one line for each signature that does not hold, for kernels of any name;
// empty when all do.
std::string find_false_signatures(const OpSample& sample, DType dtype);

// Whether a signature of the op's table has parts that its shape rule does not give, as that of an
// op with a logical size in its attrs: then its kernels know where their parts lie, and refuse
// those that do not belong together.
bool has_odd_signature(const OpSample& sample, DType dtype);

struct NamedSignature {
  std::string signature;
  int64_t num_ranks;
};

struct SearchResult {
  std::vector<NamedSignature> missing;
  std::vector<NamedSignature> overlooked;  // in the table, but the search does not come by them
};

// Missing are the signatures that hold on 2 or on 3 ranks for several random draws and are not in
// the table. Tried are the layouts whose parts the shape rule takes; `tries_odd_parts`: all others
// too. Not asked for:
// - what another signature implies, as a broadcast value is also a P(max) and a P(min) one;
// - P(sum) of bools, which is their P(max);
// - splits of a dim of size 1, which leave everything to the first rank;
// - partial layouts of tensors the op writes in place: parameters and states may not be partial.
SearchResult search_signatures(const OpSample& sample, DType dtype, bool tries_odd_parts);

}  // namespace flow::contract

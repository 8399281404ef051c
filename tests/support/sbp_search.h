// Tests on simulated ranks whether an op's SBP rule is correct and whether it is complete.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/op.h"
#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// Prints "S(0), B -> P".
std::string to_string(const SbpSignature& signature);

// The op's 1-D signatures for this call, including "all B".
std::vector<SbpSignature> signatures_of(const RawCall& call, int64_t num_ranks);

// How much a test of signatures tries.
struct SearchExtent {
  int64_t most_ranks = 3;
  size_t num_draws = 40;
  std::set<const KernelDef*>* reached = nullptr;  // collects the kernels that some signature ran
};

// Tests on 2 and on 3 ranks. Returns one line for each signature that does not hold for some
// kernel; empty if all hold.
std::string find_false_signatures(const OpSample& sample, DType dtype,
                                  const SearchExtent& extent = {});

// Tests signatures of a grid of ranks, which the chooser makes of the op's signatures for each
// axis: `count` of them, drawn by `seed`, with one kernel each. Returns one line for each signature
// that does not hold.
std::string find_false_nd_signatures(const OpSample& sample, DType dtype, const Placement& grid,
                                     uint64_t seed, size_t count);

// True if a signature of the op's table has parts that its shape rule does not compute, such as
// that of an op with a logical size in its attrs. Its kernels then know the offsets of their parts
// and refuse parts that do not match.
bool has_odd_signature(const OpSample& sample, DType dtype);

struct NamedSignature {
  std::string signature;
  int64_t num_ranks;
};

struct SearchResult {
  std::vector<NamedSignature> missing;
  std::vector<NamedSignature> overlooked;  // in the table, but not found by the search
};

// A signature is missing if it holds on 2 or on 3 ranks for several random draws and is not in the
// table. The search tries the layouts whose parts the shape rule accepts and, with
// `tries_odd_parts`, all others too. It omits:
// - signatures that another one implies, as a broadcast value is also a P(max) and a P(min) value;
// - P(sum) of bools, which is the same as their P(max);
// - splits of a dim of size 1, which leave everything on the first rank;
// - partial layouts of tensors that the op writes in place: parameters and states may not be
//   partial.
SearchResult search_signatures(const OpSample& sample, DType dtype, bool tries_odd_parts);

}  // namespace flow::contract

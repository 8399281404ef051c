// The parts that all contract tests share. Each check runs as one test per op of the table.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// The names of the table's ops, in the table's order.
std::vector<std::string> op_names();
std::string op_name(const ::testing::TestParamInfo<std::string>& info);

struct ContractTest : ::testing::TestWithParam<std::string> {
  const OpDef& op() const;
  // Samples that are small enough for checks that compute many times.
  std::vector<const OpSample*> small_samples() const;
};

Inputs copies_of(const Inputs& inputs);
// Like copies_of, with all four-dim float32 inputs in a blocked layout. Empty if there are no such
// inputs or oneDNN is not available.
Inputs blocked_copies_of(const Inputs& inputs);

// True if the call takes a global tensor or determines the layout of its result itself: it
// redistributes or moves between devices, and uses no table of signatures.
bool decides_layout(const RawCall& call);

}  // namespace flow::contract

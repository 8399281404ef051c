// What the contract's tests share: one test a check and op of the table.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/op_samples.h"
#include "tests/support/raw_call.h"

namespace flow::contract {

// The names of the table's ops, in its order.
std::vector<std::string> op_names();
std::string op_name(const ::testing::TestParamInfo<std::string>& info);

struct ContractTest : ::testing::TestWithParam<std::string> {
  const OpDef& op() const;
  // Samples small enough for checks that compute many times.
  std::vector<const OpSample*> small_samples() const;
};

Inputs copies_of(const Inputs& inputs);
// As copies_of, float32 inputs of four dims in a blocked layout; empty where there are none or
// oneDNN is absent.
Inputs blocked_copies_of(const Inputs& inputs);

// Whether the call takes a global tensor, or says itself where its result lies: it redistributes
// or moves between devices, and no table of signatures is asked.
bool decides_layout(const RawCall& call);

}  // namespace flow::contract

// What all collectives on local tensors begin with.
#pragma once

#include <cstdint>
#include <vector>

#include "boxing/comm/communicator.h"
#include "core/tensor.h"
#include "nn/comm.h"

namespace flow::comm::internal {

using boxing::Channel;
using boxing::Communicator;
using boxing::Fingerprint;

using Counts = std::vector<int64_t>;

boxing::ReduceOp reduce_op(Reduction op);

// All ranks where `ranks` is empty. The channel is that of the calling thread.
Communicator& group_of(const Ranks& ranks);
Communicator& group_of(const Ranks& ranks, Channel channel);
int64_t member_of(const Communicator& group, int64_t rank, const char* op);

// Throw unless x is what collectives take: local values in host memory, with rows (dim 0) where
// they are cut or joined.
void check(const Tensor& x, const char* op, Site site);
void check_rows(const Tensor& x, const char* op, Site site);

int64_t total(const Counts& counts);
Counts balanced_rows(int64_t rows, int64_t parts);
// Of an all_to_all; InvalidArgument where they are not x's.
Counts rows_to_send(const Tensor& x, const AllToAllOptions& options, const Communicator& group,
                    Site site);

std::byte* data(const Tensor& x);

Fingerprint call(const char* op, const Shape& shape, DType dtype, Site site);

}  // namespace flow::comm::internal

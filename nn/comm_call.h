// Checks and look-ups shared by all collectives on local tensors.
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

// The communicator of a group; an empty list means all ranks. The channel defaults to that of the
// calling thread.
Communicator& group_of(const Ranks& ranks);
Communicator& group_of(const Ranks& ranks, Channel channel);
// The position of `rank` in the group; InvalidArgument if it is not a member.
int64_t member_of(const Communicator& group, int64_t rank, const char* op);

// The communicator of `group` for the data of x: `group` itself, or the one for x's device.
Communicator& group_for(const Tensor& x, Communicator& group);

// Throw InvalidArgument for a global tensor and Unsupported in a traced graph. check_rows also
// throws InvalidArgument for a tensor without dims.
void check(const Tensor& x, const char* op, Site site);
void check_rows(const Tensor& x, const char* op, Site site);

int64_t total(const Counts& counts);
Counts balanced_rows(int64_t rows, int64_t parts);
// The rows that all_to_all sends to each member. Throws InvalidArgument if they do not add up to
// the rows of x.
Counts rows_to_send(const Tensor& x, const AllToAllOptions& options, const Communicator& group,
                    Site site);

// x as contiguous memory of this rank, which a call reads on a device after the caller has gone on.
// A tensor of another rank is copied.
Tensor source_of(const Tensor& x);

std::byte* data(const Tensor& x);

// For new tensors on the device of x with its dtype.
TensorOptions like(const Tensor& x);

Fingerprint call(const char* op, const Shape& shape, DType dtype, Site site);

}  // namespace flow::comm::internal

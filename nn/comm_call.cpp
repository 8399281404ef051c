#include "nn/comm_call.h"

#include <algorithm>
#include <numeric>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/device_collectives.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/tensor_impl.h"
#include "core/tensor_meta.h"

namespace flow::comm::internal {

boxing::ReduceOp reduce_op(Reduction op) {
  return op == Reduction::kSum   ? boxing::ReduceOp::kSum
         : op == Reduction::kMax ? boxing::ReduceOp::kMax
                                 : boxing::ReduceOp::kMin;
}

Communicator& group_of(const Ranks& ranks) {
  return group_of(ranks, boxing::is_comm_thread() ? Channel::kBackground : Channel::kCaller);
}

Communicator& group_of(const Ranks& ranks, Channel channel) {
  RankContext& context = *thread_state().context;
  return ranks.empty() ? boxing::world_communicator(context, channel)
                       : boxing::communicator_for(context, ranks, channel);
}

Communicator& group_for(const Tensor& x, Communicator& group) {
  if (x.device() == DeviceType::kCpu) return group;
  return boxing::device_collectives_for(*thread_state().context, group);
}

int64_t member_of(const Communicator& group, int64_t rank, const char* op) {
  const auto found = std::find(group.ranks().begin(), group.ranks().end(), rank);
  if (found == group.ranks().end()) {
    throw InvalidArgument(str("[", op, "] rank ", rank, " is not a member of the group of ",
                              group.size(), " ranks; give a world rank that is in the group"));
  }
  return found - group.ranks().begin();
}

void check(const Tensor& x, const char* op, Site site) {
  if (x.is_global()) {
    throw InvalidArgument(str("[", op, "] x must be a local tensor; received ", x.meta(),
                              "; use to_global to change the layout of a global tensor"),
                          site);
  }
  if (!x.impl().storage) {
    throw Unsupported(str("[", op, "] cannot be part of a graph; received ", x.meta(),
                          "; use global tensors there, and not DistributedDataParallel, which "
                          "averages gradients that are those of the whole batch already"),
                      site);
  }
}

void check_rows(const Tensor& x, const char* op, Site site) {
  check(x, op, site);
  if (x.dim() == 0) {
    throw InvalidArgument(
        str("[", op, "] x must have a dim 0 to split or concatenate; received a scalar; ",
            "reshape it to (1)"),
        site);
  }
}

int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

Counts balanced_rows(int64_t rows, int64_t parts) {
  Counts counts;
  for (int64_t part = 0; part < parts; ++part)
    counts.push_back(balanced_part(rows, parts, part).size);
  return counts;
}

Counts rows_to_send(const Tensor& x, const AllToAllOptions& options, const Communicator& group,
                    Site site) {
  Counts rows = options.rows.empty() ? balanced_rows(x.size(0), group.size()) : options.rows;
  const bool fits = static_cast<int64_t>(rows.size()) == group.size() && total(rows) == x.size(0) &&
                    *std::min_element(rows.begin(), rows.end()) >= 0;
  if (fits) return rows;
  throw InvalidArgument(
      str("[comm::all_to_all] rows must divide the rows of x among ", group.size(),
          " members; x has ", x.size(0), " rows; received ", rows.size(), " counts with sum ",
          total(rows), "; leave rows out for balanced parts"),
      site);
}

Tensor source_of(const Tensor& x) {
  const Tensor source = x.contiguous();
  return is_of_other_rank(*thread_state().context, source.impl()) ? source.clone() : source;
}

std::byte* data(const Tensor& x) {
  return x.impl().data();
}

TensorOptions like(const Tensor& x) {
  return {.dtype = x.dtype(), .device = std::string(device_type_name(x.device()))};
}

Fingerprint call(const char* op, const Shape& shape, DType dtype, Site site) {
  return {.op = op, .shape = shape, .dtype = dtype, .site = user_site(site)};
}

}  // namespace flow::comm::internal

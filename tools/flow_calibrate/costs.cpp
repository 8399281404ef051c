#include "tools/flow_calibrate/costs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <flow/flow.h>

#include "boxing/comm/communicator.h"
#include "boxing/layout.h"
#include "core/context.h"

namespace flow {

namespace {

using boxing::Communicator;

constexpr int64_t kPartBytes = int64_t{4} << 20;  // of one rank; larger than its caches

// Microseconds of one call, which all ranks make: the minimum over the rounds, because other work
// only adds to the time.
template <class Fn>
double least_us(int rounds, int calls, const Fn& call) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count() / calls);
  }
  return least;
}

double meeting_us(Communicator& group) {
  float value = 1;
  return least_us(20, 500, [&] {
    group.all_reduce(&value, &value, 1, float32, boxing::ReduceOp::kMax, {.op = "calibrate"});
  });
}

// The rate `amount` per microsecond, after subtracting `other_us`, which the model counts
// separately. The measured time of a small job may be less than `other_us`.
double rate(double amount, double time_us, double other_us) {
  return amount / std::max(time_us - other_us, time_us / 4);
}

double rounded(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

boxing::CostTable measure_on_ranks() {
  RankContext& context = *thread_state().context;
  Communicator& world = boxing::world_communicator(context);
  const int64_t n = world.size();
  boxing::CostTable costs;
  costs.meeting_us = meeting_us(world);
  if (n > 2) {
    std::vector<int64_t> pair = {context.rank() / 2 * 2, context.rank() / 2 * 2 + 1};
    double of_pair = costs.meeting_us;
    if (pair[1] < n) of_pair = meeting_us(boxing::communicator_for(context, pair));
    costs.peer_us = std::max((costs.meeting_us - of_pair) / static_cast<double>(n - 2), 0.001);
    costs.meeting_us = of_pair;
  }

  const auto count = static_cast<size_t>(n);
  std::vector<std::byte> part(static_cast<size_t>(kPartBytes));
  std::vector<std::byte> whole(part.size() * count);
  const double copied = static_cast<double>(whole.size());
  costs.copied_per_us =
      rate(copied,
           least_us(8, 1,
                    [&] {
                      world.barrier({.op = "calibrate"});
                      for (size_t i = 0; i < count; ++i)
                        std::memcpy(whole.data() + i * part.size(), part.data(), part.size());
                    }),
           costs.meeting_us);

  const std::vector<int64_t> bytes(count, kPartBytes);
  const double received = static_cast<double>(kPartBytes) * static_cast<double>(n - 1);
  const double gather_us = least_us(
      8, 1, [&] { world.all_gather(part.data(), whole.data(), bytes, {.op = "calibrate"}); });
  costs.bytes_per_us = rate(received, gather_us, costs.meeting_us + copied / costs.copied_per_us);

  const std::vector<int64_t> counts(count, kPartBytes / 4);
  const double reduce_us = least_us(8, 1, [&] {
    world.reduce_scatter(whole.data(), part.data(), counts, float32, boxing::ReduceOp::kSum,
                         {.op = "calibrate"});
  });
  costs.reduced_per_us = rate(copied, reduce_us, costs.meeting_us + received / costs.bytes_per_us);

  const Tensor small =
      ones({4, 4}, {.placement = boxing::all_ranks(DeviceType::kCpu), .sbp = sbp::broadcast});
  costs.local_step_us = least_us(8, 200, [&] { small.to_global({.sbp = sbp::split(0)}); });

  constexpr int64_t kSize = 512;
  const Tensor a = ones({kSize, kSize});
  costs.flops_per_us = 2.0 * kSize * kSize * kSize / least_us(8, 1, [&] { matmul(a, a); });

  for (double* value :
       {&costs.meeting_us, &costs.peer_us, &costs.bytes_per_us, &costs.reduced_per_us,
        &costs.copied_per_us, &costs.local_step_us, &costs.flops_per_us}) {
    *value = rounded(*value);
  }
  world.broadcast(&costs, sizeof costs, 0, {.op = "calibrate"});
  return costs;
}

}  // namespace

boxing::CostTable measure_costs() {
  if (env::world_size() > 1) return measure_on_ranks();
  boxing::CostTable costs;
  run_ranks(2, [&costs] {
    const boxing::CostTable measured = measure_on_ranks();
    if (env::rank() == 0) costs = measured;
  });
  return costs;
}

}  // namespace flow

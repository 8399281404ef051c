// rank_redistribute CASES [SEED]: carries out random redistributions as a rank of a job. Rank 0
// collects the parts of all ranks before and after, prints each difference, and then prints "CASES
// cases on N ranks".
#include <cstdio>
#include <cstdlib>

#include "boxing/comm/communicator.h"
#include "boxing/planner.h"
#include "boxing/run_route.h"
#include "core/context.h"
#include "core/tensor_meta.h"
#include "eager/runtime.h"  // makes processes ranks
#include "tests/support/redistribute_cases.h"

namespace {

using namespace flow;  // NOLINT(google-build-using-namespace): the program's own

int64_t part_size(const Shape& shape, const boxing::Layout& layout, int64_t position) {
  return position < 0 ? 0 : box_of(shape, layout.placement, layout.nd_sbp, position).size.numel();
}

// On rank 0, returns the parts of all ranks, indexed by position.
Parts collect(const Shape& shape, const boxing::Layout& layout, const std::vector<float>& mine) {
  std::vector<int64_t> bytes;
  int64_t total = 0;
  for (int64_t rank = 0; rank < env::world_size(); ++rank) {
    const int64_t count = part_size(shape, layout, layout.placement.position(rank));
    bytes.push_back(count * static_cast<int64_t>(sizeof(float)));
    total += count;
  }
  std::vector<float> all(static_cast<size_t>(total));
  boxing::world_communicator(*thread_state().context)
      .gather(mine.data(), all.data(), bytes, 0, {.op = "collect"});
  Parts parts(static_cast<size_t>(layout.placement.num_ranks()));
  auto next = all.begin();
  for (int64_t rank = 0; rank < env::world_size(); ++rank) {
    const int64_t position = layout.placement.position(rank);
    if (position < 0) continue;
    const auto end = next + part_size(shape, layout, position);
    parts[static_cast<size_t>(position)].assign(next, end);
    next = end;
  }
  return parts;
}

// True if the result is correct, as far as rank 0 can check it.
bool run_case(const RedistributeCase& c) {
  const boxing::Route plan = boxing::find_route(c.shape, float32, c.from, c.to, c.cost);
  const int64_t source = c.from.placement.position(env::rank());
  const int64_t target = c.to.placement.position(env::rank());
  std::vector<float> before, after;
  if (source >= 0) before = make_part(c, source);
  if (target >= 0) {
    after.assign(static_cast<size_t>(part_size(c.shape, c.to, target)), -12345.0F);
  }

  boxing::run_route(plan, *thread_state().context,
                    reinterpret_cast<const std::byte*>(before.data()),
                    reinterpret_cast<std::byte*>(after.data()), Site::here());

  const Parts all_before = collect(c.shape, c.from, before);
  const Parts all_after = collect(c.shape, c.to, after);
  if (env::rank() != 0) return true;
  bool agreed_before = false, agree_after = false;
  const bool is_same = read_parts(c.shape, c.from, all_before, agreed_before) ==
                       read_parts(c.shape, c.to, all_after, agree_after);
  if (is_same && agreed_before && agree_after) return true;
  std::printf("differs: %s\n", to_string(plan).c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t cases = argc > 1 ? std::atoll(argv[1]) : 0;
  RedistributeCaseMaker maker(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1,
                              env::world_size());
  bool is_right = true;
  for (int64_t i = 0; i < cases; ++i)
    is_right &= run_case(maker.make());
  if (env::rank() == 0) {
    std::printf("%lld cases on %lld ranks\n", static_cast<long long>(cases),
                static_cast<long long>(env::world_size()));
  }
  return is_right ? 0 : 1;
}

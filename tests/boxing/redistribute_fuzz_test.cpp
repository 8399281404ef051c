// Random layouts and shapes: what the ranks hold afterwards, put together by a reader of layouts
// that shares no code with the planner, is the tensor they held before.
#include <vector>

#include <gtest/gtest.h>

#include "boxing/comm/communicator.h"
#include "boxing/planner.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/run_route.h"
#include "core/context.h"
#include "core/tensor_meta.h"
#include "tests/support/env_number.h"
#include "tests/support/redistribute_cases.h"

namespace flow {
namespace {

using boxing::Route;

constexpr int64_t kRanks = 6;

// Runs the route on elements of type T, of which `source` holds the values; null on ranks that have
// no part.
template <class T>
void run(boxing::BoundRoute& bound, const std::vector<float>* source, std::vector<float>* target) {
  std::vector<T> in, out;
  if (source != nullptr) in.assign(source->begin(), source->end());
  if (target != nullptr) out.assign(target->begin(), target->end());
  bound.run(source == nullptr ? nullptr : reinterpret_cast<const std::byte*>(in.data()),
            target == nullptr ? nullptr : reinterpret_cast<std::byte*>(out.data()), Site::here());
  if (target != nullptr) target->assign(out.begin(), out.end());
}

void run_cases(uint64_t seed, int64_t count) {
  Parts before(kRanks);
  Parts after(kRanks);
  run_ranks(kRanks, [&] {
    RedistributeCaseMaker maker(seed, kRanks);
    RankContext& context = *thread_state().context;
    for (int64_t i = 0; i < count; ++i) {
      const RedistributeCase c = maker.make();
      // Integers have no infinity that could stand for an addend without effect.
      const DType dtype = i % 2 == 0 ? float32 : int32;
      const Route route = boxing::find_route(c.shape, dtype, c.from, c.to, c.cost);
      const int64_t source = c.from.placement.position(env::rank());
      const int64_t target = c.to.placement.position(env::rank());
      const std::vector<float>* in = nullptr;
      std::vector<float>* out = nullptr;
      if (source >= 0) {
        auto& part = before[static_cast<size_t>(source)];
        part = make_part(c, source);
        in = &part;
      }
      if (target >= 0) {
        const Box box = box_of(c.shape, c.to.placement, c.to.nd_sbp, target);
        auto& part = after[static_cast<size_t>(target)];
        part.assign(static_cast<size_t>(box.size.numel()), -12345.0F);
        out = &part;
      }

      boxing::BoundRoute bound(context, boxing::make_rank_route(route, env::rank()));
      bound.set_packed(c.is_packed);
      dtype == float32 ? run<float>(bound, in, out) : run<int32_t>(bound, in, out);

      env::barrier();
      if (env::rank() == 0) {
        bool agreed_before = false;
        bool agree_after = false;
        const std::vector<float> expected = read_parts(c.shape, c.from, before, agreed_before);
        const std::vector<float> actual = read_parts(c.shape, c.to, after, agree_after);
        EXPECT_TRUE(agreed_before);
        EXPECT_EQ(actual, expected) << "seed " << seed << " case " << i << ": " << to_string(route);
        EXPECT_TRUE(agree_after) << "seed " << seed << " case " << i << ": " << to_string(route);
      }
      env::barrier();
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST(RedistributeFuzz, AnyLayoutBecomesAnyOther) {
  run_cases(env_number("FLOW_TEST_SEED", 1),
            static_cast<int64_t>(env_number("FLOW_TEST_CASES", 10'000)));
}

}  // namespace
}  // namespace flow

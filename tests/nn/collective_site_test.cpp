// Errors of collectives that the library makes by itself name the line of the user's program.
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "boxing/comm/failure.h"
#include "boxing/comm/thread_world.h"
#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

// The site in the report when rank 0 calls what `prepare` returned and rank 1 has ended. Each rank
// calls `prepare`, which may be collective, and owns what it returned.
std::string site_without_peer(const std::function<std::function<void()>()>& prepare) {
  std::string site;
  EXPECT_THROW(run_ranks(2,
                         [&] {
                           const std::function<void()> body = prepare();
                           if (env::rank() == 1) return;
                           const auto world =
                               thread_state().context->slot_ptr<boxing::ThreadWorld>();
                           try {
                             body();
                           } catch (const DistributedError&) {
                             site = world->failure().site;
                             throw;
                           }
                         }),
               DistributedError);
  return site;
}

TEST(CollectiveSite, OfACheckpointIsTheCallOfSave) {
  const TempFolder folder;

  const std::string site = site_without_peer([&] {
    return [&] { CheckpointFolder(folder.path()).save(1, {{"x", ones({2})}}); };
  });

  EXPECT_NE(site.find("collective_site_test.cpp:"), std::string::npos) << site;
}

TEST(CollectiveSite, OfDataParallelTrainingIsTheCallOfBackward) {
  const std::string site = site_without_peer([] {
    const auto model = std::make_shared<parallel::DistributedDataParallel<Linear>>(Linear(3, 2));
    return [model] { (*model)(ones({4, 3})).sum().backward(); };
  });

  EXPECT_NE(site.find("collective_site_test.cpp:"), std::string::npos) << site;
}

}  // namespace
}  // namespace flow::nn

// What flow-plan says of a saved plan, and what it refuses.
#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"
#include "tools/flow_plan/show.h"

namespace flow {
namespace {

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer) : model(m) { add_optimizer(optimizer); }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

// A training on two ranks, compiled and saved.
class FlowPlan : public testing::Test {
 protected:
  FlowPlan() {
    const PlanningWorld world(2);
    const Placement both("cpu", {0, 1});
    const PlacementGuard guard(both, sbp::broadcast);
    models::Mlp model({6, 8, 4});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer);
    graph
        .compile(randn({8, 6}, {.placement = both, .sbp = sbp::split(0)}),
                 randint(0, 4, {8}, {.dtype = int64, .placement = both, .sbp = sbp::split(0)}))
        .save(path_);
  }

  template <class Ask>
  std::string answer(const Ask& ask) const {
    tools::PlanQuestions questions;
    ask(questions);
    questions.path = path_;
    std::ostringstream out;
    tools::show_plan(questions, out);
    return out.str();
  }

  static bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.file("train.plan");
};

TEST_F(FlowPlan, TheSummaryHasMemoryCertificateAndRedistributionsWithLines) {
  const std::string text = answer([](auto& q) { q.rank = 1; });
  for (const char* part :
       {"3 inputs, 4 tensors from outside", "passes: settle_stages", " remove_identities ",
        "program of rank 1: ", "certificate: 2 ranks", "alive at ", "redistributions of rank 1",
        "flow_plan_test.cpp:", "all_reduce of float32", " us\n"}) {
    EXPECT_TRUE(has(text, part)) << part << '\n' << text;
  }
}

TEST_F(FlowPlan, AnswersWhatIsAsked) {
  EXPECT_TRUE(has(answer([](auto& q) { q.ir = true; }), " = matmul(") ||
              has(answer([](auto& q) { q.ir = true; }), " = linear("))
      << answer([](auto& q) { q.ir = true; });
  EXPECT_TRUE(has(answer([](auto& q) { q.program = 1; }), "rank 1, arena "))
      << answer([](auto& q) { q.program = 1; });
  EXPECT_TRUE(has(answer([](auto& q) { q.certificate = true; }), "rank 0: "))
      << answer([](auto& q) { q.certificate = true; });
  EXPECT_TRUE(has(answer([](auto& q) { q.key = true; }), "ranks: 2\n"))
      << answer([](auto& q) { q.key = true; });
}

TEST_F(FlowPlan, ChecksTheCertificateAgain) {
  EXPECT_TRUE(has(answer([](auto& q) { q.check = true; }), "checked: no rank waits forever"));
}

TEST_F(FlowPlan, RefusesRanksAndFilesThatAreNone) {
  EXPECT_THROW(answer([](auto& q) { q.program = 2; }), InvalidArgument);
  nn::OutputFile file(path_);
  file.write("no plan", 7);
  file.commit();
  EXPECT_THROW(answer([](auto& /*q*/) {}), BadFile);
  std::filesystem::remove(path_);
  EXPECT_THROW(answer([](auto& /*q*/) {}), IoError);
}

}  // namespace
}  // namespace flow

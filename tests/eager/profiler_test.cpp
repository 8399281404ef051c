#include "eager/profiler.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/trace/tracer.h"
#include "nn/layers/linear.h"
#include "nn/module.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

using profiler::Key;
using profiler::Profile;

std::vector<std::string> names_of(const Profile& profile) {
  std::vector<std::string> names;
  for (const profiler::Event& event : profile.events())
    names.push_back(event.name);
  return names;
}

TEST(Profiler, RecordsWhatIsCarriedOutWhileItLives) {
  const Tensor x = ones({2, 3});
  x + x;
  Profile profile({.record_shapes = true});
  const Tensor y = x + x;
  const uint32_t line = __LINE__ - 1;
  y.add_(x);
  profile.stop();
  x + x;

  ASSERT_EQ(names_of(profile), (std::vector<std::string>{"add", "add_"}));
  const profiler::Event& add = profile.events()[0];
  EXPECT_EQ(add.site, str("profiler_test.cpp:", line));
  EXPECT_EQ(add.shapes, "(2, 3), (2, 3)");
  EXPECT_EQ(add.module, "");
  EXPECT_GT(add.total_us, 0);
  EXPECT_LE(add.start_us + add.total_us, profile.events()[1].start_us);
  EXPECT_LE(profile.events()[1].start_us, profile.elapsed_us());
}

TEST(Profiler, GradientsKeepTheLineOfTheirForward) {
  const Tensor x = ones({2, 2}).requires_grad_();
  Profile profile;
  const Tensor y = matmul(x, x);
  const uint32_t line = __LINE__ - 1;
  backward({y}, {ones({2, 2})});
  profile.stop();

  int64_t gradients = 0;
  for (const profiler::Event& event : profile.events()) {
    if (event.phase != Phase::kBackward) continue;
    EXPECT_EQ(event.site, str("profiler_test.cpp:", line)) << event.name;
    ++gradients;
  }
  EXPECT_GE(gradients, 2);
}

TEST(Profiler, TimeInsideAScopeIsNotItsOwn) {
  const Tensor x = ones({64, 64});
  Profile profile;
  {
    const profiler::Scope scope("step");
    matmul(x, x);
    const profiler::Scope inner("tail");
    matmul(x, x);
  }
  profile.stop();
  const profiler::Scope ignored("after");

  ASSERT_EQ(names_of(profile), (std::vector<std::string>{"step", "matmul", "tail", "matmul"}));
  const auto& events = profile.events();
  EXPECT_TRUE(events[0].is_scope);
  EXPECT_EQ(events[1].parent, 0);
  EXPECT_EQ(events[2].parent, 0);
  EXPECT_EQ(events[3].parent, 2);
  EXPECT_NEAR(events[0].self_us, events[0].total_us - events[1].total_us - events[2].total_us,
              1e-6);
  double own = 0;
  for (const auto& event : events)
    own += event.self_us;
  EXPECT_NEAR(own, events[0].total_us, 1e-6);
}

TEST(Profiler, StopEndsTheScopesThatAreOpen) {
  Profile profile;
  const profiler::Scope step("step");
  ones({2});
  profile.stop();

  const profiler::Event& event = profile.events()[0];
  EXPECT_GT(event.total_us, 0);
  EXPECT_GE(event.self_us, 0);
  EXPECT_LE(event.total_us, profile.elapsed_us());
}

TEST(Profiler, AScopeEndsInItsOwnProfileOnly) {
  std::optional<Profile> profile(std::in_place);
  std::optional<profiler::Scope> scope("step");
  profile.emplace();  // after the first one has ended
  const Tensor x = ones({2});
  const double took = profile->events()[0].total_us;

  scope.reset();
  relu(x);

  EXPECT_EQ(names_of(*profile), std::vector<std::string>({"full", "relu"}));
  EXPECT_EQ(profile->events()[0].total_us, took);
}

TEST(Profiler, AddsUpByOpLineAndModule) {
  nn::Linear linear(4, 4);
  const Tensor x = ones({2, 4});
  Profile profile;
  for (int i = 0; i < 3; ++i)
    linear(x);
  relu(x);
  profile.stop();

  const auto by_module = profile.key_averages(Key::kModule);
  int64_t calls = 0;
  for (const auto& average : by_module)
    calls += average.calls;
  EXPECT_EQ(calls, static_cast<int64_t>(profile.events().size()));
  for (const auto& average : profile.key_averages(Key::kOp)) {
    if (average.key == "relu") {
      EXPECT_EQ(average.calls, 1);
    }
    if (average.key == "linear") {
      EXPECT_EQ(average.calls, 3);
    }
  }
  EXPECT_EQ(profile.key_averages(Key::kSite).size(), 2U);
  const std::string table = profile.table();
  EXPECT_NE(table.find("relu"), std::string::npos) << table;
  EXPECT_NE(table.find("(between)"), std::string::npos) << table;
}

TEST(Profiler, ShowsRedistributionsInsideTheOpThatNeedsThem) {
  run_ranks(2, [] {
    const Placement pair("cpu", {0, 1});
    const Tensor x = ones({4, 4}, {.placement = pair, .sbp = sbp::split(0)});
    const Tensor y = ones({4, 4}, {.placement = pair, .sbp = sbp::split(1)});
    Profile profile;
    x + y;
    profile.stop();

    const auto& events = profile.events();
    ASSERT_GE(events.size(), 2U);
    EXPECT_EQ(events[0].name, "add");
    for (size_t i = 1; i < events.size(); ++i) {
      EXPECT_EQ(events[i].name, "redistribute");
      EXPECT_EQ(events[i].parent, 0);
    }
  });
}

TEST(Profiler, AKeyHasNoMoreTimeThanItsOutermostEvents) {
  run_ranks(2, [] {
    const Placement pair("cpu", {0, 1});
    const Tensor x = ones({4, 4}, {.placement = pair, .sbp = sbp::split(0)});
    const Tensor y = ones({4, 4}, {.placement = pair, .sbp = sbp::split(1)});
    Profile profile;
    {
      const profiler::Scope scope("sum");
      x + y;
    }
    profile.stop();

    ASSERT_GE(profile.events().size(), 3U);
    const profiler::Event &scope = profile.events()[0], &add = profile.events()[1];
    ASSERT_EQ(profile.events()[2].site, add.site) << "a redistribution has the line of its op";
    for (const auto& average : profile.key_averages(Key::kSite)) {
      if (average.key == add.site) {
        EXPECT_EQ(average.total_us, add.total_us);
      }
    }
    const auto by_module = profile.key_averages(Key::kModule);
    ASSERT_EQ(by_module.size(), 1U);
    EXPECT_EQ(by_module[0].total_us, scope.total_us);
    EXPECT_NEAR(by_module[0].self_us, scope.total_us, 1e-6);
  });
}

TEST(Profiler, AScopeIsInTheModuleThatOpensIt) {
  struct Half : nn::Module<Half> {
    Tensor forward(const Tensor& x) {
      const profiler::Scope scope("half");
      return x / 2;
    }
  };

  struct Outer : nn::Module<Outer> {
    Half half{register_module("half", Half())};

    Tensor forward(const Tensor& x) { return half(x); }
  };

  Profile profile;
  Outer()(ones({2}));
  profile.stop();

  const auto& events = profile.events();
  ASSERT_EQ(names_of(profile), (std::vector<std::string>{"full", "half", "div_scalar"}));
  EXPECT_EQ(events[1].module, "half");
  EXPECT_EQ(events[2].module, "half");
}

TEST(Profiler, AnOpenScopeTakesNoTimeFromOthers) {
  Profile profile;
  const profiler::Scope scope("step");
  const Tensor x = ones({64, 64});
  matmul(x, x);

  double own = 0;
  for (const auto& average : profile.key_averages()) {
    EXPECT_GE(average.self_us, 0) << average.key;
    own += average.self_us;
  }
  EXPECT_LE(own, profile.elapsed_us());
}

TEST(Profiler, FailedOpsEndToo) {
  Profile profile;
  {
    const profiler::Scope scope("step");
    EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), InvalidArgument);
  }
  const Tensor x = ones({1});
  profile.stop();
  EXPECT_EQ(profile.events().back().parent, -1);
}

TEST(Profiler, WritesATraceThatParses) {
  const TempFolder folder;
  const std::string path = folder.file("profile.json");
  Profile profile;
  ones({2}) + ones({2});
  profile.stop();
  profile.write_chrome_trace(path);

  std::ifstream file(path);
  const auto events = nlohmann::json::parse(file)["traceEvents"];
  ASSERT_EQ(events.size(), profile.events().size());
  EXPECT_EQ(events.back()["name"], "add");
  EXPECT_EQ(events.back()["ph"], "X");
  EXPECT_EQ(events.back()["args"]["phase"], "forward");
  EXPECT_THROW(profile.write_chrome_trace("/no/such/folder/profile.json"), IoError);
}

TEST(Profiler, WritesANameThatIsNoUtf8) {
  const TempFolder folder;
  const std::string path = folder.file("profile.json");
  Profile profile;
  { const profiler::Scope scope("a\xff"); }
  profile.write_chrome_trace(path);

  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file)["traceEvents"][0]["name"], "a\xef\xbf\xbd");
}

TEST(Profiler, RefusesToNestAndToStopInsideATrace) {
  Profile profile;
  EXPECT_THROW(const Profile nested, InvalidArgument);
  {
    const graph::Trace trace;
    EXPECT_THROW(profile.stop(), InvalidArgument);
  }
  profile.stop();
}

}  // namespace
}  // namespace flow

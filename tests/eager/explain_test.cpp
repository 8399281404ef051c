#include "eager/explain.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "boxing/planner.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/report.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/linear/matmul.h"

namespace flow {
namespace {

const Placement kPair("cpu", {0, 1});
const Sbp kS0 = sbp::split(0);
const Sbp kB = sbp::broadcast;

std::string text_of(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(BoxingReport, AddsUpTheRunsOfACallSite) {
  run_ranks(2, [] {
    const Tensor x = ones({4, 6}, {.placement = kPair, .sbp = kS0});
    reset_boxing_report();

    for (int run = 0; run < 3; ++run)
      x.to_global({.sbp = kB});
    const uint32_t line = __LINE__ - 1;
    x.to_global({.sbp = kS0});

    const auto entries = boxing_report().entries;
    ASSERT_EQ(entries.size(), 1U);
    const BoxingEntry& entry = entries[0];
    EXPECT_EQ(entry.site.line(), line);
    EXPECT_EQ(entry.runs, 3);
    EXPECT_EQ(entry.route, "all_gather");
    EXPECT_EQ(entry.bytes, 48);
    EXPECT_EQ(entry.from_sbp, NdSbp(kS0));
    EXPECT_EQ(entry.to_sbp, NdSbp(kB));
    EXPECT_GT(entry.least_us, 0);
    EXPECT_LE(entry.least_us * 3, entry.total_us * (1 + 1e-12));
    EXPECT_EQ(entry.runner_up, "all_to_all + all_gather");
    const std::string text = text_of(boxing_report());
    EXPECT_TRUE(has(text, "explain_test.cpp")) << text;
    EXPECT_TRUE(has(text, "float32 (4, 6), S(0) -> B on cpu:(0, 1)\n  all_gather, 48 bytes, "))
        << text;
    EXPECT_TRUE(has(text, " on average of 3\n  instead of all_to_all + all_gather, ")) << text;
    reset_boxing_report();
    EXPECT_TRUE(boxing_report().entries.empty());
  });
}

// Compiled steps have names of files of their own.
TEST(BoxingReport, AddsUpALineWhateverHoldsTheNameOfItsFile) {
  const std::string name = "train.cpp", same = name;
  const boxing::Route route = boxing::find_route({4, 6}, float32, {kPair, kS0}, {kPair, kB});
  boxing::TransferLog log;

  log.add(Site::here(name.c_str(), 7), route, 2);
  log.add(Site::here(same.c_str(), 7), route, 4);
  log.add(Site::here(name.c_str(), 8), route, 1);

  const auto entries = log.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].runs, 2);
  EXPECT_EQ(entries[0].least_us, 2);
  EXPECT_EQ(entries[0].total_us, 6);
}

TEST(Explain, NamesPartsOpAndWhatWasMovedThere) {
  run_ranks(2, [] {
    reset_boxing_report();
    const Tensor a = ones({4, 3}, {.placement = kPair, .sbp = kB});
    Tensor w = ones({3, 2}, {.placement = kPair, .sbp = kS0});
    w.requires_grad_();
    const Tensor b = ones({4, 3}, {.placement = kPair, .sbp = kS0});

    const Tensor y = matmul(b, w);

    const std::string text = explain(y);
    EXPECT_TRUE(has(text,
                    "float32 (4, 2), S(0) on cpu:(0, 1)\n  rank 0: [0:2, 0:2], 16 bytes\n"
                    "  rank 1: [2:4, 0:2], 16 bytes\nmade by matmul at "))
        << text;
    EXPECT_TRUE(has(text, "; moved there:\n")) << text;
    EXPECT_TRUE(has(text, "float32 (3, 2), S(0) -> B on cpu:(0, 1)\n  all_gather")) << text;
    const Tensor gathered = w.to_global({.sbp = kB});
    const Tensor z = matmul(a, gathered);
    EXPECT_TRUE(has(explain(z), "; nothing was moved there"));
    EXPECT_TRUE(has(explain(a), "no op was recorded for it"));
  });
}

TEST(Explain, PricesALayoutWithoutMovingAnything) {
  run_ranks(2, [] {
    const Tensor x = ones({4, 3}, {.placement = kPair, .sbp = kS0});
    reset_boxing_report();
    if (env::rank() == 0) {  // not collective
      const std::string text = explain(x, {.sbp = kB});
      EXPECT_TRUE(has(text, "all_gather, 24 bytes, predicted ")) << text;
      EXPECT_FALSE(has(text, "measured")) << text;
      EXPECT_THROW(explain(x, {.sbp = sbp::split(7)}), InvalidArgument);
      EXPECT_THROW(explain(x.to_local(), {.sbp = kB}), InvalidArgument);
    }
    EXPECT_TRUE(boxing_report().entries.empty());
  });
}

}  // namespace
}  // namespace flow

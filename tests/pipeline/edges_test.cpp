#include "pipeline/edges.h"

#include <gtest/gtest.h>

namespace flow::pipeline {
namespace {

graph::Value value(const Placement& placement, const NdSbp& nd_sbp) {
  return {.shape = {4, 6}, .placement = placement, .nd_sbp = nd_sbp};
}

const Placement kFirst("cpu", {0, 1}), kSecond("cpu", {2, 3});

TEST(Edges, ReplicasSendInTurn) {
  const Box all{{0, 0}, {4, 6}};
  EXPECT_EQ(messages_between(value(kFirst, sbp::broadcast), value(kSecond, sbp::broadcast)),
            (std::vector<Message>{{0, 2, all}, {1, 3, all}}));
}

TEST(Edges, SplitsSendWhatTheyShare) {
  EXPECT_EQ(messages_between(value(kFirst, sbp::split(0)), value(kSecond, sbp::split(1))),
            (std::vector<Message>{{0, 2, {{0, 0}, {2, 3}}},
                                  {1, 2, {{2, 0}, {2, 3}}},
                                  {0, 3, {{0, 3}, {2, 3}}},
                                  {1, 3, {{2, 3}, {2, 3}}}}));
}

TEST(Edges, NothingIsSentThatIsThere) {
  const Placement overlapping("cpu", {1, 2});
  const Box all{{0, 0}, {4, 6}};
  EXPECT_EQ(messages_between(value(kFirst, sbp::broadcast), value(overlapping, sbp::broadcast)),
            (std::vector<Message>{{1, 1, all}, {1, 2, all}}));
}

}  // namespace
}  // namespace flow::pipeline

#include "pipeline/batch_cut.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow::pipeline {
namespace {

const Placement kPair("cpu", {0, 1});

graph::Graph graph_of(const std::vector<graph::Value>& inputs) {
  graph::Graph graph;
  graph.values = inputs;
  return graph;
}

graph::Value rows(int64_t count, const Placement& placement = {}, const NdSbp& nd_sbp = {}) {
  return {.shape = {count, 3}, .placement = placement, .nd_sbp = nd_sbp};
}

TEST(BatchCut, SamplesAreRowsThatAllInputsHave) {
  const BatchCut cut = cut_batch(graph_of({rows(10), rows(30)}), {0, 1}, 3);
  EXPECT_EQ(cut.num_samples, 10);
  EXPECT_EQ(cut.samples_of(0), (std::vector<Range>{{0, 4}}));
  EXPECT_EQ(cut.samples_of(2), (std::vector<Range>{{7, 3}}));
  EXPECT_EQ(part_of(cut, rows(30), 0, 2).shape, Shape({9, 3}));
}

TEST(BatchCut, EachShardIsCut) {
  const graph::Value batch = rows(10, kPair, sbp::split(0));
  const BatchCut cut = cut_batch(graph_of({batch}), {0}, 2);
  EXPECT_EQ(cut.samples_of(0), (std::vector<Range>{{0, 3}, {5, 3}}));
  EXPECT_EQ(cut.size_of(1), 4);
  const graph::Value part = part_of(cut, batch, 0, 0);
  EXPECT_EQ(part.shape, Shape({6, 3}));
  EXPECT_EQ(pieces_of(cut, *batch.meta_on(1), *part.meta_on(1), 0, 0),
            (std::vector<Piece>{{0, 0, 3}}));
}

TEST(BatchCut, WhatLiesWholeIsCutIntoTheSameSamples) {
  const graph::Value batch = rows(10, kPair, sbp::split(0)),
                     labels = rows(10, kPair, sbp::broadcast);
  const BatchCut cut = cut_batch(graph_of({batch, labels}), {0, 1}, 2);
  const graph::Value part = part_of(cut, labels, 0, 1);
  EXPECT_EQ(pieces_of(cut, *labels.meta_on(0), *part.meta_on(0), 0, 1),
            (std::vector<Piece>{{3, 0, 2}, {8, 2, 2}}));
}

TEST(BatchCut, UnevenShardsGiveUnevenParts) {
  const graph::Value batch = rows(5, kPair, sbp::split(0));
  const BatchCut cut = cut_batch(graph_of({batch}), {0}, 2);
  for (int64_t m = 0; m < 2; ++m) {
    const graph::Value part = part_of(cut, batch, 0, m);
    for (int64_t rank = 0; rank < 2; ++rank) {
      const Range own = balanced_part(balanced_part(5, 2, rank).size, 2, m);
      EXPECT_EQ(part.meta_on(rank)->local_shape[0], own.size);
      EXPECT_EQ(pieces_of(cut, *batch.meta_on(rank), *part.meta_on(rank), 0, m),
                (std::vector<Piece>{{own.begin, 0, own.size}}));
    }
  }
}

TEST(BatchCut, MicroBatchesAreLikeTheFirstOfTheirSizes) {
  // Shards of 11, 10 and 10 rows in parts of 3, 3, 3, 2, of 3, 3, 2, 2, and the same again.
  const BatchCut cut =
      cut_batch(graph_of({rows(31, Placement("cpu", {0, 1, 2}), sbp::split(0))}), {0}, 4);
  std::vector<int64_t> like;
  for (int64_t m = 0; m < 4; ++m)
    like.push_back(cut.like(m));
  EXPECT_EQ(like, (std::vector<int64_t>{0, 0, 2, 3}));
  const auto sizes_of = [&](int64_t m) {
    std::vector<int64_t> sizes;
    for (const Range& range : cut.samples_of(m))
      sizes.push_back(range.size);
    return sizes;
  };
  EXPECT_EQ(sizes_of(0), sizes_of(1));
  EXPECT_NE(sizes_of(1), sizes_of(2));
  EXPECT_NE(sizes_of(2), sizes_of(3));
}

TEST(BatchCut, MorePartsThanSamplesAreRefused) {
  EXPECT_THROW(cut_batch(graph_of({rows(3)}), {0}, 4), InvalidArgument);
  EXPECT_THROW(cut_batch(graph_of({}), {}, 2), InvalidArgument);
}

}  // namespace
}  // namespace flow::pipeline

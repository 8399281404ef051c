// The layouts of data and model for tests that train on several ranks.
#pragma once

#include "nn/flow.h"

namespace flow {

inline const Placement kPair("cpu", {0, 1});
inline const Placement kThree("cpu", {0, 1, 2});
inline const Placement kGrid("cpu", {{0, 1}, {2, 3}});
inline constexpr Sbp kB = sbp::broadcast;
inline const Sbp kS0 = sbp::split(0);
inline const Sbp kS1 = sbp::split(1);

// Options with which also the transfers of small models run in the background.
inline constexpr nn::OverlapOptions kOverlapsAll{.bucket_mb = 1e-3,
                                                 .first_bucket_mb = 1e-4,
                                                 .least_kb = 0,
                                                 .least_hidden_us = 0,
                                                 .most_memory_share = 1};

// Without a placement: one rank and local tensors.
struct TrainingLayout {
  const char* name = "one rank";
  Placement placement = {};
  NdSbp data = {};
  nn::SbpPatterns model = {};

  int64_t ranks() const { return placement.defined() ? placement.num_ranks() : 1; }
};

// The layout of a GPT whose attention and feed-forward layers are split by columns, then rows.
inline nn::SbpPatterns gpt_layout(const NdSbp& columns, const NdSbp& rows, const NdSbp& whole) {
  return {{"*.attn.c_[qkv].weight", columns},
          {"*.attn.c_proj.weight", rows},
          {"*.mlp.c_fc.*", columns},
          {"*.mlp.c_proj.weight", rows},
          {"*", whole}};
}

}  // namespace flow

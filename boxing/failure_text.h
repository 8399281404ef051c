// The words in which every kind of rank reports that the ranks of a job do not fit together.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "boxing/communicator.h"

namespace flow::boxing {

// "rank 1", "ranks 1, 3".
std::string list_ranks(const std::vector<int64_t>& ranks);

// `timeout` of 0: the missing ranks have ended.
std::string missing_text(int64_t rank, const std::vector<int64_t>& missing, const Fingerprint& what,
                         std::chrono::seconds timeout);

// `call` and `other_call` are printed fingerprints.
std::string mismatch_text(int64_t rank, const std::string& call, int64_t other_rank,
                          const std::string& other_call, uint64_t step);

std::string told_text(int64_t failed_rank, const std::string& failure);

std::string all_to_all_text(int64_t sender, int64_t sent_bytes, int64_t receiver,
                            int64_t expected_bytes, const Fingerprint& what);

}  // namespace flow::boxing

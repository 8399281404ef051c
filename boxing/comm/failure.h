// Why the ranks of a job cannot go on, in the same words for every kind of rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"

namespace flow::boxing {

// kError: a rank's own exception or exit code; the others are told of it.
enum class FailureCause : uint8_t { kError, kMismatch, kTimeout, kRankLost };

// "error", "mismatch", "timeout", "rank_lost".
const char* name_of(FailureCause cause);

struct Failure {
  FailureCause cause = FailureCause::kError;
  int64_t rank = -1;  // whose own error it is; -1: the message stands for all ranks
  std::string message;
  // What the report says on top, where it applies.
  std::string op = {};
  uint64_t step = 0;
  std::string site = {};
  std::string other_site = {};
  std::vector<int64_t> missing_ranks = {};
};

// "rank 1", "ranks 1, 3".
std::string list_ranks(const std::vector<int64_t>& ranks);
// "train.cpp:12"; empty where it is not known.
std::string site_text(const Fingerprint& what);

// `rank` waits for `missing`; a `timeout` of 0: they have ended.
Failure missing_failure(int64_t rank, const std::vector<int64_t>& missing, const Fingerprint& what,
                        std::chrono::seconds timeout);

// What another rank calls, as it travels: the site, a line break, the printed fingerprint.
std::string describe_call(const Fingerprint& what);
Failure mismatch_failure(int64_t rank, const Fingerprint& what, int64_t other_rank,
                         const std::string& other_call, uint64_t step);

Failure all_to_all_failure(int64_t sender, int64_t sent_bytes, int64_t receiver,
                           int64_t expected_bytes, const Fingerprint& what);
// `sent`: how the sender describes its call.
Failure message_failure(int64_t receiver, int64_t expected_bytes, const Fingerprint& what,
                        int64_t sender, int64_t sent_bytes, const std::string& sent, int64_t tag);

// The text of the error that rank `rank` gets.
std::string error_text(const Failure& failure);

// FLOW_TIMEOUT_S: how long a rank waits for others. Throws InvalidArgument unless it is between a
// second and a year.
std::chrono::seconds time_limit();

}  // namespace flow::boxing

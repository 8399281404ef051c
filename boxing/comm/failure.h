// The reasons why the ranks of a job cannot continue, in the same words for every kind of rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "boxing/comm/communicator.h"

namespace flow::boxing {

// kError: a rank's own exception or exit code, which the other ranks are told.
enum class FailureCause : uint8_t { kError, kMismatch, kTimeout, kRankLost };

// "error", "mismatch", "timeout", "rank_lost".
const char* name_of(FailureCause cause);

struct Failure {
  FailureCause cause = FailureCause::kError;
  int64_t rank = -1;  // the rank whose own error it is; -1: the message applies to all ranks
  std::string message;
  // The fields of the report, if they apply.
  std::string op = {};
  uint64_t step = 0;
  std::string site = {};
  std::string other_site = {};
  std::vector<int64_t> missing_ranks = {};
};

// Prints "rank 1" or "ranks 1, 3".
std::string list_ranks(const std::vector<int64_t>& ranks);
// Prints "train.cpp:12"; empty if the site is unknown.
std::string site_text(const Fingerprint& what);

// The failure that `rank` finds when it waits for `missing`. A `timeout` of 0 means that these have
// ended.
Failure missing_failure(int64_t rank, const std::vector<int64_t>& missing, const Fingerprint& what,
                        std::chrono::seconds timeout);

// Another rank's call in the form in which it is sent: the site, a line break, the printed
// fingerprint.
std::string describe_call(const Fingerprint& what);
Failure mismatch_failure(int64_t rank, const Fingerprint& what, int64_t other_rank,
                         const std::string& other_call, uint64_t step);

Failure all_to_all_failure(int64_t sender, int64_t sent_bytes, int64_t receiver,
                           int64_t expected_bytes, const Fingerprint& what);
// `sent` is the sender's description of its call.
Failure message_failure(int64_t receiver, int64_t expected_bytes, const Fingerprint& what,
                        int64_t sender, int64_t sent_bytes, const std::string& sent, int64_t tag);
// The two ranks of a message run different compiled steps.
Failure step_failure(int64_t rank, const Fingerprint& what, int64_t other_rank,
                     const std::string& other_call);

// The text of the error that `rank` gets.
std::string error_text(const Failure& failure);

// FLOW_TIMEOUT_S: how long a rank waits for others. Throws InvalidArgument unless it is between one
// second and one year.
std::chrono::seconds time_limit();

}  // namespace flow::boxing

#include "boxing/failure_text.h"

#include "core/error.h"

namespace flow::boxing {

std::string list_ranks(const std::vector<int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += str(i == 0 ? " " : ", ", ranks[i]);
  return text;
}

std::string missing_text(int64_t rank, const std::vector<int64_t>& missing, const Fingerprint& what,
                         std::chrono::seconds timeout) {
  const bool has_timed_out = timeout.count() > 0;
  return str("[communicator] rank ", rank, " waits for ", list_ranks(missing), " in ", what,
             has_timed_out ? str("; nothing came for ", timeout.count(), " s")
                           : "; a rank that has ended never comes",
             "; make all ranks of the group run the same ops in the same order",
             has_timed_out ? ", or raise FLOW_TIMEOUT_S" : "");
}

std::string mismatch_text(int64_t rank, const std::string& call, int64_t other_rank,
                          const std::string& other_call, uint64_t step) {
  return str("[communicator] ranks disagree: rank ", rank, " calls ", call, ", rank ", other_rank,
             " calls ", other_call, " (step ", step,
             " of their group); make all ranks run the same ops in the same order");
}

std::string told_text(int64_t failed_rank, const std::string& failure) {
  return str("[communicator] rank ", failed_rank,
             " failed, so this rank stops as well; its error: ", failure);
}

std::string all_to_all_text(int64_t sender, int64_t sent_bytes, int64_t receiver,
                            int64_t expected_bytes, const Fingerprint& what) {
  return str("[all_to_all] rank ", sender, " sends ", sent_bytes, " bytes to rank ", receiver,
             ", which expects ", expected_bytes, " in ", what);
}

}  // namespace flow::boxing

#include "boxing/comm/failure.h"

#include <array>

#include "core/env.h"
#include "core/error.h"

namespace flow::boxing {

const char* name_of(FailureCause cause) {
  constexpr std::array kNames = {"error", "mismatch", "timeout", "rank_lost"};
  return kNames[static_cast<size_t>(cause)];
}

std::string list_ranks(const std::vector<int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += str(i == 0 ? " " : ", ", ranks[i]);
  return text;
}

std::string site_text(const Fingerprint& what) {
  return what.site.is_known() ? str(what.site.file(), ':', what.site.line()) : std::string();
}

Failure missing_failure(int64_t rank, const std::vector<int64_t>& missing, const Fingerprint& what,
                        std::chrono::seconds timeout) {
  const bool has_timed_out = timeout.count() > 0;
  return {
      .cause = has_timed_out ? FailureCause::kTimeout : FailureCause::kRankLost,
      .message = str("[communicator] rank ", rank, " waits for ", list_ranks(missing), " in ", what,
                     has_timed_out ? str("; received nothing for ", timeout.count(), " s")
                                   : "; a rank that has ended cannot arrive",
                     "; make all ranks of the group run the same ops in the same order",
                     has_timed_out ? ", or raise FLOW_TIMEOUT_S" : ""),
      .op = std::string(what.op).empty() ? what.collective : what.op,
      .site = site_text(what),
      .missing_ranks = missing};
}

namespace {
std::string text_in_step(const Fingerprint& what) {
  if (what.step == nullptr) return str(what);
  return str(what, " in a step compiled for ", what.step->inputs);
}
}  // namespace

std::string describe_call(const Fingerprint& what) {
  return str(site_text(what), '\n', text_in_step(what));
}

Failure mismatch_failure(int64_t rank, const Fingerprint& what, int64_t other_rank,
                         const std::string& other_call, uint64_t step) {
  const size_t end = other_call.find('\n');
  return {
      .cause = FailureCause::kMismatch,
      .message = str("[communicator] ranks disagree: rank ", rank, " calls ", text_in_step(what),
                     ", rank ", other_rank, " calls ", other_call.substr(end + 1), " (step ", step,
                     " of their group); make all ranks run the same ops in the same order"),
      .op = std::string(what.op).empty() ? what.collective : what.op,
      .step = step,
      .site = site_text(what),
      .other_site = end == std::string::npos ? "" : other_call.substr(0, end)};
}

Failure all_to_all_failure(int64_t sender, int64_t sent_bytes, int64_t receiver,
                           int64_t expected_bytes, const Fingerprint& what) {
  return {.cause = FailureCause::kMismatch,
          .message = str("[all_to_all] rank ", sender, " sends ", sent_bytes, " bytes to rank ",
                         receiver, ", which expects ", expected_bytes, " in ", what,
                         "; pass the same number of bytes on both ranks"),
          .op = "all_to_all",
          .site = site_text(what)};
}

Failure message_failure(int64_t receiver, int64_t expected_bytes, const Fingerprint& what,
                        int64_t sender, int64_t sent_bytes, const std::string& sent, int64_t tag) {
  const size_t end = sent.find('\n');
  return {.cause = FailureCause::kMismatch,
          .message =
              str("[communicator] ranks ", receiver, " and ", sender, " disagree on message ", tag,
                  ": ", expected_bytes, " bytes in ", what, ", but ", sent_bytes, " bytes in ",
                  sent.substr(end + 1), "; pass the same number of bytes on both ranks"),
          .op = std::string(what.op).empty() ? what.collective : what.op,
          .site = site_text(what),
          .other_site = end == std::string::npos ? "" : sent.substr(0, end)};
}

Failure step_failure(int64_t rank, const Fingerprint& what, int64_t other_rank,
                     const std::string& other_call) {
  const size_t end = other_call.find('\n');
  return {
      .cause = FailureCause::kMismatch,
      .message = str("[communicator] the ranks of a message run different compiled steps: rank ",
                     rank, " calls ", text_in_step(what), ", rank ", other_rank, " calls ",
                     other_call.substr(end + 1),
                     "; make all ranks call the graph with equal inputs and options"),
      .op = std::string(what.op).empty() ? what.collective : what.op,
      .site = site_text(what),
      .other_site = end == std::string::npos ? "" : other_call.substr(0, end)};
}

std::string error_text(const Failure& failure) {
  if (failure.rank < 0) return failure.message;
  return str("[communicator] rank ", failure.rank,
             " failed, so this rank stops too; the error of that rank: ", failure.message);
}

std::chrono::seconds time_limit() {
  constexpr int64_t kDefault = 300, kLongest = int64_t{366} * 24 * 3600;
  const int64_t seconds = env_int("FLOW_TIMEOUT_S", kDefault);
  if (seconds < 1 || seconds > kLongest) {
    throw InvalidArgument(str("[env] FLOW_TIMEOUT_S must be between 1 and ", kLongest,
                              " seconds; got ", seconds, "; leave it unset for ", kDefault));
  }
  return std::chrono::seconds(seconds);
}

}  // namespace flow::boxing

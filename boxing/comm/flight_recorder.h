// The last collectives of a rank, kept where a killed rank leaves them too: a mapped file
// flight_RANK in FLOW_STATUS_DIR.
#pragma once

#include <cstdint>
#include <mutex>

#include "boxing/comm/communicator.h"
#include "boxing/comm/flight_record.h"

namespace flow::boxing {

// Thread safe.
class FlightRecorder {
 public:
  // Records nothing without FLOW_STATUS_DIR, or where the file cannot be made.
  explicit FlightRecorder(int64_t rank);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // The caller begins to wait for its group; the result is for met().
  uint64_t begin(const Fingerprint& what);
  void met(uint64_t number);

 private:
  FlightRecord* records_ = nullptr;  // kFlightRecords of them
  std::mutex mutex_;
  uint64_t last_ = 0;  // guarded by mutex_
};

// The rank's own, made at first use.
FlightRecorder& flight_recorder(RankContext& context);

}  // namespace flow::boxing

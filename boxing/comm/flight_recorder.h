// Records the last collectives of a rank in a mapped file, flight_RANK in FLOW_STATUS_DIR, so that
// the records survive a killed rank.
#pragma once

#include <cstdint>
#include <mutex>

#include "boxing/comm/communicator.h"
#include "boxing/comm/flight_record.h"

namespace flow::boxing {

// Thread safe.
class FlightRecorder {
 public:
  // Records nothing if FLOW_STATUS_DIR is not set or the file cannot be created.
  explicit FlightRecorder(int64_t rank);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Records that the caller starts to wait for its group; pass the result to met().
  uint64_t begin(const Fingerprint& what);
  void met(uint64_t number);

 private:
  FlightRecord* records_ = nullptr;  // kFlightRecords of them
  std::mutex mutex_;
  uint64_t last_ = 0;  // guarded by mutex_
};

// The rank's flight recorder; created at first use.
FlightRecorder& flight_recorder(RankContext& context);

}  // namespace flow::boxing

// When a device reaches a place in the work a rank has queued on it.
#pragma once

#include <memory>

namespace flow {

class RankContext;

// Copies share the mark.
class DeviceMark {
 public:
  DeviceMark() = default;
  // Behind everything queued on the rank's CUDA device now. Throws Unsupported where there is none.
  static DeviceMark now(RankContext& rank);

  // Microseconds on the device; waits until both are reached.
  double us_since(const DeviceMark& earlier) const;

 private:
  std::shared_ptr<void> event_;
};

}  // namespace flow

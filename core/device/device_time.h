// Measures when a device reaches a point in the work that a rank has queued on it.
#pragma once

#include <memory>

namespace flow {

class RankContext;

// A point in the work of a CUDA device. Copies refer to the same point.
class DeviceMark {
 public:
  DeviceMark() = default;
  // Marks the point after all work queued on the rank's CUDA device now. Throws Unsupported if
  // there is no device.
  static DeviceMark now(RankContext& rank);

  // Microseconds on the device between two marks; blocks until the device has reached both.
  double us_since(const DeviceMark& earlier) const;

 private:
  std::shared_ptr<void> event_;
};

}  // namespace flow

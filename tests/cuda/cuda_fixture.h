// For tests that need a CUDA device, real or emulated.
#pragma once

#include <gtest/gtest.h>

#include "core/device/cuda.h"

namespace flow {

class CudaFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::is_available()) GTEST_SKIP() << "no CUDA device can be used on this machine";
  }
};

}  // namespace flow

// For tests that need a CUDA device, real or emulated.
#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "core/device/cuda.h"

namespace flow {

class CudaFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::is_available()) GTEST_SKIP() << "no CUDA device can be used on this machine";
  }
};

// False if every tensor has an allocation of its own.
inline bool reuses_memory() {
  const char* const cache = std::getenv("FLOW_CUDA_CACHE");
  return cache == nullptr || std::string(cache) != "0";
}

// Allocators that are made while an object of this class exists keep nothing.
class WithoutCache {
 public:
  WithoutCache() : reused_(reuses_memory()) { setenv("FLOW_CUDA_CACHE", "0", 1); }

  ~WithoutCache() { setenv("FLOW_CUDA_CACHE", reused_ ? "1" : "0", 1); }

  WithoutCache(const WithoutCache&) = delete;
  WithoutCache& operator=(const WithoutCache&) = delete;

 private:
  bool reused_;
};

}  // namespace flow

// The highest rates of one thread of this machine, measured in the run that is compared with them,
// and the counters with which every benchmark row reports how close it came. Limits use memory as
// the library's tensors have it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/storage.h"

namespace flow::bench {

// Floats from this rank's allocator, in huge pages where that uses them.
class TensorMemory {
 public:
  TensorMemory() = default;
  TensorMemory(int64_t num_floats, float value);

  float* data() const { return reinterpret_cast<float*>(storage_->data()); }

  int64_t size() const { return size_; }

 private:
  int64_t size_ = 0;
  Ref<Storage> storage_;
};

// Each call measures for some milliseconds and returns the best of all calls with the same argument
// so far, because a disturbed sample can only be too low. Confined to one thread.
class MachineLimits {
 public:
  // Fused multiply-adds of the widest instruction set (2 operations each), in FLOP/s.
  double fma_flops();

  // a[i] = b[i] + 3 c[i] over arrays of `num_floats`, in bytes/s that count each of the three
  // arrays once. The better of plain and non-temporal stores.
  double triad_bytes(int64_t num_floats);

  // std::memcpy of `num_bytes`, in bytes/s read plus written.
  double copy_bytes(int64_t num_bytes);

  // Any way to move `num_bytes`, in bytes/s: the best of reading them all, of writing them all, of
  // the triad, of std::memcpy between halves, and of negating half of them in place.
  double move_bytes(int64_t num_bytes);

 private:
  double fma_flops_ = 0;
  std::map<int64_t, double> triad_bytes_;
  std::map<int64_t, double> copy_bytes_;
  std::map<int64_t, double> read_bytes_;
  std::map<int64_t, double> write_bytes_;
  std::map<int64_t, double> negate_bytes_;

  // The sum of `num_floats`, in bytes/s.
  double read_bytes(int64_t num_floats);
  // std::memset of `num_bytes`, in bytes/s.
  double write_bytes(int64_t num_bytes);
  // a[i] = -a[i] over `num_floats`, in bytes/s read plus written.
  double negate_bytes(int64_t num_floats);

  // Makes the memory that the loops use large enough.
  float* reserve(int64_t num_floats);

  TensorMemory memory_;
};

// The rate at which this rank copies `num_bytes` while the others copy as well, because the cores
// share the memory bandwidth; in bytes/s read plus written. The better of std::memcpy and of stores
// that bypass the caches. Collective: `meet` must return on all ranks together.
double copy_bytes_together(int64_t num_bytes, const std::function<void()>& meet);

// Sets the counters value, limit and ratio and the label of a row. A rate is better when higher
// (ratio = value / limit), a time when lower (ratio = limit / value). The limit is what the machine
// can do at most: a ratio above 1.05 shows that it was measured wrongly, and makes the run fail.
void report_rate(benchmark::State& state, double value, double limit, const std::string& unit);
void report_time(benchmark::State& state, double value, double limit, const std::string& unit);

// The same with the counter baseline: what the row is compared with, which it may exceed.
void compare_rate(benchmark::State& state, double value, double baseline, const std::string& unit);
void compare_time(benchmark::State& state, double value, double baseline, const std::string& unit);

// Adds CPU, instruction set, threads and the load by other processes to the context of the report.
void add_machine_context(int num_threads);

// The main function of a benchmark: sets the context, parses google-benchmark's flags, and runs the
// registered rows. Returns the exit code: 1 if a row exceeds its limit.
int run_benchmarks(int argc, char** argv, int num_threads = 1);

}  // namespace flow::bench

#include "boxing/comm/flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/env.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

constexpr size_t kFileBytes = kFlightRecords * sizeof(FlightRecord);

template <size_t kSize>
void put(std::array<char, kSize>& target, std::string_view text) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(target.data(), text.data(), size);
  target[size] = '\0';
}

}  // namespace

FlightRecorder::FlightRecorder(int64_t rank) {
  const std::string directory = env_string("FLOW_STATUS_DIR", "");
  if (directory.empty()) return;
  const std::string name = str(directory, "/flight_", rank);
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  // Room is taken now: a store into a page without room would end the rank.
  if (posix_fallocate(file, 0, kFileBytes) == 0) {
    void* memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) records_ = static_cast<FlightRecord*>(memory);
  }
  close(file);
}

FlightRecorder::~FlightRecorder() {
  if (records_ != nullptr) munmap(records_, kFileBytes);
}

uint64_t FlightRecorder::begin(const Fingerprint& what) {
  if (records_ == nullptr) return 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  FlightRecord& record = records_[++last_ % kFlightRecords];
  record.number = 0;  // readers must not use an incomplete record
  record.state = FlightRecord::State::kWaiting;
  record.time_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  record.count = what.count;
  record.line = what.site.line();
  record.num_dims = static_cast<int32_t>(what.shape.size());
  std::copy(what.shape.begin(), what.shape.end(), record.shape.begin());
  put(record.op, what.op);
  put(record.collective, what.collective);
  put(record.dtype, dtype_name(what.dtype));
  const std::string_view file = what.site.file();
  put(record.file, file.substr(file.size() - std::min(file.size(), record.file.size() - 1)));
  record.number = last_;
  return last_;
}

void FlightRecorder::met(uint64_t number) {
  if (records_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  FlightRecord& record = records_[number % kFlightRecords];
  if (record.number == number) record.state = FlightRecord::State::kMet;
}

FlightRecorder& flight_recorder(RankContext& context) {
  std::shared_ptr<FlightRecorder>& recorder = context.slot_ptr<FlightRecorder>();
  if (!recorder) recorder = std::make_shared<FlightRecorder>(context.rank());
  return *recorder;
}

}  // namespace flow::boxing

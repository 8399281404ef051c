// The processes of this host, as the system sees them.
#pragma once

#include <cstdint>

namespace flow::boxing {

// Names a process, also after the system has given its number to another one.
struct HostProcess {
  int64_t id = 0;           // 0: none
  uint64_t start_time = 0;  // in ticks of the system's clock
};

enum class ProcessState { kUnknown, kRunning, kStopped, kEnded };

HostProcess own_process();

// kRunning: it runs, sleeps, or waits for a core, or its state cannot be read now. kUnknown: there
// is no such process, or it cannot be seen from here; a process that was seen before has then
// ended.
ProcessState state_of(const HostProcess& process);

}  // namespace flow::boxing

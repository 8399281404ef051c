// The processes of this host, as the system sees them.
#pragma once

#include <cstddef>
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

// Copies memory of a process of this host to `target` without its help. Returns the number of bytes
// that were copied: fewer than `bytes`, and often 0, if the system does not allow it or the memory
// is not there.
int64_t read_memory(int64_t process_id, uint64_t address, std::byte* target, int64_t bytes);

}  // namespace flow::boxing

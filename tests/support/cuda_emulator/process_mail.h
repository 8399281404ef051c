// Data that the processes of an emulated NCCL communicator pass to each other: files in shared
// memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cuda_emulator {

// Each piece has a name that is used once. What this object has put and nobody has taken is removed
// at its end.
class ProcessMail {
 public:
  using Bytes = std::vector<std::byte>;

  // `communicator` names the communicator in all processes of the machine.
  explicit ProcessMail(const std::string& communicator);
  ~ProcessMail();
  ProcessMail(const ProcessMail&) = delete;
  ProcessMail& operator=(const ProcessMail&) = delete;

  // False if there is no room. The others see all of it or nothing.
  bool put(const std::string& name, const Bytes& data);
  // Removes it; empty if nobody has put it.
  std::optional<Bytes> take(const std::string& name) const;
  // Whether it was put and not taken.
  bool is_there(const std::string& name) const;

 private:
  std::string path(const std::string& name) const;

  std::string prefix_;
  std::vector<std::string> put_;  // paths
};

}  // namespace cuda_emulator

// The file descriptors without which the connection of a rank cannot work.
#pragma once

#include <optional>
#include <vector>

namespace flow::boxing {

// The descriptors through which MPI waits for events of the system (epoll). If the program closes
// them, as a loop over all descriptors does, MPI's threads fail and log without end.
class OwnDescriptors {
 public:
  // The descriptors of this process that wait for events, the program's own among them.
  static std::vector<int> list_event_queues();

  // Notes the descriptors that are open now and were not among `earlier`, the list from before MPI
  // was initialised. Make it right after that.
  explicit OwnDescriptors(const std::vector<int>& earlier);

  // A descriptor that has been closed since; empty if all are open.
  std::optional<int> find_closed() const;

 private:
  std::vector<int> descriptors_;
};

}  // namespace flow::boxing

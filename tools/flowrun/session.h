// The folder of one job: what ranks and their keepers write for flowrun, and what MPI needs.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

// Removed with all it holds when the job is over. What a flowrun that was killed has left is
// removed by the next one.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

// Files KIND_RANK.json of the folder, as (rank, content).
std::vector<std::pair<long, std::string>> read_records(const std::string& directory,
                                                       const std::string& kind);
// Whether a rank or a node has failed, as far as their records say.
bool has_failure(const std::string& directory);
// Appears in one step.
void write_record(const std::string& directory, const std::string& kind, long rank,
                  const std::string& content);

}  // namespace flowrun

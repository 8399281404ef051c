// The folder of one job. Ranks and keepers write records for flowrun there, and MPI its files.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

// Owns the folder and removes it when the job is over. If a flowrun was killed, the next flowrun
// removes its folder.
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

// The files KIND_RANK.json of the folder, as (rank, content).
std::vector<std::pair<long, std::string>> read_records(const std::string& directory,
                                                       const std::string& kind);
// True if a record says that a rank or a node has failed.
bool has_failure(const std::string& directory);
// Writes the file KIND_RANK.json atomically.
void write_record(const std::string& directory, const std::string& kind, long rank,
                  const std::string& content);

}  // namespace flowrun

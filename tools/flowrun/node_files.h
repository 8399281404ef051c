// The files that ranks and keepers leave in a session, on their way to the head node.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace flowrun {

class Link;

// Whether a node may hand in a file of this name: "exit_3.json", "failed_3.json", "flight_3", ...
bool is_file_of_ranks(const std::string& name);

// Sends files that are new or have changed.
class FileSender {
 public:
  explicit FileSender(std::string session) : session_(std::move(session)) {}

  // `with_flights`: also the records of the last collectives, which change all the time.
  void send(Link& link, bool with_flights);

 private:
  std::string session_;
  std::map<std::string, std::filesystem::file_time_type> sent_;
};

}  // namespace flowrun

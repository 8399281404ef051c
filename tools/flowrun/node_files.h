// Sends the files that ranks and keepers write in a session to the head node.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace flowrun {

class Link;

// True if a node may send a file of this name: "exit_3.json", "failed_3.json", "flight_3", ...
bool is_file_of_ranks(const std::string& name);

// Sends files that are new or have changed.
class FileSender {
 public:
  explicit FileSender(std::string session) : session_(std::move(session)) {}

  // `with_flights`: also sends the flight records, which change all the time.
  void send(Link& link, bool with_flights);

 private:
  std::string session_;
  std::map<std::string, std::filesystem::file_time_type> sent_;
};

}  // namespace flowrun

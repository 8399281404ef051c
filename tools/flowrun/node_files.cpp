#include "tools/flowrun/node_files.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tools/flowrun/link.h"

namespace flowrun {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

bool is_flight(std::string_view name) {
  constexpr std::string_view kFlight = "flight_";
  return name.starts_with(kFlight) && is_number(name.substr(kFlight.size()));
}

}  // namespace

bool is_file_of_ranks(const std::string& name) {
  constexpr std::string_view kEnd = ".json";
  if (is_flight(name)) return true;
  if (!name.ends_with(kEnd)) return false;
  const std::string_view stem = std::string_view(name).substr(0, name.size() - kEnd.size());
  for (const std::string_view kind : {"exit_", "failed_", "joining_", "running_", "ended_"}) {
    if (stem.starts_with(kind) && is_number(stem.substr(kind.size()))) return true;
  }
  return false;
}

void FileSender::send(Link& link, bool with_flights) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(session_, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_file_of_ranks(name) || (is_flight(name) && !with_flights)) continue;
    const auto time = entry.last_write_time(error);
    if (const auto found = sent_.find(name); found != sent_.end() && found->second == time) {
      continue;
    }
    std::stringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    link.send(Frame::Kind::kFile, name + '\0' + content.str());
    sent_[name] = time;
  }
}

}  // namespace flowrun

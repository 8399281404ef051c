#include "tools/flowrun/flight.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "boxing/comm/flight_record.h"

namespace flowrun {

namespace {

using flow::boxing::FlightRecord;
using Json = nlohmann::json;

template <size_t kSize>
std::string text(const std::array<char, kSize>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

std::string call_text(const FlightRecord& record) {
  const std::string op = text(record.op);
  const std::string collective = text(record.collective);
  std::string call = op.empty() ? collective : op;
  if (record.num_dims > 0) {
    call += " of " + text(record.dtype) + " (";
    for (int32_t dim = 0; dim < std::min<int32_t>(record.num_dims, 8); ++dim)
      call += (dim == 0 ? "" : ", ") + std::to_string(record.shape[static_cast<size_t>(dim)]);
    call += record.num_dims == 1 ? ",)" : ")";
  } else if (record.count > 0) {
    call += " of " + std::to_string(record.count) + ' ' + text(record.dtype);
  }
  if (!op.empty() && op != collective) call += " (" + collective + ')';
  return call;
}

std::string site_text(const FlightRecord& record) {
  if (record.line == 0) return "an unknown line";
  return text(record.file) + ':' + std::to_string(record.line);
}

Json calls_of(const std::filesystem::path& path, size_t limit) {
  std::vector<FlightRecord> records(flow::boxing::kFlightRecords);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(records.data()),
            static_cast<std::streamsize>(records.size() * sizeof(FlightRecord)));
  std::erase_if(records, [](const FlightRecord& record) { return record.number == 0; });
  std::sort(records.begin(), records.end(),
            [](const FlightRecord& a, const FlightRecord& b) { return a.number < b.number; });
  if (records.size() > limit)
    records.erase(records.begin(), records.end() - static_cast<long>(limit));
  Json calls = Json::array();
  for (const FlightRecord& record : records) {
    calls.push_back({{"number", record.number},
                     {"call", call_text(record)},
                     {"site", site_text(record)},
                     {"state", record.state == FlightRecord::State::kMet ? "met" : "waiting"},
                     {"time", static_cast<double>(record.time_us) * 1e-6}});
  }
  return calls;
}

}  // namespace

Json read_flights(const std::string& session, size_t limit) {
  constexpr std::string_view kPrefix = "flight_";
  std::vector<std::pair<long, std::filesystem::path>> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(session, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    files.emplace_back(std::strtol(name.c_str() + kPrefix.size(), nullptr, 10), entry.path());
  }
  std::sort(files.begin(), files.end());
  Json flights = Json::array();
  for (const auto& [rank, path] : files)
    flights.push_back({{"rank", rank}, {"calls", calls_of(path, limit)}});
  return flights;
}

std::string last_call(const Json& flights, long rank) {
  for (const Json& flight : flights) {
    if (flight["rank"] != rank || flight["calls"].empty()) continue;
    const Json& call = flight["calls"].back();
    return call["call"].get<std::string>() + " at " + call["site"].get<std::string>() +
           (call["state"] == "waiting" ? ", waiting for others" : "");
  }
  return {};
}

}  // namespace flowrun

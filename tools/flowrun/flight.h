// The last collectives of each rank, read from the files of the flight recorders.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace flowrun {

// [{"rank": 0, "calls": [{"number", "call", "site", "state", "time"}, …]}, …], oldest first, with
// at most `limit` calls for each rank.
nlohmann::json read_flights(const std::string& session, size_t limit);

// "all_reduce of float32 (4,) at train.cpp:12, waiting for others"; empty if the rank made no call.
std::string last_call(const nlohmann::json& flights, long rank);

}  // namespace flowrun

// The last collectives of each rank, from the files their flight recorders leave.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace flowrun {

// [{"rank": 0, "calls": [{"number", "call", "site", "state", "time"}, …]}, …], oldest first, at
// most `limit` a rank.
nlohmann::json read_flights(const std::string& session, size_t limit);

// "all_reduce of float32 (4,) at train.cpp:12, waiting for others"; empty where nothing is known.
std::string last_call(const nlohmann::json& flights, long rank);

}  // namespace flowrun

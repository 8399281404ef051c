#include "boxing/cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/env.h"
#include "core/error.h"
#include "core/hash.h"

namespace flow::boxing {

namespace {

struct Member {
  const char* name;
  double CostTable::*value;
  bool may_be_zero;  // other members are divisors, or would make a step look free
};

constexpr std::array kMembers = {
    Member{"meeting_us", &CostTable::meeting_us, false},
    Member{"peer_us", &CostTable::peer_us, true},
    Member{"bytes_per_us", &CostTable::bytes_per_us, false},
    Member{"reduced_per_us", &CostTable::reduced_per_us, false},
    Member{"copied_per_us", &CostTable::copied_per_us, false},
    Member{"local_step_us", &CostTable::local_step_us, false},
    Member{"flops_per_us", &CostTable::flops_per_us, false},
    Member{"cut_use", &CostTable::cut_use, true},
    Member{"partial_use", &CostTable::partial_use, true},
};

// Numbers outside these bounds are not plausible costs. Within them, sums stay exact enough to be
// compared.
constexpr double kLargest = 1e12;

[[noreturn]] void throw_bad(std::string_view name, const std::string& what) {
  throw BadFile(str("[FLOW_COST_TABLE] ", name, " is not a cost table: ", what,
                    "; write one with flow-calibrate costs FILE, or unset FLOW_COST_TABLE"));
}

double number_of(const nlohmann::json& table, const Member& member, std::string_view name) {
  const auto found = table.find(member.name);
  if (found == table.end()) throw_bad(name, str("it has no ", member.name));
  if (found->is_structured())  // may be nested too deeply to be printed
    throw_bad(name, str(member.name, " is a list or an object, which is not a number"));
  if (!found->is_number())
    throw_bad(name, str(member.name, " is ", found->dump(), ", which is not a number"));
  const auto value = found->get<double>();
  const bool is_price = std::isfinite(value) && value <= kLargest &&
                        (member.may_be_zero ? value >= 0 : value >= 1 / kLargest);
  if (!is_price) {
    throw_bad(name, str(member.name, " is ", found->dump(), ", which is not between ",
                        member.may_be_zero ? 0 : 1 / kLargest, " and ", kLargest));
  }
  return value;
}

}  // namespace

CostTable parse_cost_table(std::string_view text, std::string_view name) {
  const auto table = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!table.is_object()) {
    throw_bad(name,
              table.is_discarded() ? "it is not JSON, or incomplete" : "it is not a JSON object");
  }
  for (const auto& entry : table.items()) {
    const std::string& key = entry.key();
    const bool is_known = std::any_of(kMembers.begin(), kMembers.end(),
                                      [&](const Member& member) { return key == member.name; });
    if (!is_known) throw_bad(name, str("'", key, "' is not one of its keys"));
  }
  CostTable result;
  for (const Member& member : kMembers)
    result.*member.value = number_of(table, member, name);
  return result;
}

CostTable read_cost_table(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = 1 << 20;
  std::error_code error;  // whatever is wrong, the file cannot be read
  const bool is_file = std::filesystem::is_regular_file(path, error);  // a device may have no end
  const std::uintmax_t bytes = is_file ? std::filesystem::file_size(path, error) : 0;
  std::ifstream file;
  if (is_file) file.open(path, std::ios::binary);
  if (error || !is_file || !file) {
    throw IoError(
        str("[FLOW_COST_TABLE] the cost table cannot be read; received ", path,
            is_file || !std::filesystem::exists(path, error) ? "" : ", which is not a regular file",
            "; name a file that flow-calibrate costs FILE wrote, or unset FLOW_COST_TABLE"));
  }
  if (bytes > kMostBytes) throw_bad(path, str("it has ", bytes, " bytes, more than ", kMostBytes));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_cost_table(text.str(), path);
}

const CostTable& cost_table() {
  static const CostTable table = [] {
    const std::string path = env_string("FLOW_COST_TABLE", "");
    return path.empty() ? kCostTable : read_cost_table(path);
  }();
  return table;
}

std::string to_string(const CostTable& table) {
  nlohmann::ordered_json result;
  for (const Member& member : kMembers)
    result[member.name] = table.*member.value;
  return result.dump(2) + "\n";
}

uint64_t hash_of(const CostTable& table) {
  Hasher hasher;
  for (const Member& member : kMembers)
    hasher.add(std::bit_cast<uint64_t>(table.*member.value));
  return hasher.value();
}

}  // namespace flow::boxing

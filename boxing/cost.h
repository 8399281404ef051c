// The cost table: the predicted cost of moving data between ranks. It only ranks alternatives; it
// does not measure. The committed table is the same on every machine, so all ranks and all runs
// decide alike. FLOW_COST_TABLE names a file with another table; `flow-calibrate costs FILE` writes
// one for the current machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flow::boxing {

struct CostTable {
  double meeting_us = 1.5;       // all members of a group wait for each other once
  double peer_us = 0.3;          // for each further member of the group
  double bytes_per_us = 4000;    // received or sent by one rank
  double reduced_per_us = 6000;  // operand bytes of a reduction
  double copied_per_us = 8000;   // bytes that a copy within a rank writes
  double local_step_us = 0.2;    // a route step without communication
  double flops_per_us = 100000;  // arithmetic of one rank
  // How often the ops that use a result are expected to redistribute it to B. A split result is
  // mostly used as it is. A partial result is reduced by its first use, and by some later uses
  // again.
  double cut_use = 0.2;
  double partial_use = 1.25;

  friend bool operator==(const CostTable&, const CostTable&) = default;
};

inline constexpr CostTable kCostTable{};

// The table of this process: the file that FLOW_COST_TABLE names, else the committed table. It is
// read once, at the start of a job of several ranks or at the first decision that needs it, and
// never changes, so no cache holds decisions made with another table. Throws what read_cost_table
// throws.
const CostTable& cost_table();

// Reads a JSON object with one number for each member. Throws IoError if the file cannot be read,
// and BadFile if it is not such an object, lacks a member, has an unknown one, or has a number out
// of range.
CostTable read_cost_table(const std::string& path);
// `name` names the text in error messages.
CostTable parse_cost_table(std::string_view text, std::string_view name);
// The text of a table file; reading it back gives the same table bit for bit.
std::string to_string(const CostTable& table);

// A hash of the numbers, whichever file they come from.
uint64_t hash_of(const CostTable& table);

}  // namespace flow::boxing

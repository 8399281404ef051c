// The cost table: what moving data between ranks is predicted to cost. The committed one is the
// same on every machine, so that all ranks and all runs decide alike; it ranks alternatives, it
// does not measure. FLOW_COST_TABLE names a file with another (calibrate costs FILE writes that of
// a machine).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flow::boxing {

struct CostTable {
  double meeting_us = 1.5;       // members of a group meet once
  double peer_us = 0.3;          // each further member of the group
  double bytes_per_us = 4000;    // received by, or sent from, one rank
  double reduced_per_us = 6000;  // operand bytes of a reduction
  double copied_per_us = 8000;   // bytes written by a copy within a rank
  double local_step_us = 0.2;    // a step without communication
  double flops_per_us = 100000;  // arithmetic of a rank
  // How often a result is brought to B by those that use it: what is cut is mostly used as it is;
  // what is partial is reduced, and again by some further uses.
  double cut_use = 0.2;
  double partial_use = 1.25;

  friend bool operator==(const CostTable&, const CostTable&) = default;
};

inline constexpr CostTable kCostTable{};

// The table of this process: that of FLOW_COST_TABLE, else the committed one. Read once, at the
// start of a job of several ranks or by the first decision that needs it, and never changed: no
// cache holds decisions made by another. Throws what read_cost_table throws.
const CostTable& cost_table();

// A JSON object with a number for each member. Throws IoError for a file that cannot be read and
// BadFile for one that is no such object, lacks a member, has another, or a number out of range.
CostTable read_cost_table(const std::string& path);
// `name` stands for the text in messages.
CostTable parse_cost_table(std::string_view text, std::string_view name);
// The file's text; reading it gives the same table bit for bit.
std::string to_string(const CostTable& table);

// Of the numbers, whatever file they come from.
uint64_t hash_of(const CostTable& table);

}  // namespace flow::boxing

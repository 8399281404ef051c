#include "boxing/cost.h"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/planner.h"
#include "core/error.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

using boxing::CostTable;
using boxing::kCostTable;
using boxing::parse_cost_table;

// What parse_cost_table says of the committed table's text after `from` has become `to`.
std::string complaint(const std::string& from, const std::string& to) {
  std::string text = boxing::to_string(kCostTable);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    parse_cost_table(text, "costs.json");
  } catch (const BadFile& error) {
    return error.what();
  }
  return "no error";
}

TEST(CostTable, ReadsWhatItWrites) {
  CostTable table;
  table.meeting_us = 0.1 + 0.2;
  table.partial_use = 0;

  EXPECT_EQ(parse_cost_table(boxing::to_string(table), ""), table);
  EXPECT_EQ(parse_cost_table(boxing::to_string(kCostTable), ""), kCostTable);
  EXPECT_NE(boxing::hash_of(table), boxing::hash_of(kCostTable));
}

TEST(CostTable, RefusesWhatIsNone) {
  EXPECT_EQ(
      complaint("\n}", ""),
      "[FLOW_COST_TABLE] costs.json is not a cost table: it is not JSON, or incomplete; write "
      "one with flow-calibrate costs FILE, or unset FLOW_COST_TABLE");
  EXPECT_NE(complaint("meeting_us", "meetings_us").find("'meetings_us' is not one of its keys"),
            std::string::npos);
  EXPECT_NE(complaint("\"meeting_us\": 1.5,", "").find("it has no meeting_us"), std::string::npos);
  EXPECT_NE(complaint("1.5", "\"1.5\"").find("meeting_us is \"1.5\", which is not a number"),
            std::string::npos);
  EXPECT_NE(complaint("4000.0", "0").find("bytes_per_us is 0, which is not between"),
            std::string::npos);
  EXPECT_NE(complaint("0.3", "-0.3").find("peer_us is -0.3, which is not between"),
            std::string::npos);
  EXPECT_NE(complaint("0.3", "1e300").find("peer_us is 1e+300, which is not between"),
            std::string::npos);
  EXPECT_THROW(parse_cost_table("[1, 2]", ""), BadFile);
  EXPECT_THROW(parse_cost_table("", ""), BadFile);
}

TEST(CostTable, AFileThatCannotBeReadIsNamed) {
  try {
    boxing::read_cost_table("/nowhere/costs.json");
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("received /nowhere/costs.json"), std::string::npos)
        << error.what();
  }
}

TEST(CostTable, DevicesAndLongFilesAreRefusedAtOnce) {
  EXPECT_THROW(boxing::read_cost_table("/dev/zero"), IoError);
  const TempFolder folder;
  EXPECT_THROW(boxing::read_cost_table(folder.path()), IoError);
  const std::string path = folder.file("costs.json");
  std::ofstream(path) << std::string(size_t{2} << 20, ' ');
  EXPECT_THROW(boxing::read_cost_table(path), BadFile);
}

TEST(CostTable, DecidesTheRoute) {
  const Placement grid("cpu", {{0, 1}, {2, 3}});
  const auto route = [&](const CostTable& table) {
    return boxing::step_names(boxing::find_route({64, 64}, float32,
                                                 {grid, {sbp::partial_sum, sbp::partial_sum}},
                                                 {grid, {sbp::split(0), sbp::broadcast}}, table));
  };
  CostTable slow_meetings;
  slow_meetings.meeting_us = 1e5;

  EXPECT_EQ(route(kCostTable), "exchange + all_gather");
  EXPECT_EQ(route(slow_meetings), "exchange");
}

}  // namespace
}  // namespace flow

#include "pipeline/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace flow::pipeline {
namespace {

TEST(Schedule, GpipeDoesAllForwardsFirst) {
  EXPECT_EQ(to_string(gpipe(2, 2)), "0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n");
}

TEST(Schedule, TextParsesBack) {
  const Schedule schedule = gpipe(3, 4);
  EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
}

TEST(Schedule, OneForwardOneBackwardIsAccepted) {
  EXPECT_NO_THROW(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
}

std::string complaint(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, DeadlockNamesTheActionsThatWait) {
  // Stage 1 wants micro-batch 1 first, stage 0 sends it only after the backward of 0.
  const std::string message = complaint("0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1\n");
  EXPECT_NE(message.find("wait for each other for ever: 0B0, 1F1"), std::string::npos) << message;
}

TEST(Schedule, IncompleteAndDoubledActionsAreRefused) {
  EXPECT_NE(complaint("0F0 0B0\n1F0\n").find("3 of 4 actions"), std::string::npos);
  EXPECT_NE(complaint("0F0 0F0 0B0\n").find("0F0 is listed twice"), std::string::npos);
  EXPECT_NE(complaint("1F0 1B0\n").find("does not belong to stage 0"), std::string::npos);
  EXPECT_NE(complaint("0F0 0X0\n").find("cannot read the action '0X0'"), std::string::npos);
}

}  // namespace
}  // namespace flow::pipeline

#include "boxing/ranks/main_boundary.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/print.h"

namespace flow {
namespace {

int prints_and_throws(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  print("the last line");
  throw std::runtime_error("the reason");
}

TEST(MainBoundaryDeathTest, WhatWasPrintedSurvivesAnExceptionThatLeavesMain) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "main_boundary_test.txt";
  EXPECT_DEATH(
      [&]() noexcept {
        if (std::freopen(file.c_str(), "w", stdout) == nullptr) _exit(1);
        internal::run_program(prints_and_throws, 0, nullptr, nullptr);
      }(),
      "the reason");
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "the last line\n");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace flow

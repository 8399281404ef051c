#include "tests/ranks/flowrun_job.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace flow {

const std::string& report_file() {
  struct File {
    std::string name = testing::TempDir() + "flowrun_report_" + std::to_string(getpid()) + ".json";

    ~File() { std::remove(name.c_str()); }
  };

  static const File file;
  return file.name;
}

std::vector<std::string> flowrun(std::vector<std::string> options,
                                 const std::vector<std::string>& program) {
  options.insert(options.begin(), {kPrograms + "/flowrun", "--report", report_file()});
  options.insert(options.end(), program.begin(), program.end());
  return options;
}

std::string read_report() {
  std::stringstream text;
  text << std::ifstream(report_file()).rdbuf();
  std::remove(report_file().c_str());
  return text.str();
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "missing: " << word << "\nin: " << text;
}

}  // namespace flow

// Runs jobs with flowrun and reads their reports.
#pragma once

#include <string>
#include <vector>

#include "tests/support/job.h"

namespace flow {

// The folder of the programs.
inline const std::string kPrograms = FLOW_PROGRAMS;

// The file for the jobs' reports; removed at the end.
const std::string& report_file();

// The command line of flowrun with `options` for `program`.
std::vector<std::string> flowrun(std::vector<std::string> options,
                                 const std::vector<std::string>& program);

// Returns the report of the last job, and removes it.
std::string read_report();

// Expects that `text` contains all of `words`.
void expect_words(const std::string& text, const std::vector<std::string>& words);

}  // namespace flow

// The file with the report of a failed job.
#pragma once

#include <string>

namespace flowrun {

// Removes the report of an earlier job. Leaves devices and links alone.
void remove_report(const std::string& file);

// Returns why the report could not be written, or an empty string.
std::string write_report(const std::string& file, const std::string& report);

// What to tell the user: where the report is, or `failure`, which write_report() returned.
std::string report_note(const std::string& file, const std::string& failure);

}  // namespace flowrun

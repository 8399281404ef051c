#include "tools/flowrun/report.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace flowrun {

void remove_report(const std::string& file) {
  std::error_code error;  // write_report() tells of a file that cannot be replaced
  if (std::filesystem::symlink_status(file, error).type() == std::filesystem::file_type::regular)
    std::filesystem::remove(file, error);
}

std::string write_report(const std::string& file, const std::string& report) {
  std::ofstream out(file);
  out << report;
  out.close();  // a full disk is often noticed only here
  if (out) return {};
  return "the report cannot be written to " + file + ": " + std::strerror(errno);
}

std::string report_note(const std::string& file, const std::string& failure) {
  return failure.empty() ? "see " + file : failure;
}

}  // namespace flowrun

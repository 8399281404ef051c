// What the nodes of a job know and nobody else does.
#pragma once

#include <string>

namespace flowrun {

// From `file` ("-": the first line of stdin), else from FLOW_JOB_SECRET, which no process that
// flowrun starts gets to see. Empty where there is none. Throws JobError where the file
// can be read by others, or what it says is short.
std::string read_secret(const std::string& file);
// 256 random bits.
std::string make_secret();

}  // namespace flowrun

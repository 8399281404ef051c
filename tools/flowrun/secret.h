// The secret that only the nodes of a job know.
#pragma once

#include <string>

namespace flowrun {

// Hides FLOW_JOB_SECRET from the processes that flowrun starts.
void hide_secret();
// Reads the secret from `file` ("-": the first line of stdin), or else from FLOW_JOB_SECRET, which
// is hidden then. Returns an empty string if there is no secret. Throws JobError if other users can
// access the file, or if the secret is too short.
std::string read_secret(const std::string& file);
// 256 random bits.
std::string make_secret();

}  // namespace flowrun

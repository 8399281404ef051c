// The text files that a training writes.
#pragma once

#include <cstdint>
#include <string>

namespace flow::conform {

// A line of log.jsonl. Numbers have the shortest decimal form that reads back as the same number.
std::string log_line(int64_t step, double loss, double grad_norm, double lr);

void write_text(const std::string& path, const std::string& text);

}  // namespace flow::conform

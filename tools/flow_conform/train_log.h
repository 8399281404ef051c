// Files of text that a training writes.
#pragma once

#include <cstdint>
#include <string>

namespace flow::conform {

// A line of log.jsonl; the shortest decimals that read back as the numbers.
std::string log_line(int64_t step, double loss, double grad_norm, double lr);

void write_text(const std::string& path, const std::string& text);

}  // namespace flow::conform

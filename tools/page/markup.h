// Text of HTML pages. Everything that comes from a plan goes through escaped().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace flow::tools {

// The text as HTML shows it, also inside of quoted attributes: no part of it is markup.
std::string escaped(std::string_view text);

// "1.5 MiB", "12 bytes".
std::string bytes_text(int64_t bytes);
// "1.25 ms", "12.0 us".
std::string time_text(double us);
// "12.5 %" of whole; "0 %" of nothing.
std::string share_text(double part, double whole);
// A coordinate with three decimals.
std::string percent(double share);

// A cell of a table, escaped by the caller where it holds text of a plan.
struct Cell {
  std::string html;
  bool is_number = false;  // aligned to the right
};

Cell text_cell(std::string_view text);
Cell number_cell(std::string_view text);

std::string table_head(std::initializer_list<Cell> cells);
std::string table_row(std::initializer_list<Cell> cells);

}  // namespace flow::tools

#include "tools/page/markup.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace flow::tools {

namespace {

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string row(std::initializer_list<Cell> cells, const char* tag) {
  std::string html = "<tr>";
  for (const Cell& cell : cells)
    html += str('<', tag, cell.is_number ? " class=\"n\">" : ">", cell.html, "</", tag, '>');
  return html + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
    }
  }
  return html;
}

std::string bytes_text(int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return str(bytes, bytes == 1 ? " byte" : " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit)
    value /= 1024;
  return str(fixed(value, value < 10 ? 2 : 1), ' ', kUnits[unit]);
}

std::string time_text(double us) {
  if (us < 1000) return fixed(us, us < 10 ? 2 : 1) + " us";
  if (us < 1e6) return fixed(us / 1e3, 2) + " ms";
  return fixed(us / 1e6, 2) + " s";
}

std::string share_text(double part, double whole) {
  return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "0 %";
}

std::string percent(double share) {
  return fixed(std::isfinite(share) ? 100 * share : 0, 3) + '%';
}

Cell text_cell(std::string_view text) {
  return {escaped(text), false};
}

Cell number_cell(std::string_view text) {
  return {escaped(text), true};
}

std::string table_head(std::initializer_list<Cell> cells) {
  return "<thead>" + row(cells, "th") + "</thead>\n";
}

std::string table_row(std::initializer_list<Cell> cells) {
  return row(cells, "td");
}

}  // namespace flow::tools

// The frame of a page and its small parts.
#pragma once

#include <string>
#include <string_view>

namespace flow::tools {

// One HTML file, light or dark as the reader's system is set. It has no scripts and may load
// nothing. `title` and `subtitle` are plain text, `body` is HTML.
std::string page_html(std::string_view title, std::string_view subtitle, std::string_view body);

// A large value with a small text below it, for a <div class="tiles">.
std::string tile(std::string_view value, std::string_view what);

}  // namespace flow::tools

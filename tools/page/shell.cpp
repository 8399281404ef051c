#include "tools/page/shell.h"

#include "core/error.h"
#include "tools/page/markup.h"
#include "tools/page/page_style.h"

namespace flow::tools {

std::string page_html(std::string_view title, std::string_view subtitle, std::string_view body) {
  return str(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
      escaped(title), "</title>\n<style>", kPageStyle, "</style></head><body>\n<h1>",
      escaped(title), "</h1>\n<p class=\"sub\">", escaped(subtitle), "</p>\n", body,
      "</body></html>\n");
}

std::string tile(std::string_view value, std::string_view what) {
  return str("<div><b>", escaped(value), "</b><span>", escaped(what), "</span></div>\n");
}

}  // namespace flow::tools

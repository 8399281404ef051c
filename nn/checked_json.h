// Parses the JSON of files that are not trusted, in time proportional to its length.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace flow::nn {

struct JsonRules {
  int max_depth = 1;              // of the values: those of the outermost object have depth 1
  bool has_unique_names = false;  // names of the outermost object must not occur twice
};

// Calls `fail` with the reason, which must throw, if the text is not JSON or breaks the rules.
nlohmann::json parse_checked(const std::string& text, const JsonRules& rules,
                             const std::function<void(const std::string&)>& fail);

}  // namespace flow::nn

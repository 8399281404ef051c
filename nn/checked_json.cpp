#include "nn/checked_json.h"

#include <unordered_set>

#include <nlohmann/json.hpp>

namespace flow::nn {

namespace {

using Json = nlohmann::json;

// Reads the text without making values. The parser's own callback could check the same while it
// makes them, but then it searches all members of an object each time that one of them ends.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(const JsonRules& rules) : rules_(rules) {}

  const std::string& error() const { return error_; }

  bool null() override { return value(); }

  bool boolean(bool /*value*/) override { return value(); }

  bool number_integer(number_integer_t /*value*/) override { return value(); }

  bool number_unsigned(number_unsigned_t /*value*/) override { return value(); }

  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return value(); }

  bool string(string_t& /*value*/) override { return value(); }

  bool binary(binary_t& /*value*/) override { return value(); }

  bool start_object(size_t /*size*/) override { return open(); }

  bool end_object() override { return close(); }

  bool start_array(size_t /*size*/) override { return open(); }

  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (rules_.has_unique_names && depth_ == 1 && !names_.insert(name).second) {
      error_ = "a name occurs twice: " + name;
    }
    return error_.empty();
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    error_ = error.what();
    return false;
  }

 private:
  bool value() {
    if (depth_ > rules_.max_depth) error_ = "it is nested too deeply";
    return error_.empty();
  }

  bool open() {
    const bool is_allowed = value();
    ++depth_;
    return is_allowed;
  }

  bool close() {
    --depth_;
    return true;
  }

  JsonRules rules_;
  int depth_ = 0;  // the number of open objects and arrays
  std::unordered_set<std::string> names_;
  std::string error_;
};

}  // namespace

Json parse_checked(const std::string& text, const JsonRules& rules,
                   const std::function<void(const std::string&)>& fail) {
  Checker checker(rules);
  if (!Json::sax_parse(text, &checker)) fail(checker.error());
  return Json::parse(text);
}

}  // namespace flow::nn

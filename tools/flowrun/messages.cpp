#include "tools/flowrun/messages.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace flowrun {

namespace {

using Json = nlohmann::json;

// A host name or a command line need not be UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_list_of(const Json& value, bool (Json::*is_type)() const noexcept) {
  return value.is_array() && std::all_of(value.begin(), value.end(),
                                         [&](const Json& entry) { return (entry.*is_type)(); });
}

bool has_type(const Json& value, const std::string& /*like*/) {
  return value.is_string();
}

bool has_type(const Json& value, bool /*like*/) {
  return value.is_boolean();
}

bool has_type(const Json& value, int64_t /*like*/) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
}

bool has_type(const Json& value, int /*like*/) {
  return has_type(value, int64_t{0}) && std::in_range<int>(value.get<int64_t>());
}

bool has_type(const Json& value, const std::vector<std::string>& /*like*/) {
  return is_list_of(value, &Json::is_string);
}

template <class T>
bool read(const Json& object, const char* name, T& target) {
  const auto found = object.find(name);
  if (found == object.end() || !has_type(*found, target)) return false;
  found->get_to(target);
  return true;
}

enum class Type { kFlag, kInteger, kCount, kSeconds, kText, kRanks };

constexpr std::array<std::pair<std::string_view, Type>, 19> kMembers = {{
    {"cause", Type::kText},          {"exit_code", Type::kInteger},
    {"good", Type::kFlag},           {"has_threads", Type::kFlag},
    {"left_silently", Type::kFlag},  {"message", Type::kText},
    {"missing_ranks", Type::kRanks}, {"module", Type::kText},
    {"node", Type::kInteger},        {"op", Type::kText},
    {"other_site", Type::kText},     {"output_error", Type::kText},
    {"rank", Type::kInteger},        {"seq", Type::kCount},
    {"signal", Type::kInteger},      {"site", Type::kText},
    {"time", Type::kSeconds},        {"was_started", Type::kFlag},
    {"was_stopped", Type::kFlag},
}};

bool has_type(const Json& value, Type type) {
  switch (type) {
    case Type::kFlag:
      return value.is_boolean();
    case Type::kInteger:
      return has_type(value, int{0});
    case Type::kCount:
      return has_type(value, int64_t{0});
    case Type::kSeconds:
      return value.is_number();
    case Type::kText:
      return value.is_string();
    case Type::kRanks:
      return is_list_of(value, &Json::is_number_integer);
  }
  return false;
}

}  // namespace

std::string to_text(const Hello& hello) {
  return text_of({{"node", hello.node},
                  {"nodes", hello.num_nodes},
                  {"ranks", hello.num_ranks},
                  {"command", hello.command},
                  {"flowrun", hello.flowrun},
                  {"host", hello.host},
                  {"network", hello.network},
                  {"may_rename", hello.may_rename}});
}

std::optional<Hello> parse_hello(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  Hello hello;
  const bool is_whole =
      json.is_object() && read(json, "node", hello.node) && read(json, "nodes", hello.num_nodes) &&
      read(json, "ranks", hello.num_ranks) && read(json, "command", hello.command) &&
      read(json, "flowrun", hello.flowrun) && read(json, "host", hello.host) &&
      read(json, "network", hello.network) && read(json, "may_rename", hello.may_rename);
  return is_whole ? std::optional(hello) : std::nullopt;
}

std::string to_text(const Ending& ending) {
  return text_of({{"exit_code", ending.exit_code}, {"summary", ending.summary}});
}

std::optional<Ending> parse_ending(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  Ending ending;
  const bool is_whole = json.is_object() && read(json, "exit_code", ending.exit_code) &&
                        read(json, "summary", ending.summary);
  return is_whole ? std::optional(ending) : std::nullopt;
}

Json parse_record(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  Json record = Json::object();
  for (const auto& [name, type] : kMembers) {
    const auto found = json.find(name);
    if (found != json.end() && has_type(*found, type)) record[std::string(name)] = *found;
  }
  return record;
}

}  // namespace flowrun

// The contents of frames and records that are JSON. They come from other hosts or from the
// processes of ranks, so they are not trusted: a parser returns nullopt unless each member has its
// type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace flowrun {

// Frame::Kind::kHello.
struct Hello {
  int64_t node = 0;
  int64_t num_nodes = 0;
  int64_t num_ranks = 0;
  std::vector<std::string> command = {};
  std::string flowrun = {};  // the path of the node's flowrun
  std::string host = {};
  std::string network = {};
  bool may_rename = false;

  friend bool operator==(const Hello&, const Hello&) = default;
};

std::string to_text(const Hello& hello);
std::optional<Hello> parse_hello(const std::string& text);

// Frame::Kind::kVerdict.
struct Ending {
  int exit_code = 0;
  std::string summary = {};

  friend bool operator==(const Ending&, const Ending&) = default;
};

std::string to_text(const Ending& ending);
std::optional<Ending> parse_ending(const std::string& text);

// The record of a rank, a keeper or a node: an object of those members that records have, without
// those that have another type. Not an object if the text is none.
nlohmann::json parse_record(const std::string& text);

}  // namespace flowrun

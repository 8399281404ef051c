#include "tools/flowrun/daemon.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/flowrun/job_error.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

constexpr std::string_view kAgent = "flowrun-remote-shell";
constexpr std::string_view kNodePrefix = "flow-node-";
constexpr std::string_view kDaemon = "orted";

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// A word of a command line, or an operator of the shell.
struct Word {
  std::string text;
  bool is_operator = false;
};

std::vector<Word> cut_words(std::string_view line) {
  std::vector<Word> words;
  Word word;
  bool is_word = false;
  char quote = '\0';
  const auto finish = [&] {
    if (is_word) words.push_back(std::move(word));
    word = {};
    is_word = false;
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
    if (escapes) {
      word.text += line[++i];
      is_word = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word.text += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      is_word = true;
    } else if (c == ' ') {
      finish();
    } else if (std::string_view(";()&|<>`$\n").find(c) != std::string_view::npos) {
      finish();
      words.push_back({std::string(1, c), true});
    } else {
      word.text += c;
      is_word = true;
    }
  }
  finish();
  if (quote != '\0') throw std::runtime_error("mpirun's command for a node has an unmatched quote");
  return words;
}

}  // namespace

std::string node_name(long number) {
  return std::string(kNodePrefix) + std::to_string(number);
}

std::vector<std::string> parse_daemon_command(const std::vector<std::string>& shell_words) {
  std::string line;
  for (const std::string& word : shell_words)
    line += word + ' ';
  std::vector<Word> words = cut_words(line);
  // For some login shells mpirun first sets variables, or puts the command in parentheses.
  const auto is = [](char op) {
    return [op](const Word& word) { return word.is_operator && word.text[0] == op; };
  };
  const auto last = std::find_if(words.rbegin(), words.rend(), is(';'));
  words.erase(words.begin(), last.base());
  while (!words.empty() && is(')')(words.back()))
    words.pop_back();
  std::vector<std::string> result;
  for (const Word& word : words) {
    if (word.is_operator) {
      throw std::runtime_error("mpirun's command for a node must be a single call; got: " + line);
    }
    result.push_back(word.text);
  }
  if (result.empty() || base_name(result[0]) != kDaemon) {
    throw std::runtime_error("mpirun's command for a node must run orted; got: " + line);
  }
  result[0] = kDaemon;
  return result;
}

std::vector<std::string> check_daemon_words(const std::vector<std::string>& words,
                                            const std::string& session) {
  constexpr size_t kMost = 1000;
  constexpr std::string_view kFolder = "orte_tmpdir_base";
  const auto refuse = [](const std::string& what) {
    throw std::runtime_error("the command for this node is refused: " + what);
  };
  if (words.empty() || words[0] != kDaemon) refuse("it does not run orted");
  if (words.size() > kMost) refuse("it is too long");
  if (words.size() % 3 != 1) refuse("it has arguments that are not Open MPI parameters");
  std::vector<std::string> checked = {words[0]};
  for (size_t i = 1; i < words.size(); i += 3) {
    const std::string& name = words[i + 1];
    if (words[i] != "-mca" && words[i] != "--mca") refuse("orted has no option " + words[i]);
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    });
    if (!is_name) refuse("'" + name + "' is not an Open MPI parameter");
    // These parameters name folders of components, or files that name such folders.
    if (name.starts_with("mca_")) refuse("parameter " + name);
    // This node chooses the first parameter itself, and only the node with mpirun uses the second.
    if (name == kFolder || name == "plm_rsh_agent") continue;
    checked.insert(checked.end(), {"--mca", name, words[i + 2]});
  }
  checked.insert(checked.end(), {"--mca", std::string(kFolder), session});
  return checked;
}

std::string make_agent(const std::string& session, const std::string& flowrun) {
  std::string name = session + '/' + std::string(kAgent);
  if (symlink(flowrun.c_str(), name.c_str()) != 0) {
    throw std::runtime_error("cannot write to " + session);
  }
  return name;
}

bool is_agent_command(int argc, char** argv) {
  return argc > 2 && base_name(argv[0]) == kAgent;
}

int run_agent(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* session = std::getenv("FLOW_STATUS_DIR");
  const std::string_view host = argv[1];
  if (session == nullptr || !host.starts_with(kNodePrefix)) return kUsage;
  const long node = std::strtol(argv[1] + kNodePrefix.size(), nullptr, 10);
  try {
    const auto words = parse_daemon_command(std::vector<std::string>(argv + 2, argv + argc));
    write_record(session, "launch", node, nlohmann::json(words).dump());
  } catch (const std::exception& error) {
    std::cerr << "flowrun: " << error.what() << '\n';
    return kUsage;
  }
  for (;;) {
    for (const auto& [ended, content] : read_records(session, "daemon")) {
      if (ended == node) return static_cast<int>(std::strtol(content.c_str(), nullptr, 10));
    }
    usleep(10000);
  }
}

}  // namespace flowrun

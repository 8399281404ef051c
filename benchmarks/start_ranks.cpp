#include "benchmarks/start_ranks.h"

#include <string>
#include <vector>

#include <unistd.h>

#include "core/error.h"

namespace flow::bench {

void start_two_ranks(int argc, char** argv) {
  std::vector<std::string> words = {FLOW_FLOWRUN, "-n", "2", "--output", "plain"};
  words.insert(words.end(), argv, argv + argc);
  std::vector<char*> raw;
  for (std::string& word : words)
    raw.push_back(word.data());
  raw.push_back(nullptr);
  execv(raw[0], raw.data());
  throw IoError("[bench] cannot start " + words[0] + "; build the target flowrun");
}

}  // namespace flow::bench

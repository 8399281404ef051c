// Files are not trusted: whatever bytes they have, a reader returns a value or refuses them with
// the exception of its contract, in a short time and in little memory.
//
// FLOW_TEST_SEED and FLOW_TEST_CASES choose other and more cases; FLOW_TEST_SECONDS makes as many
// cases of each format as fit into this time.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/fuzz/formats.h"
#include "tests/support/env_number.h"

namespace flow::fuzz {
namespace {

using Random = std::mt19937_64;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr unsigned kHangS = 60;  // on a busy machine a reader takes some milliseconds
constexpr size_t kMostMemory = size_t{64} << 20;

// A few small changes of the kinds that find errors in parsers.
std::string mutated(std::string text, Random& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t changes = 1 + below(4);
  for (size_t change = 0; change < changes && !text.empty(); ++change) {
    const size_t at = below(text.size());
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.erase(at, 1 + below(8));
        break;
      case 4:
        text.insert(at, text.substr(below(text.size()), 1 + below(16)));
        break;
      case 5:
        text.insert(at, below(2) == 0 ? "-9223372036854775808" : "1e999");
        break;
      default:
        text.replace(at, 1, 1 + below(3), "{}[]\",:0"[below(8)]);
        break;
    }
  }
  return text;
}

// A document with one value replaced by another value of the document or by an unusual one. Unlike
// changed bytes it is JSON again, so that the reader looks at its content.
std::string mutated_json(const Json& document, Random& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const Json values = document.flatten();
  const auto any = [&] {
    return std::next(values.begin(), static_cast<long>(below(values.size())));
  };
  const std::vector<Json> unusual = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     INT64_MAX,
                                     INT64_MIN,
                                     1e300,
                                     UINT64_MAX,
                                     "",
                                     "\x01/../",
                                     0.5,
                                     Json::array(),
                                     Json::object(),
                                     Json::array({Json::array({1, "a"})})};
  Json changed = document;
  for (size_t change = 1 + below(2); change > 0; --change) {
    Json::json_pointer place(any().key());
    while (!place.empty() && below(4) == 0)
      place.pop_back();
    try {
      const Json value = below(3) == 0 ? *any() : unusual[below(unusual.size())];
      if (below(4) == 0 && !place.empty() && changed.at(place.parent_pointer()).is_object()) {
        changed.at(place.parent_pointer()).erase(place.back());
      } else {
        changed.at(place) = value;
      }
    } catch (const Json::exception&) {
      continue;  // an earlier change has removed the place
    }
  }
  return changed.dump();
}

extern "C" void end_hanging_reader(int /*signal*/) {
  constexpr std::string_view kText = "a reader takes longer than a minute\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  std::_Exit(1);
}

// While it exists, an allocation that would add more than kMostMemory to the process fails. The
// sanitizers reserve more than a limit allows; the fuzz targets have a limit of their own.
class MemoryLimit {
 public:
  MemoryLimit() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + kMostMemory;
    is_set_ = pages > 0 && setrlimit(RLIMIT_AS, &limit) == 0;
#endif
  }

  ~MemoryLimit() {
    if (is_set_) setrlimit(RLIMIT_AS, &before_);
  }

  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
  bool is_set_ = false;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = all_formats();
  return all;
}

class ParserFuzz : public testing::TestWithParam<size_t> {
 protected:
  ParserFuzz() { std::signal(SIGALRM, end_hanging_reader); }

  ~ParserFuzz() override { alarm(0); }

  const Format& format() const { return formats()[GetParam()]; }

  // Returns true if the bytes are refused.
  bool is_refused(const std::string& bytes, const std::string& what) const {
    alarm(kHangS);
    try {
      return !format().read(bytes);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " raised " << error.what();
      std::ofstream(testing::TempDir() + "refused_" + format().name, std::ios::binary) << bytes;
    }
    return true;
  }
};

TEST_P(ParserFuzz, ReadsOrRefusesChangedFiles) {
  for (const std::string& seed : format().seeds)
    ASSERT_FALSE(is_refused(seed, "a valid file"));
  const size_t first_seed = env_number("FLOW_TEST_SEED", 1);
  const size_t seconds = env_number("FLOW_TEST_SECONDS", 0);
  const size_t count = seconds > 0 ? SIZE_MAX : env_number("FLOW_TEST_CASES", 3000);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  Random random(first_seed);
  const MemoryLimit limit;

  size_t tried = 0, refused = 0;
  for (; tried < count && (seconds == 0 || Clock::now() < end) && !HasFailure(); ++tried) {
    const std::string& seed = format().seeds[tried % format().seeds.size()];
    const Json document = Json::parse(seed, nullptr, false);
    const bool is_json = document.is_structured() && !document.flatten().empty();
    const std::string bytes =
        is_json && tried / 2 % 2 == 0 ? mutated_json(document, random) : mutated(seed, random);
    refused += is_refused(bytes, "case " + std::to_string(tried)) ? 1 : 0;
  }

  RecordProperty("tried", std::to_string(tried));
  RecordProperty("refused", std::to_string(refused));
  if (format().share_refused < 0) {
    EXPECT_EQ(refused, 0U) << "of files that are all valid";
  } else {
    EXPECT_GT(static_cast<double>(refused), format().share_refused * static_cast<double>(tried));
  }
}

// As JSON values and lists of words may be nested.
TEST_P(ParserFuzz, DeepNestingDoesNotOverflowTheStack) {
  const std::string& seed = format().seeds.back();
  for (const char* opening : {"[", "{\"a\":", "("}) {
    std::string nested;
    for (int depth = 0; depth < 200'000; ++depth)
      nested += opening;
    for (const size_t at : {size_t{0}, seed.size() / 3, seed.size() / 2, seed.size()}) {
      const bool refused =
          is_refused(seed.substr(0, at) + nested + seed.substr(at), "deep nesting");
      EXPECT_TRUE(!refused || format().share_refused >= 0);
    }
  }
  if (const size_t colon = seed.find("\":"); colon != std::string::npos) {
    const std::string whole = std::string(200'000, '[') + std::string(200'000, ']');
    for (size_t at = colon; at != std::string::npos; at = seed.find("\":", at + 1)) {
      const size_t end = std::min(seed.find_first_of(",}", at), seed.size());
      is_refused(seed.substr(0, at + 2) + whole + seed.substr(end), "a deep value");
    }
  }
}

TEST(FuzzFormats, AreThoseThatTheSlowTestsName) {
  std::string names;
  for (const Format& format : formats())
    names += (names.empty() ? "" : " ") + format.name;

  EXPECT_EQ(names, FLOW_FUZZ_FORMATS);
}

INSTANTIATE_TEST_SUITE_P(Formats, ParserFuzz, testing::Range(size_t{0}, formats().size()),
                         [](const auto& suite) { return formats()[suite.param].name; });

}  // namespace
}  // namespace flow::fuzz

// Files are not trusted: whatever bytes they hold, a reader gives a value or a flow::Error.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "boxing/cost.h"
#include "graph/ir/ir.h"
#include "graph/ir/ir_text.h"
#include "graph/trace/tracer.h"
#include "nn/checkpoint_manifest.h"
#include "nn/data/cifar.h"
#include "nn/data/idx.h"
#include "nn/data/text.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "pipeline/schedule.h"
#include "pipeline/timeline_file.h"

namespace flow {
namespace {

using Random = std::mt19937_64;

// A few small changes of the kinds that find parsers out.
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

class ParserFuzz : public testing::Test {
 protected:
  ParserFuzz()
      : path_(std::filesystem::temp_directory_path() /
              ("flow_parser_fuzz_" + std::to_string(getpid()))) {}

  ~ParserFuzz() override { std::filesystem::remove(path_); }

  // Reads changed forms of `valid`, which reads. More than this share of them is refused.
  void run(const std::string& valid, const std::function<void(const std::string& bytes)>& read,
           double share_refused = 0.25) {
    ASSERT_NO_THROW(read(valid));
    const char* seed = std::getenv("FLOW_TEST_SEED");
    const char* cases = std::getenv("FLOW_TEST_CASES");
    Random random(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
    const int count = cases == nullptr ? 500 : std::atoi(cases);
    int refused = 0;
    for (int i = 0; i < count; ++i) {
      const std::string bytes = mutated(valid, random);
      try {
        read(bytes);
      } catch (const Error&) {
        ++refused;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "case " << i << " raised " << error.what();
      }
    }
    EXPECT_GT(refused, share_refused * count);
  }

  // The same through a file.
  void run_file(const std::string& valid, const std::function<void(const std::string&)>& read,
                double share_refused = 0.25) {
    const auto read_bytes = [&](const std::string& bytes) {
      std::ofstream(path_, std::ios::binary) << bytes;
      read(path_.string());
    };
    run(valid, read_bytes, share_refused);
  }

  std::filesystem::path path_;
};

TEST_F(ParserFuzz, Safetensors) {
  nn::save_safetensors(path_.string(),
                       {{"a.weight", ones({2, 3})}, {"b", zeros({4}, {.dtype = int64})}},
                       {{"key", "value"}});
  run_file(nn::read_text(path_.string()),
           [](const std::string& path) { nn::load_safetensors(path); });
}

TEST_F(ParserFuzz, Npy) {
  nn::save_npy(path_.string(), arange(6).reshape({2, 3}));
  run_file(nn::read_text(path_.string()), [](const std::string& path) { nn::load_npy(path); });
}

TEST_F(ParserFuzz, Npz) {
  for (const bool compressed : {false, true}) {
    nn::save_npz(path_.string(), {{"a", ones({2, 3})}, {"b", zeros({4}, {.dtype = int64})}},
                 {.compressed = compressed});
    run_file(nn::read_text(path_.string()), [](const std::string& path) { nn::load_npz(path); });
  }
}

TEST_F(ParserFuzz, CheckpointManifest) {
  const nn::CheckpointTensor tensor{.dtype = float32,
                                    .shape = {4, 3},
                                    .slices = {{.box = {{0, 0}, {2, 3}}, .file = 0, .offset = 80},
                                               {.box = {{2, 0}, {2, 3}}, .file = 1, .offset = 80}}};
  const nn::Manifest manifest{
      .step = 7,
      .id = "0123",
      .world_size = 2,
      .metadata = {{"epoch", "1"}},
      .generator = {},
      .files = {{"rank-00000.safetensors", 104, {1}}, {"rank-00001.safetensors", 104, {2}}},
      .tensors = {{"w", tensor}}};
  run(nn::to_text(manifest), [](const std::string& text) { nn::parse_manifest(text, "fuzzed"); });
}

TEST_F(ParserFuzz, Idx) {
  const std::string labels = path_.string() + ".labels";
  data::write_idx(data::generate_digits(2, 1), path_.string(), labels);
  run_file(nn::read_text(path_.string()),
           [&](const std::string& path) { data::read_idx(path, labels); });
  std::filesystem::remove(labels);
}

TEST_F(ParserFuzz, Graph) {
  const Tensor x = ones({2, 3}), w = ones({3, 2});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  const graph::TracedStep step = trace.finish({matmul(tx, w).sum({1}) * 2.0});
  run(to_string(step.graph), [](const std::string& text) { graph::parse_graph(text, op_table()); });
}

TEST_F(ParserFuzz, Schedule) {
  run("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n",
      [](const std::string& text) { pipeline::parse_schedule(text); });
}

TEST_F(ParserFuzz, Layouts) {
  run("(S(0), B)", [](const std::string& text) { NdSbp::parse(text); });
}

TEST_F(ParserFuzz, CostTable) {
  run(to_string(boxing::kCostTable),
      [](const std::string& text) { boxing::parse_cost_table(text, "fuzzed"); });
}

TEST_F(ParserFuzz, Timeline) {
  const pipeline::Schedule schedule =
      pipeline::parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  const std::vector<pipeline::StageCost> costs(2, {.forward = 2, .backward = 3});
  const pipeline::TimelineFile timeline = pipeline::simulated_timeline(schedule, "by hand", costs);
  run(to_json(timeline), [](const std::string& text) { pipeline::parse_timeline(text, "fuzzed"); });
  run(events_to_json(timeline.events),
      [](const std::string& text) { pipeline::parse_events(text, "fuzzed"); });
}

// Any bytes of a fitting size are tokens, so most files are valid.
TEST_F(ParserFuzz, Tokens) {
  for (const int64_t bytes : {2, 4, 8}) {
    data::write_tokens(path_.string(), {1, 2, 77, 100}, bytes);
    run_file(
        nn::read_text(path_.string()),
        [&](const std::string& path) {
          for (const int64_t token : data::read_tokens(path, bytes))
            EXPECT_GE(token, 0);
        },
        0.1);
  }
}

// Every file is valid, and each of its bytes is a token.
TEST_F(ParserFuzz, TokensOfOneByte) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string bytes = mutated("some tokens", random);
    std::ofstream(path_, std::ios::binary) << bytes;

    const std::vector<int64_t> tokens = data::read_tokens(path_, 1);

    EXPECT_EQ(std::string(tokens.begin(), tokens.end()), bytes);
  }
}

TEST_F(ParserFuzz, Cifar) {
  const std::filesystem::path folder = path_.string() + ".cifar";
  std::filesystem::create_directory(folder);
  std::string records;
  for (const char label : {'\3', '\6'})
    records += label + std::string(3072, 'x');
  run(records, [&](const std::string& bytes) {
    std::ofstream(folder / "test_batch.bin", std::ios::binary) << bytes;
    data::Cifar10(folder.string(), {.train = false});
  });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace flow

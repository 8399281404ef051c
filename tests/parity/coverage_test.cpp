// The golden op cases cover every op that flow-conform binds, every argument of it, and a call of
// it that PyTorch refuses.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/default_dtype.h"
#include "tests/parity/golden.h"
#include "tests/parity/op_tensors.h"
#include "tests/parity/uncovered.h"
#include "tools/flow_conform/op_command.h"

namespace flow::parity {
namespace {

using conform::ArgumentUse;
using Type = ArgumentUse::Type;

// What the cases of an op give for one argument.
struct Argument {
  // Notes what the case `id` gives.
  void add(const ArgumentUse& use, const std::string& id) {
    type = std::max(type, use.type);
    cases_of[use.value].insert(id);
    if (use.is_default) {
      has_default = true;
    } else {
      given_in.insert(id);
      values.insert(use.value);
    }
  }

  // True if a value has a sign, or none.
  bool has_sign(bool negative) const {
    return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      return (value.find('-') != std::string::npos) == negative;
    });
  }

  Type type = Type::kUnknown;
  std::map<std::string, std::set<std::string>> cases_of;  // ids by value; "": left out
  std::set<std::string> given_in;                         // ids with another value than the default
  std::set<std::string> values;                           // other values than the default
  bool has_default = false;                               // a case has the default value
};

struct Op {
  std::map<std::string, Argument> arguments;
  int64_t results = 0;
  int64_t refusals = 0;
};

// Names that are dims, which may be negative.
bool is_dim(const std::string& op, const std::string& argument) {
  static const std::set<std::string> dims = {"dim",    "dims",        "dim0",      "dim1",
                                             "dim2",   "axis0",       "axis1",     "dimension",
                                             "source", "destination", "start_dim", "end_dim"};
  return dims.contains(argument) && op != "tile";  // whose dims are counts
}

// The words that an argument accepts; empty: any text.
std::vector<std::string> words_of(const std::string& op, const std::string& argument) {
  if (argument == "reduction") {
    if (op == "kl_div") return {"mean", "sum", "none", "batchmean"};
    return {"mean", "sum", "none"};
  }
  if (argument == "padding_mode") return {"zeros", "border", "reflection"};
  if (argument == "rounding_mode") return {"floor", "trunc"};
  if (argument == "approximate") return {"none", "tanh"};
  if (argument == "indexing") return {"ij", "xy"};
  if (argument == "interpolation") return {"linear", "lower", "higher", "nearest", "midpoint"};
  if (argument == "reduce") {
    if (op == "scatter") return {"add", "multiply"};
    return {"sum", "prod", "mean", "amax", "amin"};
  }
  if (argument == "padding" && (op == "conv1d" || op == "conv2d" || op == "conv3d"))
    return {"same", "valid"};
  if (argument == "mode") {
    if (op == "pad") return {"constant", "reflect", "replicate", "circular"};
    if (op == "grid_sample") return {"bilinear", "nearest", "bicubic"};
    if (op == "embedding_bag") return {"sum", "mean", "max"};
    if (op == "qr") return {"reduced", "complete", "r"};
    return {"nearest", "linear", "bilinear", "bicubic", "trilinear", "area", "nearest-exact"};
  }
  return {};
}

// What the cases leave out of an argument; empty if they cover it.
std::string missing_of(const std::string& op, const std::string& name, const Argument& argument) {
  for (const std::string& word : words_of(op, name)) {
    const auto found = argument.cases_of.find('"' + word + '"');
    if (found == argument.cases_of.end() || found->second.size() < 2)
      return str("the word ", word, " in two cases");
  }
  if (argument.type == Type::kBool && !argument.has_default && argument.values.size() < 2)
    return "both values";
  if (argument.type == Type::kBool && argument.has_default && argument.given_in.empty())
    return "both values";
  if (argument.type == Type::kWord && !words_of(op, name).empty()) return "";
  if (argument.given_in.size() < 2) return "another value than the default in two cases";
  if (argument.type == Type::kBool || argument.type == Type::kTensor) return "";
  if (argument.values.size() < 2) return "two different values";
  if (!is_dim(op, name)) return "";
  if (!argument.has_sign(true)) return "a negative dim";
  return argument.has_sign(false) ? "" : "a dim that is not negative";
}

class OpCoverage : public testing::Test {
 protected:
  void SetUp() override { set_default_dtype(float64); }

  void TearDown() override { set_default_dtype(float32); }

  // The op whose cases count for the op of this name.
  static std::string main_name(const std::string& name) {
    const auto found = kOtherNames.find(name);
    return found == kOtherNames.end() ? name : found->second;
  }

  // Runs all cases and notes what they give.
  std::map<std::string, Op> run_cases() const {
    const Json spec = read_json("ops.json");
    const nn::StateDict golden = read_tensors("ops_golden.safetensors");
    std::map<std::string, Op> ops;
    conform::OpOptions options;
    options.run.floating = float64;
    options.on_arguments = [&](const Json& one, const std::vector<ArgumentUse>& uses) {
      for (const ArgumentUse& use : uses)
        ops[main_name(one["op"])].arguments[use.name].add(use, one["id"]);
    };
    for (const Json& one : spec["cases"]) {
      Op& op = ops[main_name(one["op"])];
      if (one.contains("differs")) continue;
      if (one.value("error", false)) {
        ++op.refusals;
        continue;
      }
      ++op.results;
      cased_.insert(one["op"].get<std::string>());
      conform::run_case(options, table_, one, tensors_of(golden, one["id"]));
    }
    return ops;
  }

  conform::Bindings table_ = conform::all_bindings();
  mutable std::set<std::string> cased_;  // names with a case that has results
};

TEST_F(OpCoverage, EveryArgumentHasTwoCases) {
  const std::map<std::string, Op> ops = run_cases();

  std::set<std::string> missing;
  for (const auto& [op_name, op] : ops) {
    for (const auto& [name, argument] : op.arguments) {
      const std::string what = missing_of(op_name, name, argument);
      const std::string key = op_name + '.' + name;
      if (what.empty()) continue;
      missing.insert(key);
      EXPECT_TRUE(kUncoveredArguments.contains(key)) << key << " needs " << what;
    }
  }
  for (const auto& [key, reason] : kUncoveredArguments)
    EXPECT_TRUE(missing.contains(key)) << key << " is covered: take it from the list";
  EXPECT_GE(ops.size(), 380U);
}

TEST_F(OpCoverage, EveryNameHasACaseAndEveryOpACallThatIsRefused) {
  const std::map<std::string, Op> ops = run_cases();

  for (const std::string& name : table_.ops()) {
    EXPECT_TRUE(cased_.contains(name)) << name << " has no case";
    const std::string main = main_name(name);
    const bool is_refused = ops.contains(main) && ops.at(main).refusals > 0;
    if (main == name) {
      EXPECT_NE(is_refused, kNeverRefused.contains(name))
          << name << (is_refused ? " is refused: take it from the list" : " has no refused call");
    }
  }
  for (const auto& [name, reason] : kNeverRefused)
    EXPECT_TRUE(ops.contains(name)) << name << " is no op";
}

}  // namespace
}  // namespace flow::parity

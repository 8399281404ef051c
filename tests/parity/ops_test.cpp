// The op cases that make_op_golden.py computed, through the bindings of flow-conform.
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/default_dtype.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/parity/golden.h"
#include "tests/parity/op_tensors.h"
#include "tools/flow_conform/op_command.h"

namespace flow::parity {
namespace {

constexpr double kLimit = 1e-10;

class OpParity : public testing::Test {
 protected:
  void SetUp() override {
    options_.run.floating = float64;
    set_default_dtype(float64);
  }

  void TearDown() override { set_default_dtype(float32); }

  nn::StateDict tensors_of(const std::string& id) const { return parity::tensors_of(golden_, id); }

  void check(const Json& spec) const {
    const std::string id = spec["id"];
    const nn::StateDict tensors = tensors_of(id);
    const nn::StateDict got = conform::run_case(options_, table_, spec, tensors);
    size_t num_results = 0;
    for (const auto& [name, wanted] : tensors) {
      if (name.starts_with("in.") || name.starts_with("gout.")) continue;
      ++num_results;
      ASSERT_TRUE(got.contains(id + '/' + name)) << id << ' ' << name;
      const Tensor& value = got.at(id + '/' + name);
      EXPECT_EQ(value.shape(), wanted.shape()) << id << ' ' << name;
      EXPECT_EQ(value.dtype(), wanted.dtype()) << id << ' ' << name;
      const double limit = is_floating(wanted.dtype()) ? spec.value("limit", kLimit) : 0;
      EXPECT_LE(relative_distance(value.to_vector<double>(), wanted.to_vector<double>()), limit)
          << id << ' ' << name << ' ' << spec["attrs"];
    }
    EXPECT_EQ(num_results, got.size()) << id;
  }

  // A case whose results flow computes. One that `differs` has a reason why flow computes what
  // PyTorch refuses, or refuses what PyTorch computes.
  static bool has_results(const Json& spec) {
    return !spec.value("error", false) && !spec.contains("differs");
  }

  void expect_all_raise() const {
    for (const Json& spec : spec_["cases"]) {
      // view() of a global tensor looks at shapes alone.
      const bool is_of_strides = spec["id"] == "view_2" && !options_.layout.empty();
      // A trace has no offsets to look at.
      const bool is_of_values = spec["id"] == "embedding_bag_20" && options_.in_graph;
      if (is_of_strides || is_of_values) continue;
      if (spec.value("error", false) == spec.contains("differs")) continue;
      Json raising = spec;
      raising["error"] = true;  // keeps the inputs whole on every rank
      EXPECT_THROW(conform::run_case(options_, table_, raising, tensors_of(spec["id"])),
                   InvalidArgument)
          << spec["id"];
    }
  }

  Json spec_ = read_json("ops.json");
  nn::StateDict golden_ = read_tensors("ops_golden.safetensors");
  conform::Bindings table_ = conform::all_bindings();
  conform::OpOptions options_;
};

TEST_F(OpParity, ResultsAndGradientsAreThoseOfPyTorch) {
  ASSERT_GE(spec_["cases"].size(), 2500U);
  for (const Json& spec : spec_["cases"]) {
    if (!has_results(spec)) continue;
    try {
      check(spec);
    } catch (const std::exception& error) {
      ADD_FAILURE() << spec["id"] << ' ' << spec["attrs"] << ": " << error.what();
    }
  }
}

TEST_F(OpParity, GlobalTensorsInRandomLayoutsGiveTheSame) {
  options_.layout = "random";
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [&] {
      set_default_dtype(float64);
      for (const Json& spec : spec_["cases"]) {
        if (has_results(spec)) check(spec);
      }
    });
  }
}

// Ops and cases whose results have shapes that depend on data: masks, and classes that are counted.
const std::set<std::string> kUntraced = {
    "argwhere", "bincount", "masked_select", "nonzero",     "unique",   "unique_consecutive",
    "slice_14", "slice_15", "slice_16",      "index_put_3", "one_hot_2"};

bool is_untraced(const Json& spec) {
  // The largest degree in a tensor says how many steps a polynomial takes.
  const bool has_degrees =
      spec["op"].get<std::string>().find("_polynomial_") != std::string::npos &&
      spec["inputs"].size() == 2;
  return has_degrees || kUntraced.contains(spec["op"]) || kUntraced.contains(spec["id"]);
}

TEST_F(OpParity, GraphsGiveTheSame) {
  options_.in_graph = true;
  for (const Json& spec : spec_["cases"]) {
    if (!has_results(spec)) continue;
    if (is_untraced(spec)) {
      EXPECT_THROW(check(spec), conform::NotSupported) << spec["id"];
    } else {
      check(spec);
    }
  }
}

TEST_F(OpParity, GraphsOfGlobalTensorsInRandomLayoutsGiveTheSame) {
  options_.in_graph = true;
  options_.layout = "random";
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [&] {
      set_default_dtype(float64);
      for (const Json& spec : spec_["cases"]) {
        if (has_results(spec) && !is_untraced(spec)) check(spec);
      }
    });
  }
}

// What a user calls to run the op of a case.
std::string called(const std::string& op) {
  static const std::map<std::string, std::string> names = {
      {"bce", "binary_cross_entropy"},
      {"bce_with_logits", "binary_cross_entropy_with_logits"},
      {"fft_abs", "abs"},
      {"fft_mul", "mul"},
      {"linalg_norm", "norm"},
      {"rsub", "sub"},
      {"sdpa", "scaled_dot_product_attention"},
      {"slice", "index"},
      {"unfold_dim", "unfold"}};
  const auto found = names.find(op);
  if (found != names.end()) return found->second;
  return op.starts_with("linalg_") ? op.substr(7) : op;
}

// The line of a binding of flow-conform stands for the line of a user.
TEST_F(OpParity, RaisesWithTheLineAndTheNameOfTheCall) {
  for (const Json& spec : spec_["cases"]) {
    if (!spec.value("error", false) || spec.contains("differs")) continue;
    try {
      conform::run_case(options_, table_, spec, tensors_of(spec["id"]));
    } catch (const InvalidArgument& error) {
      EXPECT_TRUE(std::string_view(error.site().file()).find("flow_conform/") !=
                  std::string_view::npos)
          << spec["id"] << ": " << error.what();
      EXPECT_TRUE(error.message().starts_with('[' + called(spec["op"]) + "] "))
          << spec["id"] << ": " << error.what();
    }
  }
}

TEST_F(OpParity, RaisesWherePyTorchRaises) {
  expect_all_raise();
  options_.in_graph = true;
  expect_all_raise();
}

TEST_F(OpParity, CallsThatAreRefusedByPyTorchAloneGiveResults) {
  for (const Json& spec : spec_["cases"]) {
    if (!spec.value("error", false) || !spec.contains("differs")) continue;
    EXPECT_NO_THROW(conform::run_case(options_, table_, spec, tensors_of(spec["id"])))
        << spec["id"];
  }
}

TEST_F(OpParity, GlobalTensorsRaiseWherePyTorchRaisesOnEveryRank) {
  options_.layout = "random";
  run_ranks(2, [&] {
    set_default_dtype(float64);
    expect_all_raise();
  });
}

TEST_F(OpParity, WhatTheLibraryLacksIsSaid) {
  const Json unknown_argument = {
      {"id", "a"}, {"op", "relu"}, {"attrs", {{"slope", 1}}}, {"inputs", {{{"name", "x"}}}}};
  const Json unknown_op = {{"id", "b"}, {"op", "no_such_op"}};
  const nn::StateDict tensors = tensors_of("relu_1");

  EXPECT_THROW(conform::run_case(options_, table_, unknown_argument, tensors),
               conform::NotSupported);
  EXPECT_THROW(conform::run_case(options_, table_, unknown_op, tensors), conform::NotSupported);
}

TEST_F(OpParity, ResultsAndTheirGradientsGoByTheNamesInTheCase) {
  const Json spec = {{"id", "named"},
                     {"op", "max"},
                     {"attrs", {{"dim", 0}}},
                     {"inputs", Json::array({{{"name", "x"}}})},
                     {"outputs", Json::array({{{"name", "y"}}, {{"name", "where"}}})},
                     {"grads", {"x"}}};
  nn::StateDict tensors{{"in.x", tensor({1.0, 3.0, 2.0})}, {"gout.y", tensor(5.0)}};

  const nn::StateDict results = conform::run_case(options_, table_, spec, tensors);

  EXPECT_EQ(results.at("named/out.y").item<double>(), 3);
  EXPECT_EQ(results.at("named/out.where").item<int64_t>(), 1);
  EXPECT_EQ(results.at("named/grad.x").to_vector<double>(), (std::vector<double>{0, 5, 0}));

  tensors.emplace("gout.z", tensor(1.0));
  EXPECT_THROW(conform::run_case(options_, table_, spec, tensors), conform::BadSpec);
}

}  // namespace
}  // namespace flow::parity

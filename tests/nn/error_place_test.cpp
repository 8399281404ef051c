// Errors say where: what() begins with the user's line and the module path.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

struct Seen {
  std::string what;
  std::string message;
  std::string module_path;
  uint32_t line = 0;
};

Seen error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.site().file()), __FILE__);
    return {error.what(), error.message(), error.module_path(), error.site().line()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// The beginning of a message about a line of this file.
std::string at(uint32_t line, const std::string& module_path, const std::string& component) {
  const std::string where = module_path.empty() ? "" : str(", in ", module_path);
  return str(__FILE__, ':', line, where, ": [", component, "] ");
}

// The same without the component, which may be the op or the tensor.
std::string here(uint32_t line) {
  return str(__FILE__, ':', line, ": [");
}

void expect_starts(const Seen& seen, const std::string& start) {
  EXPECT_EQ(seen.what.substr(0, start.size()), start) << seen.what;
}

TEST(ErrorPlace, IsTheLineOfAnOp) {
  const Tensor x = ones({2, 3});

  const Seen shapes = error_of([&] { matmul(x, x); });
  expect_starts(shapes, at(__LINE__ - 1, "", "matmul"));
  EXPECT_EQ(shapes.what, str(__FILE__, ':', shapes.line, ": ", shapes.message));
  EXPECT_EQ(shapes.module_path, "");

  // Before dispatch, in a kernel, in a composed function, and for an undefined tensor.
  expect_starts(error_of([&] { x.narrow(0, 1, 9); }), at(__LINE__, "", "narrow"));
  expect_starts(error_of([&] { embedding(tensor({7}), x); }), at(__LINE__, "", "embedding"));
  const Seen composed = error_of([&] { cosine_similarity(x, ones({7, 5})); });
  expect_starts(composed, at(__LINE__ - 1, "", "cosine_similarity"));
  expect_starts(error_of([&] { linear(Tensor(), x); }), here(__LINE__));
  expect_starts(error_of([&] { relu(Tensor()); }), here(__LINE__));
  expect_starts(error_of([&] { x + Tensor(); }), here(__LINE__));
  expect_starts(error_of([&] { zeros({-1}); }), here(__LINE__));
}

TEST(ErrorPlace, IsTheLineOfAQuestionAboutATensor) {
  const Tensor x = ones({2, 3});

  expect_starts(error_of([&] { x.size(2); }), at(__LINE__, "", "size"));
  expect_starts(error_of([&] { tensor(1.0).size(0); }), at(__LINE__, "", "size"));
  expect_starts(error_of([&] { tensor(1.0).size(-1); }), at(__LINE__, "", "size"));
  expect_starts(error_of([&] { x.stride(-3); }), at(__LINE__, "", "stride"));
  expect_starts(error_of([&] { x.data<double>(); }), at(__LINE__, "", "data"));
  expect_starts(error_of([&] { tensor(1).requires_grad_(); }),
                at(__LINE__ - 1, "", "requires_grad_"));
  expect_starts(error_of([&] { (x.requires_grad_() * 2).requires_grad_(false); }),
                at(__LINE__ - 1, "", "requires_grad_"));
}

TEST(ErrorPlace, IsTheLineOfAWord) {
  const Tensor x = ones({1, 1, 3, 3});

  expect_starts(error_of([&] { conv2d(x, x, {.padding = "sma"}); }), at(__LINE__, "", "padding"));
  expect_starts(error_of([&] { linalg::matrix_norm(x, {.ord = "frob"}); }),
                at(__LINE__ - 1, "", "MatrixOrd"));
}

// The word becomes a MatrixOrd in <optional>, which knows no line of the user.
TEST(ErrorPlace, IsNoLineOfAStandardHeader) {
  try {
    linalg::norm(ones({2, 2}), {.ord = "frob"});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find("[MatrixOrd]"), 0U) << error.what();
  }
}

TEST(ErrorPlace, IsTheLineOfAnOptimizer) {
  const Tensor w = ones({2}).requires_grad_();

  expect_starts(error_of([&] { optim::SGD({w}, {.lr = -1}); }), at(__LINE__, "", "SGD"));
  optim::AdamW adamw({w});
  const Tensor v = ones({2}).requires_grad_();
  const auto add = [&] { adamw.add_param_group({{v}, {.eps = -1}}); };
  expect_starts(error_of(add), at(__LINE__ - 1, "", "AdamW"));
}

struct Mlp : nn::Module<Mlp> {
  nn::Linear c_fc{register_module("c_fc", nn::Linear(3, 4))};

  Tensor forward(const Tensor& x) { return c_fc(x); }  // kMlpLine
};

constexpr uint32_t kMlpLine = __LINE__ - 3;

struct Block : nn::Module<Block> {
  Mlp mlp{register_module("mlp", Mlp())};

  Tensor forward(const Tensor& x) { return mlp(x); }
};

struct Model : nn::Module<Model> {
  nn::ModuleList<Block> blocks{register_module("blocks", nn::ModuleList<Block>())};

  Model() {
    blocks.push_back(Block());
    blocks.push_back(Block());
  }

  Tensor forward(const Tensor& x) { return blocks[1](x); }
};

TEST(ErrorPlace, HasThePathOfTheModule) {
  Model model;

  const Seen seen = error_of([&] { model(ones({2, 5})); });

  expect_starts(seen, at(kMlpLine, "blocks.1.mlp.c_fc", "linear"));
  EXPECT_EQ(seen.module_path, "blocks.1.mlp.c_fc");
  // The scope has ended with the error.
  expect_starts(error_of([&] { relu(Tensor()); }), here(__LINE__));
}

TEST(ErrorPlace, OfAGraphIsThatOfTheTracedLine) {
  struct Step : nn::Graph<Step> {
    Model model;

    Tensor build(const Tensor& x) { return model(x); }
  };

  Step step;

  expect_starts(error_of([&] { step(ones({2, 5})); }), at(kMlpLine, "blocks.1.mlp.c_fc", "linear"));
}

// An embedding refuses an index when it runs, which is after the trace.
struct Lookup : nn::Module<Lookup> {
  nn::Embedding table{register_module("table", nn::Embedding(4, 2))};

  Tensor forward(const Tensor& x) { return table(x); }
};

constexpr uint32_t kLookupLine = __LINE__ - 3;

struct LookupStep : nn::Graph<LookupStep> {
  Lookup model;

  Tensor build(const Tensor& x) { return model(x); }
};

TEST(ErrorPlace, OfACompiledStepIsThatOfTheNode) {
  LookupStep step;
  step(tensor({1, 2}));

  const Seen seen = error_of([&] { step(tensor({1, 9})); });

  expect_starts(seen, at(kLookupLine, "table", "embedding"));
}

TEST(ErrorPlace, OfBackwardIsTheLineOfTheForward) {
  struct Squared : nn::Module<Squared> {
    Tensor w{register_parameter("w", ones({3}))};

    Tensor forward(const Tensor& x) {
      const Tensor y = x * w;
      return y.square();
    }
  };

  struct Root : nn::Module<Root> {
    Squared inner{register_module("inner", Squared())};

    Tensor forward(const Tensor& x) { return inner(x); }
  };

  Root root;
  const uint32_t line = __LINE__ - 12;
  const Tensor y = root(ones({3}).requires_grad_());
  {
    const NoGradGuard no_grad;
    root.inner.w.add_(1);  // the multiplication has saved it
  }

  const Seen seen = error_of([&] { y.sum().backward(); });

  expect_starts(seen, at(line, "inner", "mul"));
}

struct Failing : Function<Failing> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x * 2; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {matmul(dy[0], ones({7, 7}))};  // kBackwardLine
  }
};

constexpr uint32_t kBackwardLine = __LINE__ - 4;

TEST(ErrorPlace, OfACustomBackwardIsItsOwnLineAndNamesTheForward) {
  const Tensor x = ones({3}).requires_grad_();
  const Tensor y = Failing::apply(x);
  const uint32_t forward = __LINE__ - 1;

  const Seen seen = error_of([&] { y.sum().backward(); });

  expect_starts(seen, at(kBackwardLine, "", "matmul"));
  EXPECT_NE(seen.what.find("; while computing the gradient of "), std::string::npos) << seen.what;
  EXPECT_NE(seen.what.find(str(__FILE__, ':', forward)), std::string::npos) << seen.what;
}

// The subclass survives, as code that catches it must still see it.
TEST(ErrorPlace, KeepsTheTypeOfTheError) {
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), InvalidArgument);

  struct Masked : nn::Graph<Masked> {
    Tensor build(const Tensor& x) { return masked_select(x, x.gt(0)); }
  };

  Masked masked;
  EXPECT_THROW(masked(ones({2})), Unsupported);
}

// A copy is independent of the original, as exceptions that threads pass on are.
TEST(ErrorPlace, IsAddedOnce) {
  InvalidArgument error("[op] no");
  const InvalidArgument copy = error;
  EXPECT_STREQ(error.what(), "[op] no");

  const Site first = Site::here();
  error.add_place(first);
  error.add_place(Site::here());
  error.add_text("; so it is");

  EXPECT_EQ(std::string(error.what()), str(__FILE__, ':', first.line(), ": [op] no; so it is"));
  EXPECT_EQ(error.message(), "[op] no; so it is");
  EXPECT_STREQ(copy.what(), "[op] no");
}

// What another rank is told names the place on the rank that failed.
TEST(ErrorPlace, IsToldToOtherRanks) {
  std::string told;
  uint32_t line = 0;
  const auto job = [&] {
    const Placement both("cpu", {0, 1});
    if (env::rank() == 0) {
      line = __LINE__ + 1;
      relu(Tensor());
    }
    try {
      ones({2}, {.placement = both, .sbp = sbp::split(0)}).sum().item();
    } catch (const DistributedError& error) {
      told = error.what();
      throw;
    }
  };

  EXPECT_THROW(run_ranks(2, job), InvalidArgument);

  EXPECT_NE(told.find(str(__FILE__, ':', line, ": [")), std::string::npos) << told;
}

}  // namespace
}  // namespace flow

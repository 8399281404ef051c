// Tensors that a trace captures from outside: their strides, shared memory and views.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

TEST(GraphCaptures, StridedTensorsFromOutsideKeepTheirValues) {
  struct Reads : nn::Graph<Reads> {
    Tensor w;

    Tensor build(const Tensor& x) { return x + w; }
  };

  manual_seed(6);
  const Tensor base = randn({4, 6}), x = randn({4, 4});
  const std::vector<Tensor> views{base.slice(1, 1, 5), base.t().slice(0, 0, 4), base.select(1, 2),
                                  base.slice(1, 0, 1).expand({4, 4}),
                                  base.slice(0, 1, 4, 2).slice(0, 0, 1).slice(1, 0, 4)};
  for (const Tensor& view : views) {
    SCOPED_TRACE(str(view.meta()));
    Reads graph;
    graph.w = view;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(graph(x).to_vector<float>(), (x + view).to_vector<float>());
      base.add_(1);
    }
  }
}

// Trains `weight`, which `model` uses as `used`.
struct TrainWeight : nn::Graph<TrainWeight> {
  std::function<Tensor(const Tensor& x)> model;

  TrainWeight(std::function<Tensor(const Tensor& x)> m, optim::Optimizer& optimizer)
      : model(std::move(m)) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = model(x).square().mean();
    loss.backward();
    return loss;
  }
};

struct Weights {
  const char* name;
  std::function<std::vector<Tensor>()> make;  // parameters
  std::function<Tensor(const std::vector<Tensor>&, const Tensor&)> model;
};

TEST(GraphCaptures, TrainsWeightsThatShareMemoryOrAreStrided) {
  const auto leaf = [] { return randn({3, 3}).requires_grad_(); };
  const std::vector<Weights> cases{
      {"a transposed parameter",
       [] {
         return std::vector{randn({3, 3}).t().requires_grad_()};
       },
       [](const auto& w, const Tensor& x) { return matmul(x, w[0]); }},
      {"a parameter beside its detached alias", [leaf] { return std::vector{leaf()}; },
       [](const auto& w, const Tensor& x) {
         return matmul(x, w[0].detach()) * 0.1 + matmul(x, w[0]);
       }},
      {"an alias made outside",
       [leaf] {
         const Tensor w = leaf();
         return std::vector{w, w.detach()};
       },
       [](const auto& w, const Tensor& x) { return matmul(matmul(x, w[1]), w[0]); }},
      {"a view made outside",
       [leaf] {
         const Tensor w = leaf();
         return std::vector{w, w.detach().t()};
       },
       [](const auto& w, const Tensor& x) { return matmul(matmul(x, w[1]), w[0]); }},
      {"a row of the weight",
       [leaf] {
         const Tensor w = leaf();
         return std::vector{w, w.detach().select(0, 1)};
       },
       [](const auto& w, const Tensor& x) { return matmul(x, w[0]) + w[1]; }},
      {"two parts of one tensor",
       [] {
         const Tensor all = randn({2, 3, 3});
         return std::vector{all.select(0, 0).detach().requires_grad_(),
                            all.select(0, 1).detach().requires_grad_()};
       },
       [](const auto& w, const Tensor& x) { return matmul(matmul(x, w[1]), w[0]); }},
  };
  for (const Weights& weights : cases) {
    SCOPED_TRACE(weights.name);
    const auto run = [&](bool compiled) {
      manual_seed(7);
      const std::vector<Tensor> tensors = weights.make();
      std::vector<Tensor> parameters;
      for (const Tensor& tensor : tensors) {
        if (tensor.requires_grad()) parameters.push_back(tensor);
      }
      optim::Adam optimizer(parameters, {.lr = 0.1});
      TrainWeight graph([&](const Tensor& x) { return weights.model(tensors, x); }, optimizer);
      std::vector<float> values;
      for (int step = 0; step < 3; ++step) {
        const Tensor x = randn({4, 3});
        if (compiled) {
          values.push_back(graph(x).item<float>());
          continue;
        }
        optimizer.zero_grad();
        values.push_back(graph.build(x).item<float>());
        optimizer.step();
      }
      for (const Tensor& tensor : tensors) {
        const auto own = tensor.to_vector<float>();
        values.insert(values.end(), own.begin(), own.end());
      }
      return values;
    };
    const std::vector<float> compiled = run(true), eager = run(false);
    ASSERT_EQ(compiled.size(), eager.size());
    for (size_t i = 0; i < eager.size(); ++i)
      EXPECT_NEAR(compiled[i], eager[i], 1e-5F) << i;
  }
}

TEST(GraphCaptures, AViewThatIsUsedAfterAWriteIsRefused) {
  struct Table : nn::Module<Table> {
    Tensor table{register_buffer("table", zeros({2, 2}))};

    Tensor forward(const Tensor& x) {
      table.add_(1);
      return x;
    }
  };

  struct Reads : nn::Graph<Reads> {
    Table net;
    Tensor row = net.table.t();

    Tensor build(const Tensor& x) { return net(x) + row; }
  };

  Reads graph;
  const std::string error = error_of<Error>([&] { graph(ones({2, 2})); });
  EXPECT_NE(error.find("shows the same memory"), std::string::npos) << error;
  EXPECT_NE(error.find("graph_captures_test.cpp:"), std::string::npos) << error;
}

}  // namespace
}  // namespace flow

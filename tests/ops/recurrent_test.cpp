#include "ops/linear/recurrent.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

void expect_near(const Tensor& y, const Shape& shape, const Doubles& wanted) {
  EXPECT_EQ(y.shape(), shape);
  expect_values(y, wanted, 1e-13);
}

// One batch of two for all cells; values of PyTorch 2.
struct Example {
  Tensor x = tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}}, {.dtype = float64});
  Tensor hidden = tensor({{0.1, -0.2}, {0.3, 0.4}}, {.dtype = float64});
  Tensor cell = tensor({{1.0, -1.0}, {0.5, 0.0}}, {.dtype = float64});
  Tensor weight_ih = (reshape(arange(24, {.dtype = float64}), {8, 3}) - 11) / 10;
  Tensor weight_hh = (reshape(arange(16, {.dtype = float64}), {8, 2}) - 7) / 10;
  Tensor bias_ih = arange(8, {.dtype = float64}) / 10;
  Tensor bias_hh = arange(8, {.dtype = float64}) / -20;
};

TEST(Recurrent, LstmCell) {
  const Example e;

  const auto [hidden, cell] =
      lstm_cell(e.x, {e.hidden, e.cell}, e.weight_ih, e.weight_hh, e.bias_ih, e.bias_hh);

  expect_near(
      hidden, {2, 2},
      {0.40491078014621285, -0.25038712299804083, 0.18405118136262394, 0.13260776594455786});
  expect_near(cell, {2, 2},
              {0.5338418206421862, -0.29017943452474304, 0.2617661145333851, 0.17112883929414452});
}

TEST(Recurrent, GruCell) {
  const Example e;
  const auto rows = [](const Tensor& t) { return t.narrow(0, 0, 6); };

  const Tensor y = gru_cell(e.x, e.hidden, rows(e.weight_ih), rows(e.weight_hh), rows(e.bias_ih),
                            rows(e.bias_hh));

  expect_near(y, {2, 2},
              {0.42974716472198715, 0.2947450175081855, 0.3098329737181437, 0.4712643139119166});
}

TEST(Recurrent, PlainCellsTakeSingleSamples) {
  const Example e;
  const Tensor w = e.weight_ih.narrow(0, 0, 2);
  const Tensor u = e.weight_hh.narrow(0, 0, 2);

  expect_near(rnn_tanh_cell(e.x, e.hidden, w, u), {2, 2},
              {-0.8617231593133063, -0.7013741309383125, -0.8004990217606297, -0.6695902596187708});
  expect_near(rnn_tanh_cell(e.x[0], e.hidden[0], w, u), {2},
              {-0.8617231593133063, -0.7013741309383125});
  expect_near(rnn_relu_cell(e.x[1], e.hidden[1], w, u), {2}, {0, 0});
}

TEST(Recurrent, WrongWeightsAreRefused) {
  const Example e;

  EXPECT_THROW(lstm_cell(e.x, {e.hidden, e.cell}, e.weight_ih.t(), e.weight_hh), InvalidArgument);
  EXPECT_THROW(gru_cell(e.x, e.hidden, e.weight_ih, e.weight_hh), InvalidArgument);
}

}  // namespace
}  // namespace flow

// Probability distributions: values of PyTorch 2.15 (torch.distributions, float64), moments of
// draws, and layouts.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "nn/distributions/categorical.h"
#include "nn/distributions/kl.h"
#include "nn/distributions/mixture.h"
#include "nn/distributions/normal.h"
#include "nn/graph.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using distributions::Bernoulli;
using distributions::Categorical;
using distributions::Dirichlet;
using distributions::Distribution;
using distributions::Gumbel;
using distributions::kl_divergence;
using distributions::MixtureSameFamily;
using distributions::Normal;
using distributions::Uniform;
using Doubles = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor doubles(const Doubles& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

Tensor rows(const Doubles& values, int64_t columns) {
  return tensor(values, {static_cast<int64_t>(values.size()) / columns, columns});
}

void expect_values(const Tensor& actual, const Doubles& expected) {
  const Doubles values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], 1e-12) << "element " << i;
    }
  }
}

const Doubles kLoc{0.5, -1.0, 2.0}, kScale{1.5, 0.25, 3.0}, kValues{0.1, -0.7, 5.0};
const Doubles kQuantiles{0.1, 0.5, 0.975};
const Doubles kOtherLoc{0.0, -0.5, 1.0}, kOtherScale{1.0, 0.5, 4.0};

TEST(Distributions, NormalEqualsPyTorch) {
  const Normal p(doubles(kLoc), doubles(kScale));

  expect_values(p.log_prob(doubles(kValues)),
                {-1.3599591968683926, -0.2526441720847823, -2.5175508218727822});
  expect_values(p.cdf(doubles(kValues)),
                {0.39486291046402516, 0.8849303297782918, 0.8413447460685429});
  expect_values(p.icdf(doubles(kQuantiles)), {-1.4223273483169012, -1.0, 7.879891953620163});
  expect_values(p.entropy(), {1.824403641312837, 0.0326441720847821, 2.5175508218727822});
  expect_values(p.mean(), kLoc);
  expect_values(p.variance(), {2.25, 0.0625, 9});
  expect_values(p.stddev(), kScale);
  expect_values(kl_divergence(p, Normal(doubles(kOtherLoc), doubles(kOtherScale))),
                {0.3445348918918356, 0.8181471805599453, 0.1001820724517809});
}

TEST(Distributions, GumbelEqualsPyTorch) {
  const Gumbel p(doubles(kLoc), doubles(kScale));

  expect_values(p.log_prob(doubles(kValues)),
                {-1.44440361350645, -0.11489985079231158, -2.466491729839552});
  expect_values(p.cdf(doubles(kValues)),
                {0.2710084786487892, 0.7399340547836063, 0.6922006275553465});
  expect_values(p.icdf(doubles(kQuantiles)),
                {-0.7510486678719341, -0.908371769854584, 13.028741773862501});
  expect_values(p.entropy(), {1.9826807730096971, 0.19092130378164218, 2.6758279535696428});
  expect_values(p.mean(), {1.3658234973522994, -0.8556960837746168, 3.7316469947045987});
  expect_values(p.variance(), {3.7011016504085092, 0.10280837917801415, 14.804406601634037});
  expect_values(kl_divergence(p, Gumbel(doubles(kOtherLoc), doubles(kOtherScale))),
                {0.18942842696754236, 0.81355389545854, 0.10914477182789217});
}

TEST(Distributions, UniformEqualsPyTorch) {
  const Uniform p(doubles({0, -1, 2}), doubles({1, 3, 2.5}), {.validate_args = false});
  const Uniform q(doubles({-1, 0, 2}), doubles({2, 3, 3}));

  expect_values(p.log_prob(doubles({0.25, 5, 2})), {0, -kInfinity, 0.6931471805599453});
  expect_values(p.cdf(doubles({0.25, 5, 2})), {0.25, 1, 0});
  expect_values(p.icdf(doubles(kQuantiles)), {0.1, 1, 2.4875});
  expect_values(p.entropy(), {0, 1.3862943611198906, -0.6931471805599453});
  expect_values(p.mean(), {0.5, 1, 2.25});
  expect_values(p.variance(), {0.08333333333333333, 1.3333333333333333, 0.020833333333333332});
  expect_values(kl_divergence(p, q), {1.0986122886681098, kInfinity, 0.6931471805599453});
}

// The values in float64; log(p) and log(1 - p) are tiny.
TEST(Distributions, BernoulliIsExactForSureOutcomes) {
  const Bernoulli p({.logits = tensor({20.F, 10.F, -10.F})});
  const auto expect_close = [](const Tensor& actual, const Doubles& expected) {
    const Doubles values = cast(actual, float64).to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(values[i], expected[i], 1e-5 * std::abs(expected[i])) << "element " << i;
  };
  expect_close(p.log_prob(tensor({1.F, 1.F, 0.F})), {-2.0611537e-9, -4.5398899e-5, -4.5398899e-5});
  expect_close(p.entropy(), {4.3284228e-8, 4.9937758e-4, 4.9937758e-4});
}

TEST(Distributions, BernoulliEqualsPyTorch) {
  const Bernoulli p({.probs = doubles({0.2, 0.9})});
  const Bernoulli q({.logits = doubles({0.3, -1.2})});

  expect_values(p.log_prob(doubles({1, 0})), {-1.6094379124341003, -2.302585092994046});
  expect_values(q.log_prob(doubles({1, 0})), {-0.5543552444685271, -0.2632824673380312});
  expect_values(p.entropy(), {0.5004024235381879, 0.3250829733914482});
  expect_values(q.entropy(), {0.6820224894250294, 0.54105272713921});
  expect_values(q.variance(), {0.24445831169074586, 0.1778944406468057});
  expect_values(kl_divergence(p, q), {0.29395282093033936, 1.0181994939465828});
}

TEST(Distributions, CategoricalEqualsPyTorch) {
  const Categorical p({.probs = rows({1, 2, 5, 3, 0, 1}, 3)});
  const Categorical q({.logits = rows({0.1, -0.3, 1, 2, 0.5, -1}, 3)});

  EXPECT_EQ(p.batch_shape(), Shape{2});
  expect_values(p.probs(), {0.125, 0.25, 0.625, 0.75, 0, 0.25});
  expect_values(p.log_prob(tensor({2, 0})), {-0.4700036292457356, -0.2876820724517809});
  expect_values(q.log_prob(tensor({{2, 0}, {1, 1}})), {-0.5182588007932105, -0.24131129665715711,
                                                       -1.8182588007932106, -1.7413112966571571});
  expect_values(p.entropy(), {0.9002560512685369, 0.5623351446188083});
  expect_values(q.entropy(), {0.9471810815289354, 0.6215846046792746});
  expect_values(kl_divergence(p, q), {0.05550274952467367, 0.4289761520383488});
  EXPECT_EQ(kl_divergence(q, p).to_vector<double>()[1], kInfinity);
}

TEST(Distributions, DirichletEqualsPyTorch) {
  const Dirichlet p(rows({0.5, 1.5, 3, 2, 2, 2}, 3));
  const Dirichlet q(rows({1, 1, 1, 0.7, 2.5, 4}, 3));

  EXPECT_EQ(p.batch_shape(), Shape{2});
  EXPECT_EQ(p.event_shape(), Shape{3});
  expect_values(p.log_prob(rows({0.2, 0.3, 0.5, 0.6, 0.1, 0.3}, 3)),
                {0.8497621374327371, 0.7701082216960735});
  expect_values(p.entropy(), {-1.8666572778318784, -0.9374917427820464});
  expect_values(p.mean(), {0.1, 0.3, 0.6, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  expect_values(p.variance(), {0.015, 0.035, 0.04, 0.031746031746031744, 0.031746031746031744,
                               0.031746031746031744});
  expect_values(kl_divergence(p, q), {1.173510097271933, 1.7079532491263458});
}

TEST(Distributions, MixturesEqualPyTorch) {
  const Categorical weights({.probs = doubles({1, 3})});
  const MixtureSameFamily p(weights, Normal(doubles({-1, 2}), doubles({0.5, 1.5})));
  const MixtureSameFamily q(weights, Dirichlet(rows({1, 2, 3, 2, 2, 2}, 3)));

  expect_values(p.log_prob(doubles({-1, 0, 2.5})),
                {-1.4851577027216456, -2.2164026206672354, -1.6676412692959681});
  expect_values(p.cdf(doubles({-1, 0, 2.5})),
                {0.1420625989611344, 0.31272088180735613, 0.7229189948633573});
  expect_values(p.mean(), {1.25});
  expect_values(p.variance(), {3.4375});
  expect_values(q.log_prob(doubles({0.2, 0.3, 0.5})), {1.3415584672784988});
  expect_values(q.mean(), {0.2916666666666667, 0.3333333333333333, 0.375});
  expect_values(q.variance(), {0.0339781746031746, 0.031746031746031744, 0.03794642857142857});
}

// Means and variances of 40,000 draws, within 5 of their standard errors.
void expect_moments(const Distribution& p) {
  constexpr int64_t kDraws = 40000;
  manual_seed(5);
  const Tensor draws = cast(p.sample({kDraws}), float64);
  const Doubles means = draws.mean(0).to_vector<double>();
  const Doubles variances = square(draws - draws.mean(0)).mean(0).to_vector<double>();
  const Doubles expected = p.mean().to_vector<double>();
  const Doubles spread = p.variance().to_vector<double>();

  ASSERT_EQ(means.size(), expected.size());
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_NEAR(means[i], expected[i], 5 * std::sqrt(spread[i] / kDraws)) << p.name();
    EXPECT_NEAR(variances[i], spread[i], 0.1 * spread[i]) << p.name();
  }
}

TEST(Distributions, DrawsHaveMeanAndVariance) {
  const Categorical weights({.probs = doubles({1, 3})});

  expect_moments(Normal(doubles(kLoc), doubles(kScale)));
  expect_moments(Uniform(doubles({0, -1}), doubles({1, 3})));
  expect_moments(Gumbel(doubles(kLoc), doubles(kScale)));
  expect_moments(Bernoulli({.probs = doubles({0.2, 0.9})}));
  expect_moments(Dirichlet(rows({0.3, 1.5, 3, 20, 2, 0.9}, 3)));
  expect_moments(MixtureSameFamily(weights, Normal(doubles({-1, 2}), doubles({0.5, 1.5}))));
  expect_moments(MixtureSameFamily(weights, Dirichlet(rows({1, 2, 3, 2, 2, 2}, 3))));
}

TEST(Distributions, ClassesAreDrawnInProportion) {
  manual_seed(6);
  const Categorical p({.probs = rows({1, 2, 5, 3, 0, 1}, 3)});

  const Tensor draws = p.sample({100, 200});

  EXPECT_EQ(draws.shape(), (Shape{100, 200, 2}));
  EXPECT_EQ(draws.dtype(), int64);
  EXPECT_NEAR(cast(eq(draws.select(2, 0), 2), float64).mean().item(), 0.625, 0.02);
  EXPECT_EQ(sum(eq(draws.select(2, 1), 1)).item<int64_t>(), 0);
}

TEST(Distributions, DrawsByReparametrisationHaveGradients) {
  const Tensor loc = doubles({1, 2}).requires_grad_(), scale = doubles({3, 4}).requires_grad_();

  manual_seed(7);
  const Tensor draws = Normal(loc, scale).rsample({5});
  draws.sum().backward();
  manual_seed(7);
  const Tensor standard = Normal(doubles({0, 0}), 1).rsample({5});

  expect_values(loc.grad(), {5, 5});
  expect_values(scale.grad() - standard.sum(0), {0, 0});
  EXPECT_FALSE(Normal(loc, scale).sample().requires_grad());
  EXPECT_THROW(Bernoulli({.probs = loc / 4}).rsample(), Unsupported);
}

TEST(Distributions, ParametersBroadcastAndMayBeNumbers) {
  const Normal p(0, 2);
  const Normal q(zeros({3, 1}), ones({4}));

  EXPECT_EQ(p.batch_shape(), Shape{});
  EXPECT_EQ(p.sample({6}).shape(), Shape{6});
  EXPECT_EQ(q.batch_shape(), (Shape{3, 4}));
  EXPECT_EQ(q.sample({2}).shape(), (Shape{2, 3, 4}));
}

// The part of the text that users need.
template <class Make>
void expect_refused(const Make& make, const std::string& part) {
  try {
    make();
    FAIL() << "nothing was thrown; expected " << part;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Distributions, WrongParametersAreRefused) {
  expect_refused([] { Normal(0, -1); }, "[Normal] scale must be positive");
  expect_refused([] { Uniform(2, 1); }, "[Uniform] low must be less than high");
  expect_refused([] { Bernoulli({.probs = doubles({1.5})}); }, "[Bernoulli] probs must be between");
  expect_refused([] { Categorical({.probs = doubles({0, 0})}); }, "[Categorical] probs must not");
  expect_refused([] { Categorical({}); }, "received neither");
  expect_refused([] { Dirichlet(doubles({1, 0})); }, "[Dirichlet] concentration must be positive");
  expect_refused(
      [] { MixtureSameFamily(Categorical({.probs = ones({3})}), Normal(zeros({2}), ones({2}))); },
      "one place for each class");
  expect_refused([] { Dirichlet(ones({3})).log_prob(ones({1})); }, "must be those of one draw");
  EXPECT_NO_THROW(Normal(0, -1, {.validate_args = false}));
  EXPECT_THROW(kl_divergence(Normal(0, 1), Uniform(0, 1)), Unsupported);
  EXPECT_THROW(Categorical({.probs = ones({3})}).cdf(zeros({1})), Unsupported);
}

// Draws, probabilities and gradients of global parameters are those of one rank.
// torch.distributions refuses the same values.
TEST(Distributions, ValuesThatCannotBeDrawnAreRefused) {
  const Uniform uniform(doubles({0}), doubles({1}));
  const Bernoulli coin({.probs = doubles({0.3})});
  const Categorical classes({.probs = doubles({0.3, 0.7})});
  const Dirichlet dirichlet(doubles({1, 2}));

  expect_refused(
      [] {
        Normal(0, 1).log_prob(tensor({NAN, 0.0}));
      },
      "[Normal] log_prob() takes real numbers; received values of shape (2,)");
  expect_refused([] { Gumbel(0, 1).log_prob(tensor({NAN})); }, "[Gumbel] log_prob() takes");
  expect_refused([&] { uniform.log_prob(doubles({1.5})); }, "takes numbers from low to high");
  expect_refused([&] { coin.log_prob(doubles({0.5})); }, "takes 0 and 1");
  expect_refused([&] { classes.log_prob(doubles({0.5})); }, "takes classes");
  expect_refused([&] { classes.log_prob(tensor({-1})); }, "takes classes");
  expect_refused([&] { classes.log_prob(tensor({2})); }, "takes classes");
  expect_refused([&] { dirichlet.log_prob(doubles({0.3, 0.6})); }, "whose sum is 1");
  expect_refused([&] { dirichlet.log_prob(doubles({-0.5, 1.5})); }, "whose sum is 1");
  expect_refused(
      [&] { MixtureSameFamily(Categorical({.probs = ones({1})}), uniform).log_prob(doubles({2})); },
      "[Uniform] log_prob() takes");
  EXPECT_EQ(uniform.log_prob(doubles({1})).item(), -kInfinity);
  EXPECT_EQ(Normal(0, 1).log_prob(tensor({kInfinity})).item(), -kInfinity);
}

TEST(Distributions, DrawsInLowPrecisionHaveALogProbability) {
  manual_seed(3);
  const Dirichlet dirichlet(ones({1000}, {.dtype = bfloat16}));
  EXPECT_TRUE(dirichlet.log_prob(dirichlet.sample({20})).isfinite().all().item<bool>());
}

TEST(Distributions, ManyRanksGiveOneRanksNumbers) {
  const auto compute = [](const Tensor& loc, const Tensor& probs) {
    manual_seed(8);
    const Normal normal(loc, 2);
    const Tensor draws = normal.rsample({3});
    const Categorical classes({.probs = probs});
    const Tensor chosen = classes.sample({2});
    const Tensor loss = normal.log_prob(draws.detach()).sum() + draws.sum() +
                        classes.log_prob(chosen).sum() +
                        kl_divergence(normal, Normal(zeros_like(loc), 1)).sum();
    return std::pair(draws, grad({loss}, {loc, probs}));
  };
  const auto make_loc = [] { return doubles({1, -2, 3, 0.5}).requires_grad_(); };
  const auto make_probs = [] { return rows({1, 2, 5, 3, 4, 1, 2, 2}, 2).requires_grad_(); };
  const auto [draws, gradients] = compute(make_loc(), make_probs());

  run_ranks(2, [&, draws = draws, gradients = gradients] {
    const Placement both("cpu", {0, 1});
    const auto split = [&](const Tensor& x) {
      return x.to_global({.placement = both, .sbp = sbp::broadcast})
          .to_global({.placement = both, .sbp = sbp::split(0)})
          .detach()
          .requires_grad_();
    };
    const auto [own_draws, own_gradients] = compute(split(make_loc()), split(make_probs()));

    expect_values(own_draws.full(), draws.to_vector<double>());
    for (size_t i = 0; i < gradients.size(); ++i)
      expect_values(own_gradients[i].full(), gradients[i].to_vector<double>());
  });
}

// A compiled step draws the numbers of the eager one.
TEST(Distributions, GraphsDrawWhatEagerModeDraws) {
  struct Step : nn::Graph<Step> {
    Tensor build(const Tensor& loc, const Tensor& logits) {
      const Normal normal(loc, 2);
      const Tensor draws = normal.rsample();
      const Categorical classes({.logits = logits});
      return normal.log_prob(draws).sum() + classes.log_prob(classes.sample()).sum() +
             Dirichlet(exp(logits)).sample().sum();
    }
  };

  const Tensor loc = doubles({1, -2, 3}), logits = rows({0.1, 0.2, -1, 2, 0, 0}, 2);
  Step graph;

  manual_seed(9);
  const double eager = graph.build(loc, logits).item();
  manual_seed(9);
  const double compiled = graph(loc, logits).item();

  EXPECT_EQ(compiled, eager);
}

// As masks of impossible actions make them; torch.distributions gives these numbers.
TEST(Distributions, ImpossibleClassesHaveNoGradient) {
  for (const double masked : {-kInfinity, -1e9}) {
    const Tensor logits = doubles({1, 2, masked}).requires_grad_();
    const Tensor entropy = Categorical({.logits = logits}).entropy();
    entropy.backward();
    EXPECT_NEAR(entropy.item(), 0.5822031, 1e-6);
    const auto gradient = logits.grad().to_vector<double>();
    EXPECT_NEAR(gradient[0], 0.1966119, 1e-6);
    EXPECT_NEAR(gradient[1], -0.1966119, 1e-6);
    EXPECT_EQ(gradient[2], 0);
  }
}

TEST(Distributions, SmallConcentrationsGiveNumbers) {
  manual_seed(1);
  const Tensor draws = Dirichlet(full({2}, 0.01)).sample({2000});
  EXPECT_TRUE(draws.isfinite().all().item<bool>());
  EXPECT_NEAR(draws.mean().item(), 0.5, 1e-5);
}

TEST(Distributions, DivergenceFromACertainCoinIsInfinite) {
  const auto coin = [](double p) { return Bernoulli({.probs = full({}, p)}); };
  EXPECT_EQ(kl_divergence(coin(0.5), coin(0)).item(), kInfinity);
  EXPECT_EQ(kl_divergence(coin(0.5), coin(1)).item(), kInfinity);
  EXPECT_NEAR(kl_divergence(coin(0), coin(0)).item(), 0, 1e-5);
  EXPECT_NEAR(kl_divergence(coin(1), coin(1)).item(), 0, 1e-5);
}

TEST(Distributions, DivergenceOfACertainCoinIsFinite) {
  const Bernoulli p({.logits = tensor({-kInfinity, 0.0, kInfinity})});
  const Bernoulli q({.logits = tensor({0.5, 0.5, 0.5})});
  const std::vector<double> divergences = kl_divergence(p, q).to_vector<double>();
  EXPECT_NEAR(divergences[0], 0.974077, 1e-5);
  EXPECT_NEAR(divergences[1], 0.030930, 1e-5);
  EXPECT_NEAR(divergences[2], 0.474077, 1e-5);
}

TEST(Distributions, ClassesHaveNoMeanOnEveryLayout) {
  run_ranks(2, [] {
    const Tensor logits =
        zeros({4, 3}, {.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    const Tensor mean = Categorical({.logits = logits}).mean();
    EXPECT_TRUE(mean.is_global());
    EXPECT_EQ(mean.shape(), Shape({4}));
    EXPECT_TRUE(mean.isnan().all().item<bool>());
  });
}

}  // namespace

}  // namespace flow

#include "ops/reduce/statistics.h"

#include <limits>

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples statistics_samples() {
  Samples samples = {
      {"logsumexp", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { logsumexp(x[0]); }},
      {"logsumexp",
       {in({5, 2})},
       kFloats,
       [](const Inputs& x) { logsumexp(x[0], 0, {.keepdim = true}); },
       "dim 0"},
  };
  for (const double p : {2.0, 1.0, 3.0}) {
    samples.push_back({"norm",
                       {specials({40, 30})},
                       kFloats,
                       [p](const Inputs& t) { norm(t[0], {.p = p, .dim = -1}); },
                       str("p = ", p, " specials")});
    samples.back().only_kernels = true;
  }
  for (const double p : {2.0, 1.0, 3.0, 0.5, std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(), 0.0}) {
    samples.push_back({"norm",
                       {kinked({5, 3}, {0})},
                       kFloats,
                       [p](const Inputs& t) { norm(t[0], {.p = p}); },
                       str("p = ", p)});
    samples.push_back({"norm",
                       {kinked({5, 3}, {0})},
                       kFloats,
                       [p](const Inputs& t) { norm(t[0], {.p = p, .dim = 0, .keepdim = true}); },
                       str("p = ", p, " along 0")});
    if (p == 0) samples.back().is_general = false;  // every element contributes
    samples.push_back({"norm",
                       {in({130, 170})},
                       kFloats,
                       [p](const Inputs& t) { norm(t[0], {.p = p, .dim = 1}); },
                       str("p = ", p, " many")});
    samples.back().only_kernels = true;
  }
  samples.push_back({"norm",
                     {sparse({5, 3}, 0.4)},
                     kFloats,
                     [](const Inputs& x) { norm(x[0], {.p = 0, .dim = 0}); },
                     "p = 0, zeros"});
  samples.back().constant_inputs = 1;
  for (const int64_t dim : {0, -1}) {
    samples.push_back({"logsumexp",
                       {specials({40, 30})},
                       kFloats,
                       [dim](const Inputs& x) { logsumexp(x[0], dim); },
                       str("specials along ", dim)});
    samples.back().only_kernels = true;
  }
  for (const int64_t dim : {0, 1}) {
    samples.push_back({"logsumexp",
                       {in({130, 170})},
                       kFloats,
                       [dim](const Inputs& x) { logsumexp(x[0], dim); },
                       str("many along ", dim)});
    samples.back().only_kernels = true;
  }
  return samples;
}

}  // namespace flow::contract

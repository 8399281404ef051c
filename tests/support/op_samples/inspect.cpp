#include "nn/graphs/inspect.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

Samples inspect_samples() {
  return {
      {"graph_print", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { graph_print(x[0], "x"); }},
      {"check_finite", {in({5, 2})}, kAllDTypes, [](const Inputs& x) { check_finite(x[0], "x"); }},
  };
}

}  // namespace flow::contract

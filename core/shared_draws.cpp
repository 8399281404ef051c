#include "core/shared_draws.h"

#include <utility>

namespace flow {

namespace {
constinit thread_local bool shares_draws = false;
}

SharedDraws::SharedDraws() : outer_(std::exchange(shares_draws, true)) {}

SharedDraws::~SharedDraws() {
  shares_draws = outer_;
}

bool SharedDraws::are_on() {
  return shares_draws;
}

}  // namespace flow

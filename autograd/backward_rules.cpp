#include "autograd/backward_rules.h"

#include <utility>

#include "core/error.h"

namespace flow::autograd {

namespace {
constinit thread_local const BackwardRules* active = nullptr;
}  // namespace

BackwardRulesGuard::BackwardRulesGuard(BackwardRules rules) : rules_(std::move(rules)) {
  FLOW_ASSERT(active == nullptr, "backward rules are set while other rules are active");
  active = &rules_;
}

BackwardRulesGuard::~BackwardRulesGuard() {
  active = nullptr;
}

const BackwardRules* active_backward_rules() {
  return active;
}

}  // namespace flow::autograd

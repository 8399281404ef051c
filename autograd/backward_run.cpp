#include "autograd/backward_run.h"

#include <algorithm>
#include <string>

#include "autograd/anomaly.h"
#include "autograd/backward_rules.h"
#include "autograd/layout.h"
#include "autograd/recompute_region.h"
#include "core/calls/autocast_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/unary.h"

namespace flow::autograd {

namespace {

constinit thread_local BackwardRun* current_run = nullptr;
constinit thread_local uint64_t num_runs = 0;

bool runs_later(const Node* a, const Node* b) {
  return a->sequence() < b->sequence();
}

// The thread's state during a run: ops of gradient rules report the site and scope of their
// forward, and a PlacementGuard or AutocastGuard around backward() does not affect them.
class RunScope {
 public:
  // `site` is the line that called backward.
  RunScope(bool create_graph, Site site)
      : state_(thread_state()),
        site_(site),
        grad_enabled_(std::exchange(state_.grad_enabled, create_graph)),
        phase_(std::exchange(state_.phase, Phase::kBackward)),
        region_(std::exchange(active_region, nullptr)),
        placement_(std::exchange(state_.default_placement, {})),
        sbp_(std::exchange(state_.default_sbp, {})),
        as_given_(nullptr),
        outer_(NodeScope::current(Site::none())) {}

  ~RunScope() {
    enter(outer_);
    state_.scope_site = outer_.user_site();
    state_.grad_enabled = grad_enabled_;
    state_.phase = phase_;
    active_region = region_;
    state_.default_placement = placement_;
    state_.default_sbp = sbp_;
  }

  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  // Leaves have no line of their own.
  void enter(const NodeScope& scope) {
    const Site site = scope.user_site();
    state_.scope_site = site.is_known() ? site : site_;
    state_.module_path = scope.module_path;
    state_.stage = scope.stage;
  }

  // After the last node.
  void leave_nodes() { state_.scope_site = site_; }

 private:
  ThreadState& state_;
  Site site_;
  bool grad_enabled_;
  Phase phase_;
  RecomputeRegion* region_;
  Placement placement_;
  NdSbp sbp_;
  AutocastScope as_given_;
  NodeScope outer_;
};

// Extends an error of a gradient rule or a hook by the op that was recorded, and by its place
// unless the error has one.
void add_context(Error& error, const Node& node) {
  static constexpr std::string_view kContext = "; while computing the gradient of ";
  const Site forward = node.scope().user_site();
  error.add_place(forward, node.scope().module_path);
  if (error.message().find(kContext) != std::string::npos) return;  // an inner run added it
  const Site site = error.site();
  const bool is_same =
      site.line() == forward.line() && std::string_view(site.file()) == forward.file();
  error.add_text(str(kContext, is_same ? node.name() : node.describe()));
}

// Collective for a gradient of a global tensor, whose ranks get the same answer.
bool is_all_finite(const Tensor& gradient) {
  struct AllowBoxing {
    bool forbids = std::exchange(thread_state().forbids_implicit_boxing, false);

    ~AllowBoxing() { thread_state().forbids_implicit_boxing = forbids; }
  };

  const NoGradGuard no_grad;
  const AllowBoxing not_the_users;
  return isfinite(gradient.detach()).all().item<bool>();
}

void check_finite_gradient(const Node& node, size_t input, const Tensor& gradient) {
  if (is_all_finite(gradient)) return;
  throw InvalidArgument(
      str("[", node.name(), "] the gradient of input ", input, ", ", gradient.meta(),
          ", has elements that are not finite, and all gradients before it were finite; look at "
          "the "
          "inputs of this call, or clip or scale them"),
      node.scope().user_site());
}

bool any_defined(std::span<const Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.defined(); });
}

}  // namespace

BackwardRun::BackwardRun(const Options& options)
    : options_(options),
      outer_(current_run),
      thread_(&thread_state()),
      number_(++num_runs),
      sums_(options.bucket_mb, options.site) {
  current_run = this;
}

BackwardRun::~BackwardRun() {
  for (Node* node : nodes_) {
    for (NodeOutput& output : node->outputs())
      output.gradient = {};
    node->run_ = nullptr;
    node->is_needed_ = false;
  }
  for (Displaced& state : displaced_) {
    state.node->run_ = state.run;
    state.node->pending_ = state.pending;
    state.node->is_needed_ = state.is_needed;
    state.node->is_captured_ = state.is_captured;
    for (size_t i = 0; i < state.gradients.size(); ++i)
      state.node->outputs()[i].gradient = std::move(state.gradients[i]);
  }
  current_run = outer_;
}

BackwardRun* BackwardRun::outermost() {
  BackwardRun* run = current_run;
  while (run != nullptr && run->outer_ != nullptr)
    run = run->outer_;
  return run;
}

void BackwardRun::claim(Node& node) {
  if (node.run_ != nullptr) {
    if (node.run_->thread_ != thread_) {
      throw InvalidArgument(
          str("[backward] another thread is running backward through the same ", "tensors (",
              node.describe(),
              "); run the backward passes one after the other, or on separate graphs"));
    }
    Displaced state{&node, node.run_, node.pending_, node.is_needed_, node.is_captured_, {}};
    for (NodeOutput& output : node.outputs())
      state.gradients.push_back(std::exchange(output.gradient, {}));
    displaced_.push_back(std::move(state));
  }
  node.run_ = this;
  node.pending_ = 0;
  node.is_needed_ = !options_.captures;
  node.is_captured_ = false;
  nodes_.push_back(&node);
}

void BackwardRun::find_nodes() {
  for (const Root& root : roots_) {
    if (root.edge.node->run_ != this) claim(*root.edge.node);
  }
  for (size_t next = 0; next < nodes_.size(); ++next) {
    for (const Edge& edge : nodes_[next]->edges()) {
      if (!edge.node) continue;
      if (edge.node->run_ != this) claim(*edge.node);
      ++edge.node->pending_;
    }
  }
}

// Marks the reached nodes that lead to a capture; pending_ counts only uses by such nodes.
void BackwardRun::find_needed() {
  for (const Capture& capture : captures_) {
    if (capture.node->run_ != this) continue;
    capture.node->is_captured_ = true;
    capture.node->is_needed_ = true;
  }
  std::sort(nodes_.begin(), nodes_.end(), runs_later);
  for (Node* node : nodes_) {
    node->pending_ = 0;
    for (size_t i = 0; !node->is_needed_ && i < node->edges().size(); ++i)
      node->is_needed_ = node->needs(i);
  }
  for (const Node* node : nodes_) {
    if (!node->is_needed_) continue;
    for (size_t i = 0; i < node->edges().size(); ++i) {
      if (node->needs(i)) ++node->edges()[i].node->pending_;
    }
  }
}

// Called before any gradient is written.
void BackwardRun::check_alive() const {
  for (const Node* node : nodes_) {
    if (node->is_alive() || !node->is_needed_ || !leads_on(*node)) continue;
    throw InvalidArgument(str("[backward] the saved values of ", node->describe(),
                              " are gone: an earlier backward freed them; call that backward with "
                              ".retain_graph = true, or compute the forward again"),
                          node->scope().user_site());
  }
}

void BackwardRun::run() {
  RunScope scope(options_.create_graph, options_.site);
  if (thread_state().trace != nullptr) refuse_anomaly_in_graph(options_.site);
  find_nodes();
  if (options_.captures) find_needed();
  check_alive();
  for (Root& root : roots_) {
    NodeOutput& output = root.edge.node->outputs()[root.edge.index];
    add_to(output.gradient, std::move(root.gradient));
  }
  // Leaves among the roots have sequence number 0, so they come last.
  for (Node* node : nodes_) {
    if (node->pending_ == 0 && node->is_needed_) ready_.push_back(node);
  }
  std::make_heap(ready_.begin(), ready_.end(), runs_later);
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), runs_later);
    Node* node = ready_.back();
    ready_.pop_back();
    scope.enter(node->scope());
    execute(*node);
  }
  finish_sums();
  scope.leave_nodes();
  for (size_t i = 0; i < final_callbacks_.size(); ++i)
    final_callbacks_[i]();
}

void BackwardRun::execute(Node& node) {
  const size_t num_outputs = node.outputs().size();
  TensorList dy(num_outputs);
  for (size_t i = 0; i < num_outputs; ++i)
    dy[i] = std::move(node.outputs()[i].gradient);
  if (node.is_leaf()) {
    receive(node, dy);
    if (!options_.captures) accumulate(static_cast<LeafNode&>(node), std::move(dy[0]));
    return;
  }
  TensorList dx(node.edges().size());
  try {
    receive(node, dy);
    // Another backward may need the nodes behind a captured output.
    if (!leads_on(node)) return;
    if (any_defined(dy.span())) run_rule(node, dy, dx);
  } catch (Error& error) {
    add_context(error, node);
    throw;
  }
  if (!options_.keep_graph) node.free_saved();
  deliver(node, dx);
}

// Called when the gradients of a node's outputs are complete.
void BackwardRun::receive(const Node& node, TensorList& dy) {
  if (node.hooks() != nullptr) {
    run_hooks(node, dy);
    retain_gradients(node, dy);
  }
  if (node.is_captured_) capture(node, dy);
}

bool BackwardRun::leads_on(const Node& node) {
  for (size_t i = 0; i < node.edges().size(); ++i) {
    if (node.needs(i)) return true;
  }
  return false;
}

void BackwardRun::run_rule(Node& node, TensorList& dy, TensorList& dx) {
  const std::span<const Edge> edges = node.edges();
  node.apply(dy.data(), dx.data());
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!node.needs(i) || !dx[i].defined()) continue;
    // The input may be a number in host memory that was mixed with tensors on a device
    // (eager/chooser.cpp).
    const DeviceType device = edges[i].meta->device;
    if (dx[i].device() != device && dx[i].dim() == 0) dx[i] = to_device(dx[i], device);
    node.check_gradient(i, dx[i]);
    if (is_anomaly_enabled()) [[unlikely]]
      check_finite_gradient(node, i, dx[i]);
  }
  if (node.hooks() == nullptr) return;
  const auto hooks = node.hooks()->after;  // a hook may remove itself
  for (const auto& hook : hooks)
    hook.function(dx.span(), dy.span());
}

void BackwardRun::deliver(Node& node, TensorList& dx) {
  const std::span<const Edge> edges = node.edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!node.needs(i)) continue;
    Node& next = *edges[i].node;
    if (dx[i].defined()) add_to(next.outputs()[edges[i].index].gradient, std::move(dx[i]));
    if (--next.pending_ != 0) continue;
    if (next.is_leaf()) {
      execute(next);
    } else {
      ready_.push_back(&next);
      std::push_heap(ready_.begin(), ready_.end(), runs_later);
    }
  }
}

void BackwardRun::run_hooks(const Node& node, TensorList& dy) const {
  const auto hooks = node.hooks()->before;  // a hook may remove itself
  for (const auto& hook : hooks) {
    Tensor& gradient = dy[hook.output];
    if (!gradient.defined()) continue;
    Tensor replacement = hook.function(gradient);
    if (!replacement.defined()) continue;
    const TensorMeta& given = replacement.meta();
    const TensorMeta& expected = gradient.meta();
    if (!(given.shape == expected.shape) || given.dtype != expected.dtype ||
        given.placement != expected.placement) {
      throw InvalidArgument(str("[register_hook] a hook replaced the gradient ", expected, " by ",
                                given, "; keep shape, dtype and placement"));
    }
    gradient = std::move(replacement);
  }
}

void BackwardRun::retain_gradients(const Node& node, TensorList& dy) const {
  for (const NodeHooks::Retained& retained : node.hooks()->retained) {
    if (!dy[retained.output].defined()) continue;
    const Tensor gradient =
        to_layout_of(dy[retained.output], *node.outputs()[retained.output].meta);
    Tensor& kept = retained.slot->gradient;
    kept = kept.defined() ? kept.add(gradient) : gradient.clone();
  }
}

void BackwardRun::capture(const Node& node, TensorList& dy) {
  for (Capture& capture : captures_) {
    if (capture.node.get() != &node || !dy[capture.index].defined()) continue;
    capture.gradient = to_layout_of(dy[capture.index], *capture.meta);
  }
}

void BackwardRun::add_to(Tensor& total, Tensor gradient) const {
  if (!total.defined()) {
    total = std::move(gradient);
  } else if (!options_.create_graph && total.meta_ptr() == gradient.meta_ptr() &&
             is_exclusive(total)) {
    total.add_(gradient);
  } else {
    total = total.add(gradient);
  }
}

void BackwardRun::accumulate(LeafNode& node, Tensor gradient) {
  if (node.leaf() == nullptr || !node.leaf()->requires_grad || !gradient.defined()) return;
  const Tensor leaf(Ref<TensorImpl>(node.leaf()));
  const TensorMeta& meta = leaf.meta();
  const TensorMeta& given = gradient.meta();
  if (!(given.shape == meta.shape) || given.dtype != meta.dtype ||
      given.is_global() != meta.is_global()) {
    throw InvalidArgument(str("[backward] the gradient ", given,
                              " does not match the leaf, which is now ", meta,
                              "; do not call set_data() between forward and backward"));
  }
  const BackwardRules* rules = active_backward_rules();
  Tensor laid_out = rules != nullptr && rules->lay_out ? rules->lay_out(leaf, gradient) : Tensor();
  if (laid_out.defined()) {
    gradient = std::move(laid_out);
  } else {
    if (!options_.create_graph && sums_.take(leaf, gradient)) return;
    gradient = to_layout_of(gradient, meta);
  }
  const bool is_owned = is_exclusive(gradient);
  add_to_leaf(leaf, std::move(gradient), is_owned);
}

void BackwardRun::finish_sums() {
  for (GradientSums::Summed& sum : sums_.finish())
    add_to_leaf(sum.leaf, std::move(sum.gradient), true);
}

void BackwardRun::add_to_leaf(const Tensor& leaf, Tensor gradient, bool is_owned) const {
  Tensor& total = make_autograd(leaf.impl()).gradient;
  // A trace has gradients of its own.
  const bool is_outside =
      total.defined() && thread_state().trace != nullptr && total.impl().trace == nullptr;
  if (!total.defined() || is_outside) {
    total = is_owned ? std::move(gradient) : gradient.clone();
  } else if (options_.create_graph) {
    total = total.add(gradient);
  } else {
    total.add_(gradient);
  }
  const auto hooks = leaf_node(leaf.impl())->accumulate_hooks;  // a hook may remove itself
  for (const auto& hook : hooks)
    hook.function(leaf);
}

}  // namespace flow::autograd

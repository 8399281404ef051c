#include "nn/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "autograd/autocast.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/device/joined_launch.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "graph/trace/tracer.h"
#include "nn/layout.h"
#include "nn/optim/update_phase.h"
#include "ops/creation/creation.h"

namespace flow::optim {

namespace {
Tensor scalar(double value) {
  return full({}, value, {.dtype = float64});
}

// The name of the float32 copies of 16-bit parameters.
constexpr const char* kMaster = "master";

[[noreturn]] void refuse_master(const std::string& name, const Tensor& parameter) {
  throw InvalidArgument(str("[optimizer] the state has ", name, ", but the parameter ",
                            parameter.meta(),
                            " has no master here; nothing was loaded; set "
                            "master_weights for parameters in float16 or bfloat16, or remove the "
                            "masters from the state"));
}

// Reads the scalar `name` if it is in the state, and counts it.
std::optional<double> find_scalar(const nn::StateDict& state, const std::string& name,
                                  size_t& num_read) {
  const auto found = state.find(name);
  if (found == state.end()) return std::nullopt;
  ++num_read;
  return found->second.item<double>();
}
}  // namespace

void Optimizer::zero_grad() {
  for_each_param([](const Tensor& parameter, size_t) { parameter.set_grad(Tensor()); });
}

void Optimizer::step(Site site) {
  const SiteScope scope(site);
  if (thread_state().trace != nullptr) {
    throw Unsupported(
        "[optimizer] a graph cannot contain step(), because its plan would keep the rates; call "
        "add_optimizer() in the constructor of the graph, or step() outside of build()");
  }
  const NoGradGuard no_grad;
  const UpdatePhase phase;
  const cuda::JoinLaunches joins;
  autograd::drop_cached_casts();
  lay_out_state();
  bool has_gradient = false;
  for_each_param([&](const Tensor& parameter, size_t number) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) return;  // without a gradient the step count stays
    has_gradient = true;
    ParamState& state = begin_step(number);
    advance(number, state);
    apply(parameter, grad, number, state);
  });
  cuda::queue_joined();
  if (has_gradient || std::exchange(has_warned_, true)) return;
  log_warning(
      str(place_text(user_site(site), thread_state().module_path),
          "[optimizer] step() changed nothing: no parameter has a gradient; call backward() "
          "on a loss that was computed from these parameters, and make the optimizer after "
          "the parameters have got their final tensors"));
}

Optimizer::ParamState& Optimizer::state_of(size_t number) {
  if (states_.size() <= number) states_.resize(number + 1);
  ParamState& state = states_[number];
  state.number = number;
  if (state.step == 0) {
    state.buffers.resize(buffer_names().size());
    state.numbers.resize(number_names().size(), 1);
  }
  return state;
}

Optimizer::ParamState& Optimizer::begin_step(size_t number) {
  ParamState& state = state_of(number);
  ++state.step;
  return state;
}

void Optimizer::apply(const Tensor& parameter, const Tensor& grad, size_t number,
                      ParamState& state) {
  const NdSbp sbp = state_sbp(parameter, number);
  if (!parameter.is_global() || sbp == parameter.sbp()) {
    update(parameter, grad, number, state);
    return;
  }
  const Tensor share = parameter.detach().to_global({.sbp = sbp});
  update(share, grad.to_global({.sbp = sbp}), number, state);
  parameter.copy_(share.to_global({.sbp = parameter.sbp()}));
}

bool Optimizer::has_master(const Tensor& parameter, size_t number) const {
  return is_half(parameter.dtype()) && wants_master(number);
}

DType Optimizer::state_dtype(const Tensor& parameter, size_t number) const {
  return has_master(parameter, number) ? float32 : parameter.dtype();
}

NdSbp Optimizer::state_sbp(const Tensor& parameter, size_t number) const {
  if (!parameter.is_global()) return {};
  const NdSbp sbp = parameter.sbp();
  return shards_state(number) ? nn::without_replicas(parameter.shape(), parameter.placement(), sbp)
                              : sbp;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for_each_param([&](const Tensor& parameter, size_t) { all.push_back(parameter); });
  return all;
}

void Optimizer::set_lr(double lr) {
  for (int64_t group = 0; group < num_groups(); ++group)
    set_group_lr(group, lr);
}

double Optimizer::lr(int64_t group, Site site) const {
  const SiteScope scope(site);
  check_group(group);
  return lr_of(group);
}

void Optimizer::set_group_lr(int64_t group, double lr, Site site) {
  const SiteScope scope(site);
  check_group(group);
  assign_lr(group, lr);
}

std::optional<double> Optimizer::momentum(int64_t group, Site site) const {
  const SiteScope scope(site);
  check_group(group);
  return momentum_of(group);
}

void Optimizer::set_group_momentum(int64_t group, double momentum, Site site) {
  const SiteScope scope(site);
  check_group(group);
  assign_momentum(group, momentum);
}

void Optimizer::shard_state(Site site) {
  const SiteScope scope(site);
  shard_groups();
}

double Optimizer::initial_lr(int64_t group, Site site) {
  const SiteScope scope(site);
  check_group(group);
  const auto g = static_cast<size_t>(group);
  if (initial_lrs_.size() <= g) initial_lrs_.resize(g + 1);
  if (!initial_lrs_[g]) initial_lrs_[g] = lr_of(group);
  return *initial_lrs_[g];
}

void Optimizer::set_initial_lr(int64_t group, double lr, Site site) {
  initial_lr(group, site);
  initial_lrs_[static_cast<size_t>(group)] = lr;
}

nn::StateDict Optimizer::state_dict() const {
  nn::StateDict dict;
  const std::vector<std::string> names = buffer_names(), numbers = number_names();
  for (size_t i = 0; i < states_.size(); ++i) {
    const ParamState& state = states_[i];
    if (state.step == 0) continue;
    dict.emplace(str(i, ".step"), scalar(static_cast<double>(state.step)));
    for (size_t j = 0; j < names.size(); ++j) {
      if (state.buffers[j].defined()) dict.emplace(str(i, '.', names[j]), state.buffers[j]);
    }
    for (size_t j = 0; j < numbers.size(); ++j)
      dict.emplace(str(i, '.', numbers[j]), scalar(state.numbers[j]));
  }
  for (int64_t g = 0; g < num_groups(); ++g) {
    dict.emplace(str("group.", g, ".lr"), scalar(lr(g)));
    if (const auto value = momentum(g)) {
      dict.emplace(str("group.", g, ".momentum"), scalar(*value));
    }
    const auto at = static_cast<size_t>(g);
    if (at < initial_lrs_.size() && initial_lrs_[at]) {
      dict.emplace(str("group.", g, ".initial_lr"), scalar(*initial_lrs_[at]));
    }
  }
  return dict;
}

void Optimizer::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  const NoGradGuard no_grad;
  std::vector<ParamState> loaded;
  const std::vector<std::string> names = buffer_names(), numbers = number_names();
  size_t num_read = 0;
  for_each_param([&](const Tensor& parameter, size_t number) {
    ParamState& own = loaded.emplace_back();
    const auto step = find_scalar(state, str(number, ".step"), num_read);
    if (!step) return;
    own.step = static_cast<int64_t>(*step);
    if (own.step > 0 && always_has_buffer() && !state.contains(str(number, '.', names[0]))) {
      throw InvalidArgument(str("[optimizer] the state is incomplete: it counts ", own.step,
                                " steps of parameter ", number, " but has no ", names[0],
                                "; nothing was loaded; use the state of the same optimizer"));
    }
    own.buffers.resize(names.size());
    for (size_t j = 0; j < names.size(); ++j) {
      const auto found = state.find(str(number, '.', names[j]));
      if (found == state.end()) continue;
      ++num_read;
      if (names[j] == kMaster && !has_master(parameter, number))
        refuse_master(found->first, parameter);
      const Shape shape = buffer_shape(j, parameter);
      if (!(found->second.shape() == shape)) {
        throw InvalidArgument(str("[optimizer] ", found->first, " has shape ",
                                  found->second.shape(), ", but its parameter, of shape ",
                                  parameter.shape(), ", needs ", shape,
                                  "; nothing was loaded; use the state of the same model"));
      }
      const Tensor given = found->second.to(state_dtype(parameter, number));
      own.buffers[j] =
          parameter.is_global()
              ? nn::laid_out(given, parameter.placement(),
                             buffer_sbp(shape, parameter, state_sbp(parameter, number)),
                             Site::here())
                    .clone()
              : given.to(std::string(device_type_name(parameter.device()))).clone();
    }
    for (const std::string& name : numbers)
      own.numbers.push_back(find_scalar(state, str(number, '.', name), num_read).value_or(1));
  });
  std::vector<std::optional<double>> lrs, momenta, initial_lrs;
  for (int64_t g = 0; g < num_groups(); ++g) {
    lrs.push_back(find_scalar(state, str("group.", g, ".lr"), num_read));
    momenta.push_back(find_scalar(state, str("group.", g, ".momentum"), num_read));
    initial_lrs.push_back(find_scalar(state, str("group.", g, ".initial_lr"), num_read));
    if (momenta.back() && !momentum(g)) refuse_momentum();
  }
  if (num_read != state.size()) {
    throw InvalidArgument(
        str("[optimizer] ", state.size() - num_read, " of ", state.size(),
            " names in the state do not belong to this optimizer's parameters; nothing was "
            "loaded; use the state of the same optimizer and model"));
  }
  states_ = std::move(loaded);
  initial_lrs_ = std::move(initial_lrs);
  for (int64_t g = 0; g < num_groups(); ++g) {
    const auto at = static_cast<size_t>(g);
    if (lrs[at]) set_group_lr(g, *lrs[at]);
    if (momenta[at]) set_group_momentum(g, *momenta[at]);
  }
}

const Tensor& Optimizer::buffer(ParamState& state, size_t i, const Tensor& parameter,
                                double value) const {
  Tensor& buffer = state.buffers[i];
  if (buffer.defined() && state.step > 1) return buffer;
  const Shape shape = buffer_shape(i, parameter);
  const DType dtype = state_dtype(parameter, state.number);
  const auto fits = [&] {
    if (buffer.dtype() != dtype || buffer.shape() != shape ||
        buffer.is_global() != parameter.is_global())
      return false;
    if (!parameter.is_global()) return buffer.device() == parameter.device();
    return buffer.placement() == parameter.placement() &&
           buffer.sbp() == buffer_sbp(shape, parameter, parameter.sbp());
  };
  // Compiling makes the buffers before the first step; the parameter may have changed since.
  if (buffer.defined() && fits()) return buffer;
  const graph::SuspendTracing at_once;
  if (shape == parameter.shape()) {
    buffer = full_like(parameter, value, {.dtype = dtype});
    return buffer;
  }
  TensorOptions options{.dtype = dtype};
  if (parameter.is_global()) {
    options.placement = parameter.placement();
    options.sbp = buffer_sbp(shape, parameter, parameter.sbp());
  } else {
    options.device = std::string(device_type_name(parameter.device()));
  }
  buffer = full(shape, value, options);
  return buffer;
}

Tensor Optimizer::master(ParamState& state, const Tensor& parameter) const {
  if (!has_master(parameter, state.number)) return {};
  return buffer(state, state.buffers.size() - 1, parameter);
}

NdSbp Optimizer::buffer_sbp(const Shape& shape, const Tensor& parameter, const NdSbp& sbp) {
  std::vector<Sbp> entries;
  for (const Sbp entry : sbp) {
    const bool is_joined = entry.is_split() && shape[entry.dim()] != parameter.shape()[entry.dim()];
    entries.push_back(is_joined ? sbp::broadcast : entry);
  }
  return NdSbp(entries);
}

void Optimizer::lay_out_state() {
  const graph::SuspendTracing at_once;
  for_each_param([&](const Tensor& parameter, size_t number) {
    if (!parameter.is_global() || number >= states_.size()) return;
    const NdSbp sbp = state_sbp(parameter, number);
    std::vector<Tensor>& buffers = states_[number].buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      Tensor& buffer = buffers[i];
      if (!buffer.defined() || !buffer.is_global()) continue;
      const Placement& placement = parameter.placement();
      const NdSbp wanted = buffer_sbp(buffer_shape(i, parameter), parameter, sbp);
      if (buffer.placement() == placement && buffer.sbp() == wanted) continue;
      buffer = nn::laid_out(buffer, placement, wanted, Site::here()).clone();
    }
  });
}

void Optimizer::check_new_params(const std::vector<Tensor>& params,
                                 const std::vector<Tensor>& present, Site site) {
  if (params.empty()) {
    throw InvalidArgument(
        "[optimizer] a group has no parameters; pass module.parameters(), and register the "
        "parameters and sub-modules of your modules",
        site);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].defined()) {
      throw InvalidArgument(str("[optimizer] parameter ", i,
                                " of the group is undefined; pass "
                                "module.parameters() or tensors that have a value"),
                            site);
    }
    if (!params[i].is_leaf()) {
      throw InvalidArgument(
          str("[optimizer] parameter ", i, " ", params[i].meta(),
              " is not a leaf but the result of an operation; pass leaves, for example x.detach()"),
          site);
    }
    const auto is_same = [&](const Tensor& other) { return other.is_same(params[i]); };
    const auto here = params.begin() + static_cast<ptrdiff_t>(i);
    if (std::any_of(params.begin(), here, is_same) ||
        std::any_of(present.begin(), present.end(), is_same)) {
      throw InvalidArgument(str("[optimizer] parameter ", i, " ", params[i].meta(),
                                " was given twice; put each parameter into one group"),
                            site);
    }
  }
}

void Optimizer::check_no_state() const {
  for (const ParamState& state : states_) {
    if (state.step == 0) continue;
    throw InvalidArgument(
        "[optimizer] shard_state() came too late: steps have already been made with unsharded "
        "state; set shard_state in the options when you make the optimizer");
  }
}

void Optimizer::check_group(int64_t group) const {
  if (group >= 0 && group < num_groups()) return;
  throw InvalidArgument(str("[optimizer] there is no parameter group ", group,
                            "; the groups are 0 to ", num_groups() - 1));
}

void Optimizer::refuse_momentum() {
  throw InvalidArgument(
      "[optimizer] this update rule has neither momentum nor betas; do not set the momentum, for "
      "example make the scheduler with {.cycle_momentum = false}");
}

}  // namespace flow::optim

#include "nn/job/variable.h"

#include <exception>
#include <vector>

#include "core/context.h"
#include "core/error.h"
#include "nn/init.h"
#include "nn/job/rank_job.h"
#include "nn/job/session.h"
#include "nn/safetensors.h"

namespace flow::job {

Initializer truncated_normal(double stddev) {
  return [stddev](const Tensor& variable) {
    nn::init::trunc_normal_(variable, {.std = stddev, .a = -2 * stddev, .b = 2 * stddev});
  };
}

Initializer random_normal(double stddev, double mean) {
  return [=](const Tensor& variable) { nn::init::normal_(variable, mean, stddev); };
}

Initializer random_uniform(double low, double high) {
  return [=](const Tensor& variable) { nn::init::uniform_(variable, low, high); };
}

Initializer constant(double value) {
  return [value](const Tensor& variable) { nn::init::constant_(variable, value); };
}

Initializer xavier_uniform() {
  return [](const Tensor& variable) { nn::init::xavier_uniform_(variable); };
}

namespace distribute {
Distribute split(int64_t axis) {
  return sbp::split(axis);
}

Distribute broadcast() {
  return sbp::broadcast;
}
}  // namespace distribute

Tensor get_variable(std::string_view name, const Shape& shape, const VariableOptions& options,
                    Site site) {
  return RankJob::in_function("get_variable", site).variable(name, shape, options, site);
}

std::map<std::string, Array> variables() {
  std::map<std::string, Array> values;
  Session& session = Session::get();
  const auto definitions = session.definitions();
  session.run([&](RankJob& job) {
    job.declare(definitions);
    const nn::StateDict own = job.variables();
    if (env::rank() != 0) return;
    for (const auto& [name, tensor] : own)
      values.emplace(name, to_array(tensor));
  });
  return values;
}

void load_variables(const std::map<std::string, Array>& values) {
  Session& session = Session::get();
  const auto definitions = session.definitions();
  session.run([&](RankJob& job) {
    job.declare(definitions);
    nn::StateDict state;
    for (const auto& [name, array] : values)
      state.emplace(name, wrap(array, 0, array.shape()));
    job.load_variables(state);
  });
}

void CheckPoint::init() {
  Session& session = Session::get();
  const auto definitions = session.definitions();
  session.run([&](RankJob& job) {
    job.forget();
    job.declare(definitions);
  });
}

void CheckPoint::save(std::string_view path) {
  Session& session = Session::get();
  const auto definitions = session.definitions();
  std::exception_ptr error;  // error of rank 0; the other ranks do not access the file
  session.run([&](RankJob& job) {
    job.declare(definitions);
    const nn::StateDict state = job.state(definitions);
    if (env::rank() != 0) return;
    try {
      nn::save_safetensors(std::string(path), state);
    } catch (const Error&) {
      error = std::current_exception();
    }
  });
  if (error != nullptr) std::rethrow_exception(error);
}

void CheckPoint::load(std::string_view path) {
  Session& session = Session::get();
  const auto definitions = session.definitions();
  session.run([&](RankJob& job) {
    const nn::StateDict state = nn::load_safetensors(std::string(path));
    job.declare(definitions);
    job.load_state(definitions, state);
  });
}

}  // namespace flow::job

// The variables of job functions. The first function that asks for a name makes the variable; all
// functions share it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/sbp.h"
#include "core/tensor.h"
#include "nn/job/array.h"

namespace flow::job {

// Fills a new variable with its initial values, in place. Logical values do not depend on the
// devices.
using Initializer = std::function<void(const Tensor& variable)>;

// N(0, stddev²), truncated at two standard deviations.
Initializer truncated_normal(double stddev);
Initializer random_normal(double stddev, double mean = 0);
Initializer random_uniform(double low, double high);
Initializer constant(double value);
// Uniform within ±√(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Initializer xavier_uniform();

// The layout of a variable on the devices of its placement, in consistent view.
using Distribute = Sbp;

namespace distribute {
Distribute split(int64_t axis);
Distribute broadcast();
}  // namespace distribute

struct VariableOptions {
  DType dtype = float32;
  Initializer initializer = {};  // unset: xavier_uniform
  bool trainable = true;
  Distribute distribute = distribute::broadcast();
};

// Returns the variable `name` and makes it if it does not exist. Must be called within a job
// function. Throws InvalidArgument outside of one, and if the variable has another shape, dtype,
// layout or trainability.
Tensor get_variable(std::string_view name, const Shape& shape, const VariableOptions& options = {},
                    Site site = Site::here());

// The whole values of all variables.
std::map<std::string, Array> variables();
// Sets the variables with these names. Throws InvalidArgument, before any is changed, for a name
// that no function uses and for another shape or dtype.
void load_variables(const std::map<std::string, Array>& values);

// Saves and restores the variables of the functions defined so far, and the state of their
// optimizers.
class CheckPoint {
 public:
  // Gives all variables new initial values and resets the optimizers.
  void init();
  // Writes a safetensors file. Throws IoError.
  void save(std::string_view path);
  // Restores the state that save() wrote. If the file has only variables, the optimizers are reset.
  // Throws IoError or BadFile; InvalidArgument, before variables are changed, if the file has other
  // variables than the functions, or other numbers of functions that update the same variables.
  // Without training functions, the state of optimizers is ignored.
  void load(std::string_view path);
};

}  // namespace flow::job

// The variables of job functions: made by name at the first function that asks, shared by all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/sbp.h"
#include "core/tensor.h"
#include "nn/job/array.h"

namespace flow::job {

// Gives a new variable its values, in place. Logical values do not depend on the devices.
using Initializer = std::function<void(const Tensor& variable)>;

// N(0, stddev²) without what lies beyond two standard deviations.
Initializer truncated_normal(double stddev);
Initializer random_normal(double stddev, double mean = 0);
Initializer random_uniform(double low, double high);
Initializer constant(double value);
// Glorot and Bengio 2010: uniform within √(6 / (fan_in + fan_out)).
Initializer xavier_uniform();

// How a variable lies on the devices of its placement, in consistent view.
using Distribute = Sbp;

namespace distribute {
Distribute split(int64_t axis);
Distribute broadcast();
}  // namespace distribute

struct VariableOptions {
  DType dtype = float32;
  Initializer initializer = {};  // xavier_uniform
  bool trainable = true;
  Distribute distribute = distribute::broadcast();
};

// The variable `name`, made if there is none. Within a job function only. Throws InvalidArgument
// when it has another shape, dtype or layout.
Tensor get_variable(std::string_view name, const Shape& shape, const VariableOptions& options = {},
                    Site site = Site::here());

// All variables, whole.
std::map<std::string, Array> variables();
// Sets those named. Throws InvalidArgument, before any is changed, for a name that no function uses
// or another shape or dtype.
void load_variables(const std::map<std::string, Array>& values);

// The variables of the functions defined so far, and their optimizers' state.
class CheckPoint {
 public:
  // Makes all variables anew, with their initial values; optimizers begin anew.
  void init();
  // Writes a safetensors file. Throws IoError.
  void save(std::string_view path);
  // Goes on where save() was; of a file that has variables only, optimizers begin anew. Throws
  // IoError or BadFile; InvalidArgument, before variables are changed, when the file does not have
  // what the functions use, or more.
  void load(std::string_view path);
};

}  // namespace flow::job

// What the parts of flow-conform share: specs, their files, and what is not supported.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/tensor.h"
#include "nn/module.h"

namespace flow::conform {

using Json = nlohmann::json;

// A case asks for something the library has not.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The spec cannot be understood.
class BadSpec : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string device = "cpu";
  bool widens = false;  // --dtype f64
  int64_t steps = -1;   // --steps of train; -1: the spec's
  std::string only;     // --only of op
};

// A spec and the folder its file names are relative to.
struct Spec {
  Json json;
  std::string folder;

  // A tensor file the spec names, floating tensors widened where the options want it.
  nn::StateDict tensors(const std::string& file, const Options& options) const;
};

// Throws BadSpec when the file holds no JSON.
Spec read_spec(const std::string& path);

// A number, or "inf", "-inf".
double to_number(const Json& value);

// The cases that were left out: a line each on stderr, and the exit status.
class Report {
 public:
  void leave_out(const std::string& id, const std::string& reason);

  int status() const { return num_left_out_ == 0 ? 0 : 3; }

 private:
  int num_left_out_ = 0;
};

// Each returns the exit status and writes its output as the page on flow-conform says.
int run_optim(const Spec& spec, const Options& options, const std::string& out);
int run_scheduler(const Spec& spec, const std::string& out);
int run_train(const Spec& spec, const Options& options, const std::string& out_folder);

}  // namespace flow::conform

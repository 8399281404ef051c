#include "tools/flow_conform/op_command.h"

#include <algorithm>

#include "autograd/engine.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "eager/runtime.h"
#include "nn/safetensors.h"
#include "ops/cast.h"
#include "ops/creation.h"
#include "tools/flow_conform/case.h"
#include "tools/flow_conform/layout.h"

namespace flow::conform {

namespace {

// A case's tensors of one file, and the gradients that come back.
class OpRun {
 public:
  OpRun(const OpOptions& options, const Json& spec, const nn::StateDict& file)
      : options_(options), spec_(spec), file_(file), id_(spec.at("id")) {}

  // The results by their names in the output file.
  nn::StateDict run(const Bindings& table) {
    check_supported();
    const auto& binding = table.find(spec_.at("op"));
    Case c(spec_, inputs(), options_.run.floating);
    Outputs outputs;
    try {
      outputs = binding(c);
      c.check_all_read();
      backward(outputs);
    } catch (const Error&) {
      c.check_all_read();  // a call without all arguments says nothing
      throw;
    }
    return results(outputs);
  }

 private:
  void check_supported() const {
    if (options_.run.device != "cpu") throw NotSupported("device " + options_.run.device);
    if (options_.in_graph) throw NotSupported("graphs");
  }

  Tensor stored(const std::string& name) const {
    const auto found = file_.find(name);
    if (found == file_.end()) throw BadSpec(str("case ", id_, " lacks tensor ", name));
    const Tensor& value = found->second;
    return is_floating(value.dtype()) ? cast(value, options_.run.floating) : value;
  }

  bool wants_grad(const std::string& name) const {
    if (!spec_.contains("grads")) return false;
    const Json& grads = spec_["grads"];
    return std::find(grads.begin(), grads.end(), name) != grads.end();
  }

  std::vector<Input> inputs() {
    std::vector<Input> inputs;
    if (!spec_.contains("inputs")) return inputs;
    const Layouts layouts(options_.layout, id_, spec_["inputs"].size());
    const bool writes = spec_.at("op").get<std::string>().ends_with('_');
    for (const Json& input : spec_["inputs"]) {
      const std::string name = input.at("name");
      if (!leaves_.contains(name)) {
        Tensor leaf = layouts.leaf(stored("in." + name));
        if (wants_grad(name)) leaf.requires_grad_();
        leaves_[name] = leaf;
      }
      Tensor value = leaves_[name];
      if (input.contains("transpose") && !input["transpose"].is_null()) {
        value = value.transpose(input["transpose"].at(0), input["transpose"].at(1));
      }
      // running_mean and running_var are written by the norm that takes them.
      const bool is_written = (writes && inputs.empty()) || name.starts_with("running_");
      inputs.push_back({name, layouts.lay_out(value, inputs.size(), is_written)});
    }
    return inputs;
  }

  // Through all outputs that have a gradient given, at once.
  void backward(const Outputs& outputs) const {
    if (!spec_.contains("grads") || spec_["grads"].empty()) return;
    std::vector<Tensor> roots;
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = str("gout.", i);
      if (!file_.contains(name) || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      gradients.push_back(like(outputs[i], stored(name)));
    }
    if (!roots.empty()) flow::backward(roots, gradients);
  }

  nn::StateDict results(const Outputs& outputs) const {
    nn::StateDict results;
    for (size_t i = 0; i < outputs.size(); ++i)
      results[str(id_, "/out.", i)] = outputs[i].detach().full();
    if (!spec_.contains("grads")) return results;
    for (const Json& name : spec_["grads"]) {
      const auto found = leaves_.find(name.get<std::string>());
      if (found == leaves_.end()) throw BadSpec(str("case ", id_, " has no input ", name.dump()));
      const Tensor grad = found->second.grad();
      results[str(id_, "/grad.", found->first)] =
          grad.defined() ? grad.full() : zeros_like(found->second.detach()).full();
    }
    return results;
  }

  const OpOptions& options_;
  const Json& spec_;
  const nn::StateDict& file_;
  std::string id_;
  std::map<std::string, Tensor> leaves_;  // as stored, before views
};

// Runs cases one after the other and keeps the last file read.
class OpSuite {
 public:
  explicit OpSuite(const OpOptions& options) : options_(options), table_(all_bindings()) {}

  void run(const Json& spec) {
    const std::string id = spec.at("id");
    const std::string path = options_.folder + '/' + spec.at("file").get<std::string>();
    if (path != path_) {
      file_ = nn::load_safetensors(path);
      path_ = path;
    }
    const auto body = [&] { return run_case(options_, table_, spec, file_); };
    if (spec.value("error", false)) {
      report_.run_raising(id, spec.at("op"), body);
    } else {
      report_.run(id, [&] {
        nn::StateDict results = body();
        results_.merge(results);
      });
    }
  }

  ExitCode finish() {
    if (env::rank() == 0) nn::save_safetensors(options_.out, results_);
    return report_.exit_code();
  }

 private:
  const OpOptions& options_;
  Bindings table_;
  std::string path_;
  nn::StateDict file_;
  nn::StateDict results_;
  Report report_;
};

}  // namespace

nn::StateDict run_case(const OpOptions& options, const Bindings& table, const Json& spec,
                       const nn::StateDict& tensors) {
  return OpRun(options, spec, tensors).run(table);
}

void RunOptions::set_dtype(const std::string& word) {
  floating = word == "f64" ? float64 : float32;
}

ExitCode run_ops(const OpOptions& options) {
  const Json spec = read_json(options.cases);
  set_default_dtype(options.run.floating);
  OpSuite suite(options);
  bool found = options.only.empty();
  for (const Json& one : spec.at("cases")) {
    if (!options.only.empty() && one.at("id") != options.only) continue;
    found = true;
    suite.run(one);
  }
  if (!found) throw BadSpec("there is no case " + options.only);
  return suite.finish();
}

}  // namespace flow::conform

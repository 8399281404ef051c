#include "tools/flow_conform/op_command.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "autograd/engine.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "eager/runtime.h"
#include "nn/graph.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "tools/flow_conform/case.h"
#include "tools/flow_conform/layout.h"

namespace flow::conform {

namespace {

// A case as a step: maps its leaf tensors, and the gradients that are given for its results, to
// results and gradients.
using Compute =
    std::function<std::vector<Tensor>(const std::vector<Tensor>&, const std::vector<Tensor>&)>;

struct CaseGraph : nn::Graph<CaseGraph> {
  Compute compute;

  std::vector<Tensor> build(const std::vector<Tensor>& leaves,
                            const std::vector<Tensor>& gradients) {
    return compute(leaves, gradients);
  }
};

// One case with the tensors of its file.
class OpRun {
 public:
  OpRun(const OpOptions& options, const Json& spec, const nn::StateDict& file)
      : options_(options), spec_(spec), file_(file), id_(spec.at("id")) {
    if (spec.contains("grads")) grads_ = spec["grads"].get<std::vector<std::string>>();
    if (!spec.contains("outputs")) return;
    for (const Json& output : spec["outputs"])
      outputs_.push_back(output.at("name"));
  }

  // The results by their names in the output file.
  nn::StateDict run(const Bindings& table) {
    if (options_.run.device != "cpu") throw NotSupported("device " + options_.run.device);
    const auto& binding = table.find(spec_.at("op"));
    const std::vector<Tensor> leaves = place_inputs();
    const std::vector<Tensor> gradients = given_gradients();
    const Compute compute = [&](const auto& from, const auto& given) {
      return compute_case(binding, from, given);
    };
    return named(options_.in_graph ? replayed(compute, leaves, gradients)
                                   : compute(leaves, gradients));
  }

 private:
  // How an input is made from the leaf of its name.
  struct Place {
    std::string name;
    size_t leaf;
    std::optional<std::pair<int64_t, int64_t>> transposed;
    NdSbp sbp;  // if the tensor is global
  };

  Tensor stored(const std::string& name) const {
    const auto found = file_.find(name);
    if (found == file_.end())
      throw BadSpec(
          str("case ", id_, " needs the tensor ", name, ", which its file does not have"));
    const Tensor& value = found->second;
    return is_floating(value.dtype()) ? cast(value, options_.run.floating) : value;
  }

  // The number of the leaf of this name, or the number of the next leaf if there is none.
  size_t leaf_of(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return static_cast<size_t>(found - names_.begin());
  }

  // Chooses the layouts of the inputs. Returns the leaves, as they are stored.
  std::vector<Tensor> place_inputs() {
    std::vector<Tensor> leaves;
    if (!spec_.contains("inputs")) return leaves;
    layouts_.emplace(options_.layout, id_, spec_["inputs"].size());
    const bool writes = spec_.at("op").get<std::string>().ends_with('_');
    for (const Json& input : spec_["inputs"]) {
      Place place{input.at("name"), 0, {}, {}};
      place.leaf = leaf_of(place.name);
      if (place.leaf == names_.size()) {
        names_.push_back(place.name);
        leaves.push_back(layouts_->leaf(stored("in." + place.name)));
      }
      if (input.contains("transpose") && !input["transpose"].is_null()) {
        place.transposed.emplace(input["transpose"].at(0), input["transpose"].at(1));
      }
      // A norm writes its inputs running_mean and running_var.
      const bool is_written = (writes && places_.empty()) || place.name.starts_with("running_");
      place.sbp = sbp_of(place, leaves[place.leaf], is_written);
      places_.push_back(place);
    }
    return leaves;
  }

  // If one rank alone raises for its part of the data, the job ends. So cases that must raise get
  // whole tensors if layouts are random.
  NdSbp sbp_of(const Place& place, const Tensor& leaf, bool is_written) const {
    const bool stays_whole = options_.layout == "random" && spec_.value("error", false);
    return stays_whole ? leaf.sbp()
                       : layouts_->sbp_of(viewed(place, leaf), places_.size(), is_written);
  }

  static Tensor viewed(const Place& place, const Tensor& leaf) {
    if (!place.transposed) return leaf;
    return leaf.transpose(place.transposed->first, place.transposed->second);
  }

  // The name of result i: what the case calls it, else its number.
  std::string name_of(size_t i) const { return i < outputs_.size() ? outputs_[i] : str(i); }

  // The number of the result of this name.
  size_t output_of(const std::string& name) const {
    const auto found = std::find(outputs_.begin(), outputs_.end(), name);
    if (found != outputs_.end()) return static_cast<size_t>(found - outputs_.begin());
    size_t number = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), number);
    if (name.empty() || end.ec != std::errc() || end.ptr != name.data() + name.size() ||
        number < outputs_.size()) {
      throw BadSpec(str("case ", id_, " has no output '", name, "', whose gradient gout.", name,
                        " its file gives"));
    }
    return number;
  }

  // The given gradients of the results in given_for_.
  std::vector<Tensor> given_gradients() {
    std::vector<Tensor> gradients;
    if (grads_.empty() || !layouts_) return gradients;
    for (const auto& [name, value] : file_) {
      if (!name.starts_with("gout.")) continue;
      given_for_.push_back(output_of(name.substr(5)));
      gradients.push_back(layouts_->leaf(stored(name)));
    }
    return gradients;
  }

  // Returns the results, then the gradients of `grads`.
  std::vector<Tensor> compute_case(const Bindings::Binding& binding,
                                   const std::vector<Tensor>& leaves,
                                   const std::vector<Tensor>& gradients) {
    std::vector<Input> inputs;
    for (const std::string& name : grads_) {
      const size_t leaf = leaf_of(name);
      if (leaf == names_.size()) throw BadSpec(str("case ", id_, " has no input ", name));
      leaves[leaf].requires_grad_();
    }
    for (const Place& place : places_)
      inputs.push_back(
          {place.name, Layouts::lay_out(viewed(place, leaves[place.leaf]), place.sbp)});
    Case c(spec_, inputs, options_.run.floating);
    std::vector<Tensor> values;
    try {
      values = binding(c);
      if (options_.on_arguments) options_.on_arguments(spec_, c.uses());
      c.check_all_read();
      backward(values, gradients);
    } catch (const Error&) {
      c.check_all_read();  // a call that ignores arguments proves nothing
      throw;
    }
    for (Tensor& value : values)
      value = value.detach();
    for (const std::string& name : grads_) {
      const Tensor& leaf = leaves[leaf_of(name)];
      const Tensor grad = leaf.grad();
      values.push_back(grad.defined() ? grad : zeros_like(leaf.detach()));
    }
    return values;
  }

  // Runs backward once through all results whose gradient is given.
  void backward(const Outputs& outputs, const std::vector<Tensor>& gradients) const {
    std::vector<Tensor> roots;
    std::vector<Tensor> given;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const size_t output = given_for_[i];
      if (output >= outputs.size() || !outputs[output].requires_grad()) continue;
      roots.push_back(outputs[output]);
      given.push_back(gradients[i].to(outputs[output].dtype()));
    }
    if (!roots.empty()) flow::backward(roots, given);
  }

  // The results of a graph when it is called a second time.
  static std::vector<Tensor> replayed(const Compute& compute, const std::vector<Tensor>& leaves,
                                      const std::vector<Tensor>& gradients) {
    CaseGraph graph;
    graph.compute = compute;
    const auto state = generator_state();
    try {
      graph(leaves, gradients);
      set_generator_state(state);
      return graph(leaves, gradients);
    } catch (const Unsupported& error) {
      throw NotSupported(error.what());
    }
  }

  nn::StateDict named(const std::vector<Tensor>& values) const {
    nn::StateDict results;
    const size_t num_outputs = values.size() - grads_.size();
    for (size_t i = 0; i < num_outputs; ++i)
      results[str(id_, "/out.", name_of(i))] = values[i].full();
    for (size_t i = 0; i < grads_.size(); ++i)
      results[str(id_, "/grad.", grads_[i])] = values[num_outputs + i].full();
    return results;
  }

  const OpOptions& options_;
  const Json& spec_;
  const nn::StateDict& file_;
  std::string id_;
  std::vector<std::string> grads_;
  std::vector<std::string> outputs_;  // names of the results, if the case gives them
  std::optional<Layouts> layouts_;    // set if there are inputs
  std::vector<std::string> names_;    // names of the leaves
  std::vector<Place> places_;
  std::vector<size_t> given_for_;  // numbers of the results whose gradient is given
};

// Runs cases one after the other, and caches the last file.
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
  return run_spec(options.cases, [&](const Json& spec) {
    set_default_dtype(options.run.floating);
    OpSuite suite(options);
    bool found = options.only.empty();
    for (const Json& one : spec.at("cases")) {
      if (!options.only.empty() && one.at("id") != options.only) continue;
      found = true;
      suite.run(one);
    }
    if (!found)
      throw BadSpec("--only names the case " + options.only + ", which the spec does not have");
    return suite.finish();
  });
}

}  // namespace flow::conform

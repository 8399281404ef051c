// flow-ops FILE writes, as JSON, which ops each public function runs, and the facts of each op of
// the table. tools/docs makes the op list of the site from it.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/context.h"
#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/file.h"
#include "nn/safetensors.h"
#include "tests/parity/op_tensors.h"
#include "tools/flow_conform/op_command.h"
#include "tools/flow_ops/op_facts.h"
#include "tools/flow_ops/other_functions.h"

namespace flow::tools {

namespace {

using Json = nlohmann::json;

struct FunctionFacts {
  std::vector<std::string> ops;
  // Whether gradients pass through the function; unknown without golden cases.
  std::optional<bool> has_gradient;
};

using Functions = std::map<std::string, FunctionFacts>;

// Notes the ops of the calls that the thread runs while it is alive.
class OpRecorder final : public CallObserver {
 public:
  explicit OpRecorder(std::vector<std::string>& ops)
      : ops_(ops), before_(std::exchange(thread_state().observer, this)) {}

  ~OpRecorder() override { thread_state().observer = before_; }

  OpRecorder(const OpRecorder&) = delete;
  OpRecorder& operator=(const OpRecorder&) = delete;

  void begin(const Call& call, const Decision& /*decision*/) override {
    const std::string name = call.op.name;
    if (std::find(ops_.begin(), ops_.end(), name) == ops_.end()) ops_.push_back(name);
  }

  void end(const Decision& /*decision*/, bool /*has_failed*/) override {}

 private:
  std::vector<std::string>& ops_;
  CallObserver* before_;
};

// The bindings of flow-conform, which note the ops that each of them runs.
conform::Bindings recorded_bindings(Functions& functions) {
  const conform::Bindings bindings = conform::all_bindings();
  conform::Bindings recorded;
  for (const std::string& name : bindings.ops()) {
    recorded.add({name.c_str()},
                 [&ops = functions[name].ops, binding = bindings.find(name)](auto& c) {
                   const OpRecorder recorder(ops);
                   return binding(c);
                 });
  }
  return recorded;
}

// Runs the golden cases. Cases that PyTorch or flow refuses are left out.
void add_golden_cases(Functions& functions) {
  const Json spec = Json::parse(nn::read_text(PARITY_DATA "ops.json"));
  const nn::StateDict golden = nn::load_safetensors(PARITY_DATA "ops_golden.safetensors");
  const conform::Bindings bindings = recorded_bindings(functions);
  conform::OpOptions options;
  options.run.floating = float64;
  set_default_dtype(float64);
  for (const Json& one : spec["cases"]) {
    if (one.value("error", false) || one.contains("differs")) continue;
    conform::run_case(options, bindings, one, parity::tensors_of(golden, one["id"]));
    std::optional<bool>& has_gradient = functions[one["op"]].has_gradient;
    has_gradient = has_gradient.value_or(false) || !one.value("grads", Json::array()).empty();
  }
  set_default_dtype(float32);
}

Json listing() {
  Functions functions;
  add_golden_cases(functions);
  for (const auto& [name, call] : other_functions()) {
    const OpRecorder recorder(functions[name].ops);
    call();
  }
  Json ops = Json::object();
  for (const OpDef* op : op_table().all())
    ops[op->name] = facts_of(*op);
  Json listed = Json::object();
  for (const auto& [name, facts] : functions) {
    listed[name] = {{"ops", facts.ops}};
    if (facts.has_gradient) listed[name]["has_gradient"] = *facts.has_gradient;
  }
  return {{"functions", listed}, {"ops", ops}};
}

}  // namespace

}  // namespace flow::tools

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: flow-ops FILE\n";
    return 64;
  }
  try {
    std::ofstream file(argv[1]);
    file << flow::tools::listing().dump(1) << '\n';
    if (!file.flush()) throw flow::IoError(std::string("cannot write ") + argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "flow-ops: " << error.what() << '\n';
    return 1;
  }
}

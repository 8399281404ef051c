// The specs of flow-conform, with the tensors that they name.
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "tests/fuzz/formats.h"
#include "tools/flow_conform/box_command.h"
#include "tools/flow_conform/op_command.h"
#include "tools/flow_conform/optim_command.h"

namespace flow::fuzz {

namespace {

using conform::Json;

// Keeps from the terminal what a command reports of its cases.
class Muted {
 public:
  Muted() : out_(std::cout.rdbuf(text_.rdbuf())), error_(std::cerr.rdbuf(text_.rdbuf())) {}

  ~Muted() {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(error_);
  }

  Muted(const Muted&) = delete;
  Muted& operator=(const Muted&) = delete;

 private:
  std::ostringstream text_;
  std::streambuf* out_;
  std::streambuf* error_;
};

// True if every case ran. A spec that has another format is a BadSpec that names its file; a file
// of tensors that a changed spec names is missing.
template <class Run>
bool runs_or_refuses(const std::string& path, const Run& run) {
  const Muted muted;
  conform::ExitCode code = conform::kBadSpec;
  try {
    const bool is_spec = reads_or_refuses<conform::BadSpec>(path, [&] { code = run(); });
    return is_spec && code == conform::kDone;
  } catch (const IoError&) {
    return false;
  }
}

Json case_of(const char* id, const char* op, const std::vector<std::string>& inputs,
             const Json& attrs) {
  Json spec = {{"id", id}, {"op", op}, {"file", "tensors"}, {"attrs", attrs}, {"grads", {"x"}}};
  for (const std::string& name : inputs)
    spec["inputs"].push_back({{"name", name}});
  return spec;
}

Format ops() {
  nn::save_safetensors(scratch_folder() + "/tensors",
                       {{"in.x", ones({4, 3})}, {"in.mat2", ones({3, 4})}});
  Json of_slice = case_of("slice", "slice", {"x"}, Json::object());
  of_slice["expr"] = "x[1:3, ..., ::2]";
  const Json spec = {
      {"cases",
       {case_of("product", "matmul", {"x", "mat2"}, Json::object()),
        case_of("sum", "sum", {"x"}, {{"dim", {0, 1}}, {"keepdim", true}}),
        case_of("softmax", "softmax", {"x"}, {{"dim", 1}}), of_slice,
        case_of("pad", "pad", {"x"}, {{"pad", {1, 1}}, {"mode", "constant"}, {"value", 0.5}}),
        case_of("roll", "roll", {"x"}, {{"shifts", {1}}, {"dims", {0}}})}}};
  return {.name = "conform_ops", .seeds = {spec.dump()}, .read = [](const std::string& bytes) {
            const std::string path = write_scratch("ops.json", bytes);
            return runs_or_refuses(path, [&] {
              conform::OpOptions options;
              options.cases = path;
              options.folder = scratch_folder();
              options.out = scratch_folder() + "/results";
              return conform::run_ops(options);
            });
          }};
}

Format optimizers() {
  nn::save_safetensors(scratch_folder() + "/gradients",
                       {{"param.w", ones({2, 2})}, {"grads.w", ones({3, 2, 2})}});
  const Json spec = {
      {"inputs", "gradients"},
      {"steps", 3},
      {"optimizers",
       {{{"id", "sgd"}, {"optimizer", "SGD"}, {"args", {{"lr", 0.1}, {"momentum", 0.9}}}},
        {{"id", "adam"}, {"optimizer", "AdamW"}, {"args", {{"betas", {0.9, 0.99}}}}}}}};
  return {.name = "conform_optim", .seeds = {spec.dump()}, .read = [](const std::string& bytes) {
            const std::string path = write_scratch("optim.json", bytes);
            return runs_or_refuses(path, [&] {
              conform::OptimOptions options;
              options.spec = path;
              options.out = scratch_folder() + "/results";
              return conform::run_optimizers(options);
            });
          }};
}

Format schedulers() {
  const Json spec = {{"schedulers",
                      {{{"id", "step"},
                        {"base_lr", 0.1},
                        {"scheduler", "StepLR"},
                        {"args", {{"step_size", 3}, {"gamma", 0.5}}}},
                       {{"id", "plateau"},
                        {"base_lr", 0.1},
                        {"scheduler", "ReduceLROnPlateau"},
                        {"args", {{"patience", 2}}},
                        {"metrics", {1.0, 0.5, 0.6, 0.7}}}}}};
  return {
      .name = "conform_scheduler", .seeds = {spec.dump()}, .read = [](const std::string& bytes) {
        const std::string path = write_scratch("scheduler.json", bytes);
        return runs_or_refuses(path, [&] {
          conform::OptimOptions options;
          options.spec = path;
          options.out = scratch_folder() + "/results";
          return conform::run_schedulers(options);
        });
      }};
}

Format boxes() {
  nn::save_safetensors(scratch_folder() + "/shards", {{"move.src.rank0", ones({4, 3})}});
  const Json row = {{"id", "move"},     {"shape", {4, 3}}, {"src_ranks", {0}},
                    {"dst_ranks", {0}}, {"src", "S0"},     {"dst", "B"}};
  return {.name = "conform_boxes",
          .seeds = {Json::array({row}).dump()},
          .read = [](const std::string& bytes) {
            const std::string path = write_scratch("boxes.json", bytes);
            return runs_or_refuses(path, [&] {
              conform::BoxOptions options;
              options.table = path;
              options.in = scratch_folder() + "/shards";
              options.out = scratch_folder() + "/results";
              return conform::run_boxing(options);
            });
          }};
}

}  // namespace

void add_conform_formats(std::vector<Format>& formats) {
  formats.push_back(ops());
  formats.push_back(optimizers());
  formats.push_back(schedulers());
  formats.push_back(boxes());
}

}  // namespace flow::fuzz

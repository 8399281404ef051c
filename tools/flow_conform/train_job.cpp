#include "tools/flow_conform/train_job.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/default_dtype.h"
#include "nn/clip_grad.h"
#include "nn/job/array_file.h"
#include "nn/job/function.h"
#include "nn/job/module.h"
#include "nn/job/optimizer.h"
#include "nn/job/variable.h"
#include "nn/safetensors.h"
#include "ops/elementwise/cast.h"
#include "ops/shape/concat.h"
#include "tools/flow_conform/optimizer_spec.h"
#include "tools/flow_conform/train_log.h"
#include "tools/flow_conform/train_model.h"
#include "tools/flow_conform/train_step.h"

namespace flow::conform {

namespace {

using Arrays = std::map<std::string, Array>;

// Elements [begin, begin + numel) of an array, in another shape.
Array part_of(const Array& array, int64_t begin, const Shape& shape) {
  const int64_t offset = begin * static_cast<int64_t>(dtype_size(array.dtype()));
  return Array::copy_of(array.data() + offset, array.dtype(), shape);
}

Shape without_first(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.begin() + 1, shape.end()));
}

Array widened(const Array& array, DType floating) {
  if (!is_floating(array.dtype()) || array.dtype() == floating) return array;
  if (floating == float64) return {array.to_vector<double>(), array.shape()};
  return {array.to_vector<float>(), array.shape()};
}

// A tensor that files store as one: its parts, joined along dim 0.
Array joined(const std::vector<Array>& parts) {
  Shape shape = parts.front().shape();
  shape[0] = 0;
  std::vector<std::byte> bytes;
  for (const Array& part : parts) {
    const size_t size = static_cast<size_t>(part.numel()) * dtype_size(part.dtype());
    bytes.insert(bytes.end(), part.data(), part.data() + size);
    shape[0] += part.size(0);
  }
  return Array::copy_of(bytes.data(), parts.front().dtype(), shape);
}

// The rows of each device in mirrored view.
std::vector<Array> cut(const Array& batch, int64_t num_devices) {
  Shape shape = batch.shape();
  shape[0] /= num_devices;
  std::vector<Array> parts;
  for (int64_t i = 0; i < num_devices; ++i)
    parts.push_back(part_of(batch, i * shape.numel(), shape));
  return parts;
}

struct JobStep {
  double loss = 0;
  double grad_norm = 0;
  Array gradients;  // those of all parameters, concatenated
};

// What device 0 reports about the training while it is traced.
struct Traced {
  std::vector<std::pair<std::string, Shape>> gradients;
  double rate = 0;
};

class JobTraining {
 public:
  JobTraining(const TrainOptions& options, const JobLayout& layout, const Json& spec)
      : options_(options), layout_(layout), spec_(spec), folder_(options.folder) {
    for (auto& [name, array] : load_arrays(path_next_to(options.spec, spec.at("data"))))
      data_.emplace(name, widened(array, options.run.floating));
    const Shape& rows = data_.at("y").shape();
    if (layout.is_mirrored && rows[1] % layout.num_devices != 0) {
      throw NotSupported(
          str("batches of ", rows[1], " rows on ", layout.num_devices,
              " devices in mirrored view, which needs an equal number of rows for each device"));
    }
    job::config::device_num("cpu", layout.num_devices);
    make_step();
  }

  ~JobTraining() { job::close(); }

  JobTraining(const JobTraining&) = delete;
  JobTraining& operator=(const JobTraining&) = delete;

  void run() {
    const int64_t steps = options_.steps >= 0 ? options_.steps : spec_.at("steps").get<int64_t>();
    std::filesystem::create_directories(folder_);
    std::string log;
    for (int64_t i = 0; i < steps; ++i) {
      const JobStep step = step_(batch("x", i), batch("y", i));
      if (i == 0) save("grad_step0.safetensors", gradients_of(step));
      log += log_line(i, step.loss, step.grad_norm, traced_.rate);
    }
    save("final.safetensors", job::variables());
    write_text((folder_ / "log.jsonl").string(), log);
  }

 private:
  Array batch(const char* name, int64_t step) const {
    const Array& all = data_.at(name);
    const Shape shape = without_first(all.shape());
    return part_of(all, step % all.size(0) * shape.numel(), shape);
  }

  // The body of the job function.
  std::tuple<job::Blob, job::Blob, job::Blob> train(const job::Blob& x, const job::Blob& y) {
    set_default_dtype(options_.run.floating);
    auto model = job::get_module("", [this] { return model_of_init(); });
    const Tensor loss = mean_loss(model(x), y);
    job::optimizer::Rule([this](const std::vector<Tensor>& variables) {
      return optimizer_of(variables);
    }).minimize(loss);
    const Tensor norm = nn::utils::clip_grad_norm_(
        model.parameters(), INFINITY);  // infinity: computes the norm without clipping
    std::vector<Tensor> gradients;
    std::vector<std::pair<std::string, Shape>> names;
    for (const auto& [name, parameter] : model.named_parameters()) {
      if (!parameter.grad().defined()) continue;
      gradients.push_back(parameter.grad().detach().flatten());
      names.emplace_back(name, parameter.shape());
    }
    if (env::rank() == 0) traced_.gradients = std::move(names);
    return {loss, norm, cat(gradients)};
  }

  nn::AnyModule model_of_init() const {
    nn::StateDict init = nn::load_safetensors(path_next_to(options_.spec, spec_.at("init")));
    for (auto& [name, value] : init) {
      if (is_floating(value.dtype())) value = cast(value, options_.run.floating);
    }
    return make_model(spec_.at("model"), options_.run.floating, init);
  }

  std::unique_ptr<optim::Optimizer> optimizer_of(const std::vector<Tensor>& variables) {
    std::map<std::string, Tensor> params;
    for (size_t i = 0; i < variables.size(); ++i)
      params.emplace(str(i), variables[i]);
    const Json args = spec_.value("optimizer_args", Json::object());
    auto optimizer = make_optimizer({{"optimizer", spec_.at("optimizer")}, {"args", args}}, params);
    if (env::rank() == 0) traced_.rate = optimizer->lr();
    return optimizer;
  }

  void make_step() {
    const auto body = [this](const job::Blob& x, const job::Blob& y) { return train(x, y); };
    const Array &x = data_.at("x"), &y = data_.at("y");
    const Shape x_shape = without_first(x.shape()), y_shape = without_first(y.shape());
    if (!layout_.is_mirrored) {
      step_ = [step = job::global_function({.type = "train"}, job::Placeholder(x_shape, x.dtype()),
                                           job::Placeholder(y_shape, y.dtype()), body)](
                  const Array& inputs, const Array& targets) mutable {
        const auto [loss, norm, gradients] = step(inputs, targets);
        return JobStep{loss.to_vector<double>()[0], norm.to_vector<double>()[0], gradients};
      };
      return;
    }
    const auto part = [&](Shape shape) {
      shape[0] /= layout_.num_devices;
      return shape;
    };
    step_ = [step = job::global_function(
                 {.type = "train", .default_logical_view = job::mirrored_view()},
                 job::ListPlaceholder(part(x_shape), x.dtype()),
                 job::ListPlaceholder(part(y_shape), y.dtype()), body),
             count = layout_.num_devices](const Array& inputs, const Array& targets) mutable {
      const auto [losses, norms, gradients] = step(cut(inputs, count), cut(targets, count));
      double loss = 0;
      for (const Array& of_device : losses)
        loss += of_device.to_vector<double>()[0] / static_cast<double>(count);
      return JobStep{loss, norms.front().to_vector<double>()[0], gradients.front()};
    };
  }

  Arrays gradients_of(const JobStep& step) const {
    Arrays arrays;
    int64_t begin = 0;
    for (const auto& [name, shape] : traced_.gradients) {
      arrays.emplace(name, part_of(step.gradients, begin, shape));
      begin += shape.numel();
    }
    return arrays;
  }

  void save(const char* name, const Arrays& arrays) const {
    save_arrays((folder_ / name).string(), as_in_files(arrays));
  }

  // The same as the function of this name for tensors.
  static Arrays as_in_files(const Arrays& arrays) {
    Arrays result = arrays;
    for (const auto& [name, parts] : joined_names(names_of(arrays))) {
      std::vector<Array> pieces;
      for (const std::string& part : parts) {
        pieces.push_back(arrays.at(part));
        result.erase(part);
      }
      result.emplace(name, joined(pieces));
    }
    return result;
  }

  static std::vector<std::string> names_of(const Arrays& arrays) {
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays)
      names.push_back(name);
    return names;
  }

  const TrainOptions& options_;
  JobLayout layout_;
  const Json& spec_;
  std::filesystem::path folder_;
  Arrays data_;
  Traced traced_;
  std::function<JobStep(const Array& inputs, const Array& targets)> step_;
};

}  // namespace

std::optional<JobLayout> job_layout(const std::string& text) {
  for (const auto& [word, is_mirrored] : {std::pair("job", false), std::pair("mirrored", true)}) {
    if (!text.starts_with(word)) continue;
    JobLayout layout{.is_mirrored = is_mirrored};
    const char* const end = text.data() + text.size();
    const auto [stop, status] =
        std::from_chars(text.data() + std::strlen(word), end, layout.num_devices);
    if (status == std::errc() && stop == end && layout.num_devices > 0) return layout;
  }
  return std::nullopt;
}

ExitCode run_job_training(const TrainOptions& options, const JobLayout& layout) {
  if (flow::internal::current_thread_state != nullptr) {
    throw BadSpec("layout " + options.layout +
                  " starts its own ranks; run flow-conform without a launcher");
  }
  return run_spec(options.spec, [&](const Json& spec) {
    Report report;
    report.run("train", [&] {
      if (options.run.device != "cpu") throw NotSupported("device " + options.run.device);
      if (!options.schedule.empty() || options.micro_batches > 0) {
        throw NotSupported("schedules and micro-batches in job functions");
      }
      if (!options.timeline.empty()) throw NotSupported("timelines of job functions");
      JobTraining(options, layout, spec).run();
    });
    return report.exit_code();
  });
}

}  // namespace flow::conform

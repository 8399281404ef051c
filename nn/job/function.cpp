#include "nn/job/function.h"

#include "core/context.h"
#include "core/error.h"
#include "nn/job/rank_job.h"
#include "nn/job/session.h"

namespace flow::job {

namespace config {
void device_num(std::string_view device, int64_t count) {
  Session::get().set_device_num(device, count);
}

void manual_seed(uint64_t seed) {
  Session::get().set_seed(seed);
}
}  // namespace config

void close() {
  Session::get().close();
}

namespace internal {

std::shared_ptr<const Definition> define(const FunctionOptions& options, View placeholders,
                                         Definition definition) {
  if (options.type != "train" && options.type != "predict") {
    throw InvalidArgument(str("[job] unknown type of global_function; received \"", options.type,
                              "\"; use \"train\" or \"predict\""));
  }
  if (options.default_logical_view != placeholders) {
    throw InvalidArgument(placeholders == View::kMirrored
                              ? "[job] ListPlaceholder cannot be used in consistent view; use "
                                "Placeholder, or {.default_logical_view = mirrored_view()}"
                              : "[job] Placeholder cannot be used in mirrored view; use "
                                "ListPlaceholder, or {.default_logical_view = consistent_view()}");
  }
  definition.is_train = options.type == "train";
  definition.view = placeholders;
  auto shared = std::make_shared<Definition>(std::move(definition));
  Session::get().add(shared);
  return shared;
}

namespace {

void check_inputs(const Definition& definition, const Arrays& inputs, int64_t num_devices) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& spec = definition.inputs[i];
    if (definition.view == View::kMirrored &&
        static_cast<int64_t>(inputs[i].size()) != num_devices) {
      throw InvalidArgument(str("[job] argument ", i, " has the wrong number of arrays; received ",
                                inputs[i].size(), " for ", num_devices,
                                " devices; give one array for each device"));
    }
    for (const Array& array : inputs[i]) {
      if (array.shape() == spec.shape && array.dtype() == spec.dtype) continue;
      throw InvalidArgument(str("[job] argument ", i, " does not match its placeholder; received ",
                                array.shape(), ' ', array.dtype(), "; give ", spec.shape, ' ',
                                spec.dtype));
    }
  }
}

}  // namespace

void read_value(const Array& value, Arrays& arrays) {
  arrays.push_back({value});
}

void read_value(const std::vector<Array>& value, Arrays& arrays) {
  arrays.push_back(value);
}

void write_value(Array& value, Arrays& arrays, size_t& next) {
  value = std::move(arrays[next++].front());
}

void write_value(std::vector<Array>& value, Arrays& arrays, size_t& next) {
  value = std::move(arrays[next++]);
}

Arrays call(const std::shared_ptr<const Definition>& definition, const Arrays& inputs) {
  Session& session = Session::get();
  const int64_t num_devices = session.num_devices();
  check_inputs(*definition, inputs, num_devices);
  const bool is_mirrored = definition->view == View::kMirrored;
  std::vector<std::vector<Array>> results(static_cast<size_t>(num_devices));  // by device
  session.run([&](RankJob& job) {
    const auto device = static_cast<size_t>(env::rank());
    std::vector<Array> own;
    for (const std::vector<Array>& input : inputs)
      own.push_back(is_mirrored ? input[device] : input.front());
    results[device] = job.call(definition, own);
  });
  if (!is_mirrored) results.resize(1);
  Arrays by_result(results.front().size());
  for (std::vector<Array>& of_device : results) {
    for (size_t i = 0; i < of_device.size(); ++i)
      by_result[i].push_back(std::move(of_device[i]));
  }
  return by_result;
}

}  // namespace internal
}  // namespace flow::job

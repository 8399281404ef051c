// Shared by the job examples: digits as arrays, and the loop over their batches.
#pragma once

#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/digits_training.h"
#include "support/report.h"

namespace examples {

inline constexpr int64_t kJobBatch = 100;

struct JobBatch {
  std::vector<float> images;  // kJobBatch × 784
  std::vector<int32_t> labels;
};

// The training digits in batches. The main thread must stay free of tensors, so a rank reads them.
inline std::vector<JobBatch> load_job_batches(const Arguments& arguments) {
  std::vector<JobBatch> batches;
  flow::run_ranks(1, [&] {
    const flow::data::Mnist train = load_digits(arguments).first;
    for (int64_t first = 0; first + kJobBatch <= train.size(); first += kJobBatch) {
      const auto part = [&](const flow::Tensor& x) {
        return flow::slice(x, 0, first, first + kJobBatch);
      };
      batches.push_back(
          {part(train.images()).to_vector<float>(), part(train.labels()).to_vector<int32_t>()});
    }
  });
  return batches;
}

inline double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

// Runs `step(batch)`, which returns the loss of every sample, repeatedly over the batches. Prints
// the mean loss every 20 steps. Returns the exit status of run_main.
template <class Step>
int run_job(const Arguments& arguments, int64_t default_steps, double lr, const Step& step) {
  try {
    const std::vector<JobBatch> batches = load_job_batches(arguments);
    flow::job::config::device_num(arguments.device, 2);
    flow::job::config::manual_seed(arguments.seed);
    std::ofstream log(arguments.log);
    if (!arguments.log.empty() && !log) {
      throw flow::IoError("[log] cannot write " + arguments.log + "; check folder and permissions");
    }
    flow::job::CheckPoint check_point;
    if (arguments.init.empty())
      check_point.init();
    else
      check_point.load(arguments.init);
    const int64_t steps = arguments.steps > 0 ? arguments.steps : default_steps;
    for (int64_t i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const double loss = mean_of(step(batches[static_cast<size_t>(i) % batches.size()]));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (i % 20 == 0 || i == steps - 1) {
        std::printf("%lld: %.6f\n", static_cast<long long>(i), loss);
        std::fflush(stdout);
      }
      if (log.is_open()) {
        log << "{\"step\": " << i << ", \"loss\": " << json_number(loss)
            << ", \"lr\": " << shortest(lr)
            << ", \"samples_per_s\": " << shortest(kJobBatch / took.count()) << "}\n";
      }
    }
    log.flush();
    if (!arguments.log.empty() && !log) {
      throw flow::IoError("[log] cannot write " + arguments.log + "; is the disk full?");
    }
    if (!arguments.save.empty()) check_point.save(arguments.save);
    return 0;
  } catch (const std::exception& error) {
    return report_error(error);
  }
}

}  // namespace examples

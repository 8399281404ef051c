// The predicted execution of a plan: what each rank does when, if kernels take as long as the cost
// model says. It follows from the programs alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/program/program.h"
#include "tools/page/lanes.h"

namespace flow::tools {

// What a rank does together with others.
struct Exchange {
  TimeSpan time;  // from the rank's arrival on
  size_t step = 0;
  int32_t micro_batch = graph::kNoMicroBatch;
};

struct RankForecast {
  int64_t rank = 0;
  // By position (graph/program/buffer_uses.h): a step of a block that runs once, or the run of
  // another block.
  std::vector<TimeSpan> positions;
  std::vector<Exchange> exchanges;
  double busy_us = 0;      // in kernels
  double exchange_us = 0;  // in collectives and messages, waiting included
};

struct Forecast {
  std::vector<RankForecast> ranks;  // those that were asked for
  double span_us = 0;               // until the last rank ends
  // Why there are no times; empty if there are.
  std::string obstacle;
};

// A forecast visits every step of every rank; plans with more are not simulated.
inline constexpr size_t kMostForecastSteps = 40'000'000;

// A number of a plan file as a time or a size: neither negative, infinite nor beyond 2^62.
double sane(double number);

// Predicted microseconds of a step without its communication.
double predicted_us(const graph::Program& program, const graph::Step& step);

// Simulates all ranks and returns what `ranks` do. A collective ends on all members when the last
// one has come and the predicted time of its route has passed; a send does not wait.
Forecast forecast(const graph::Programs& programs, const std::vector<int64_t>& ranks);

}  // namespace flow::tools

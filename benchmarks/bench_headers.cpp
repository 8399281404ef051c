// The compile time of <flow/flow.h>, compared with that of the standard headers that users include
// anyway.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "benchmarks/machine_limits.h"

namespace {

namespace fs = std::filesystem;

// Seconds of the best of five compilations of a file with these includes; negative if one fails.
double compile_seconds(const fs::path& folder, const std::string& includes) {
  const fs::path source = folder / "unit.cpp";
  std::ofstream(source) << includes << "int main() {}\n";
  const std::string command = "g++ -std=c++20 -O2 -c -I" FLOW_INCLUDE_DIR
                              " -I" FLOW_GENERATED_INCLUDE_DIR " -o " +
                              (folder / "unit.o").string() + " " + source.string();
  double best = -1;
  for (int i = 0; i < 6; ++i) {  // the first one fills the file cache
    const auto start = std::chrono::steady_clock::now();
    if (std::system(command.c_str()) != 0) return -1;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0 && (best < 0 || took.count() < best)) best = took.count();
  }
  return best;
}

void flow_header(benchmark::State& state) {
  const fs::path folder = fs::temp_directory_path() / "flow_bench_headers";
  fs::create_directories(folder);
  double ours = 0, standard = 0;
  for (auto _ : state) {
    standard = compile_seconds(folder,
                               "#include <string>\n#include <vector>\n#include <memory>\n"
                               "#include <functional>\n#include <span>\n");
    ours = compile_seconds(folder, "#include <flow/flow.h>\n");
  }
  fs::remove_all(folder);
  if (ours < 0 || standard < 0) {
    state.SkipWithError("g++ failed");
    return;
  }
  flow::bench::compare_time(state, ours, standard, "s");
  state.counters["ratio_to_std"] = ours / standard;
}

BENCHMARK(flow_header)->Name("headers/flow.h")->Iterations(1);

}  // namespace

int main(int argc, char** argv) {
  return flow::bench::run_benchmarks(argc, argv);
}

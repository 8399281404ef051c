// flow-calibrate measures this machine and writes what flow reads at its next start.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "boxing/cost.h"
#include "core/context.h"
#include "core/error.h"
#include "ops/kernel/cpu_features.h"
#include "ops/kernel/cpu_model.h"
#include "ops/linear/cpu_table.h"
#include "tools/flow_calibrate/costs.h"
#include "tools/flow_calibrate/products.h"

namespace {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 64, kFileFailure = 74 };

// Replaces the file at once, so that a program that starts meanwhile reads the old or the new one.
void write_file(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path next = flow::str(path.string(), ".", getpid());
  std::ofstream file(next, std::ios::binary);
  file << text;
  file.close();
  if (file) std::filesystem::rename(next, path, error);
  if (!file || error) {
    std::filesystem::remove(next, error);
    throw flow::IoError(flow::str("[flow-calibrate] cannot write ", path.string(),
                                  "; check the folder and the space left"));
  }
}

// A bar on the terminal; nothing if errors go to a file.
void draw_progress(double share) {
  constexpr int kWidth = 40;
  static int drawn = -1;
  if (isatty(STDERR_FILENO) == 0) return;
  const int percent = static_cast<int>(100 * share);
  if (percent == drawn) return;
  drawn = percent;
  const auto full = static_cast<size_t>(kWidth * std::clamp(share, 0.0, 1.0));
  std::cerr << "\r[" << std::string(full, '#') << std::string(kWidth - full, '.') << "] " << percent
            << " %" << (percent >= 100 ? "\n" : "") << std::flush;
}

void print(const flow::ProductReport& report, const std::string& path) {
  std::cout << report.num_measured << " classes of matrix products measured on " << report.table.cpu
            << "; own kernels reach " << report.own_vs_best
            << " of the fastest library's speed (geometric mean), at least "
            << report.least_own_vs_best << "; depth " << report.table.depth << "; "
            << report.num_changed << " choices differ from the table before\n"
            << path << " is read at the next start\n";
}

void calibrate(std::string path) {
  if (path.empty()) path = flow::ops::cpu_table_path();
  if (path.empty())
    throw flow::IoError(
        "[flow-calibrate] there is no home folder; give the file with --output FILE");
  const flow::ops::CpuTable base = flow::ops::committed_cpu_table(flow::ops::active_isa());
  const flow::ProductReport report = flow::calibrate_products(base, draw_progress);
  write_file(path, to_string(report.table));
  print(report, path);
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "an unnamed CPU";
}

// "Zen3" for zen3, "Avx2" for avx2, "IceLakeServer" for ice-lake-server.
std::string in_pascal_case(const std::string& words) {
  std::string name;
  bool begins = true;
  for (const char c : words) {
    if (c != '-')
      name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '-';
  }
  return name;
}

// The table of an instruction set, or that of this CPU, which takes own kernels unless a library
// is faster twice.
void write_source(const std::string& path, bool is_of_cpu) {
  const std::string isa(to_string(flow::ops::active_isa()));
  if (isa == "baseline") {
    throw flow::InvalidArgument(
        "[flow-calibrate] there are tables for avx2 and avx512; the instruction set in use is "
        "baseline; use another machine");
  }
  std::string name = in_pascal_case(isa);
  flow::ProductReport report;
  if (is_of_cpu) {
    name = in_pascal_case(flow::ops::cpu_model()) + name;
    report = flow::calibrate_products({}, draw_progress);
  } else {
    report = flow::measure_all_products(draw_progress);
  }
  write_file(path, flow::to_source(report.table, cpu_name(), name));
  print(report, path);
}

void show() {
  const flow::ops::CpuTable& table = flow::ops::cpu_table();
  std::cout << "this CPU: " << flow::ops::cpu_and_isa() << ", " << flow::ops::product_libraries()
            << "\ntable: " << table.origin << ", measured on " << table.cpu << " with "
            << table.libraries << "\nfile: " << flow::ops::cpu_table_path() << '\n';
}

void calibrate_costs(const std::string& path) {
  const flow::boxing::CostTable costs = flow::measure_costs();
  if (flow::env::rank() == 0) write_file(path, to_string(costs));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures in less than a minute which library multiplies matrices of each shape fastest on "
      "this CPU, and writes the file that flow reads at its next start. Nothing else should run "
      "meanwhile.");
  std::string output, source, costs;
  app.add_option("--output", output, "the file, instead of ~/.cache/flow/cpu-….table");
  CLI::App* const show_command =
      app.add_subcommand("show", "Prints which table programs on this machine use.");
  CLI::App* const costs_command = app.add_subcommand(
      "costs",
      "Measures the cost table for FLOW_COST_TABLE: flowrun -n 2 flow-calibrate costs FILE");
  costs_command->add_option("file", costs, "the file to write")->required();
  CLI::App* const source_command = app.add_subcommand(
      "source",
      "Measures every class of shapes, which takes some minutes, and writes C++ for "
      "ops/linear/gemm_table_ISA.cpp. For a narrower instruction set than the CPU's, set "
      "FLOW_CPU_ISA=avx2 OPENBLAS_CORETYPE=Haswell DNNL_MAX_CPU_ISA=AVX2.");
  source_command->add_option("file", source, "the file to write")->required();
  bool is_of_cpu = false;
  source_command->add_flag(
      "--cpu", is_of_cpu,
      "Measures every second class, from own kernels, for ops/linear/gemm_table_CPU_ISA.cpp.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  try {
    if (show_command->parsed()) {
      show();
    } else if (costs_command->parsed()) {
      calibrate_costs(costs);
    } else if (source_command->parsed()) {
      write_source(source, is_of_cpu);
    } else {
      calibrate(output);
    }
    return kDone;
  } catch (const flow::IoError& error) {
    std::cerr << "flow-calibrate: " << error.what() << '\n';
    return kFileFailure;
  } catch (const std::exception& error) {
    std::cerr << "flow-calibrate: " << error.what() << '\n';
    return kFailed;
  }
}

#include "core/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

#include "core/error.h"

namespace flow {

namespace {
constexpr std::array kVariables = {
    EnvVariable{"FLOW_CHECK", "0",
                "1: recompute and compare every cached decision; check data that must be equal"},
    EnvVariable{"FLOW_COST_TABLE", "the committed one",
                "file with the cost table that decides layouts and redistributions"},
    EnvVariable{"FLOW_CPU_ISA", "best of the machine",
                "widest instruction set that kernels may use: baseline, avx2, avx512"},
    EnvVariable{"FLOW_CPU_TABLE", "~/.cache/flow/cpu-*.table",
                "file with what flow-calibrate measured on this CPU"},
    EnvVariable{"FLOW_CUDA_CACHE", "1",
                "0: every device tensor has an allocation of its own, as memory checkers need it"},
    EnvVariable{
        "FLOW_CUDA_DETERMINISTIC", "1",
        "0: kernels may add in an order that changes from run to run, where that is faster"},
    EnvVariable{
        "FLOW_CUDA_LIBS", "",
        "folders, separated by colons, in which cuBLAS, cuDNN and NCCL are looked for first"},
    EnvVariable{"FLOW_FAST_REDUCE", "0",
                "1: NCCL adds in its own order, which is faster and gives other bits"},
    EnvVariable{
        "FLOW_FUSE_LEAST_ELEMENTS", "8192",
        "the fewest elements of a tensor whose elementwise ops compiled steps fuse; smaller "
        "tensors stay in the first cache, where fusion saves nothing"},
    EnvVariable{"FLOW_GRAPH_VERIFY", "0",
                "1: compare the first run of every plan of a graph with eager mode"},
    EnvVariable{"FLOW_JOB_SECRET", "",
                "secret shared by the hosts of a job; flowrun reads it and hides it from ranks"},
    EnvVariable{"FLOW_NUM_THREADS", "cores / ranks on the host", "compute threads of one rank"},
    EnvVariable{"FLOW_PLAN_CACHE", "",
                "folder in which graphs store compiled plans to load them again later"},
    EnvVariable{"FLOW_RANKS", "",
                "threads:N: run the program's main on N thread ranks; flowrun sets it"},
    EnvVariable{"FLOW_RECOMPUTE_LEAST_BYTES", "8388608",
                "the fewest bytes of a result of gelu or silu that compiled steps compute again in "
                "backward instead of keeping it"},
    EnvVariable{"FLOW_SHARED_MEMORY", "1",
                "0: process ranks of one host send messages instead of sharing memory"},
    EnvVariable{"FLOW_STATUS_DIR", "",
                "folder in which ranks write how they ended; flowrun sets it"},
    EnvVariable{"FLOW_TERMINAL_WIDTH", "that of standard output",
                "columns of the terminal that shows the output, 0: none; flowrun sets it"},
    EnvVariable{"FLOW_TIMELINE", "",
                "folder in which ranks record what they do; merged to timeline.json at the end"},
    EnvVariable{"FLOW_TIMEOUT_S", "300",
                "seconds that a rank waits for others before it throws an error"},
};
}  // namespace

std::span<const EnvVariable> env_table() {
  return kVariables;
}

std::string env_string(std::string_view name, std::string_view fallback) {
  const bool is_known = std::any_of(kVariables.begin(), kVariables.end(),
                                    [&](const EnvVariable& v) { return v.name == name; });
  FLOW_ASSERT(is_known, "environment variable ", name, " is not in the table");
  const char* value = std::getenv(std::string(name).c_str());
  return std::string(value == nullptr || *value == '\0' ? fallback : std::string_view(value));
}

int64_t env_int(std::string_view name, int64_t fallback) {
  const std::string text = env_string(name, "");
  if (text.empty()) return fallback;
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) {
    throw InvalidArgument(str("[env] ", name, " must be an integer; got '", text, "'"));
  }
  return value;
}

bool env_flag(std::string_view name) {
  return env_int(name, 0) != 0;
}

std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return home;
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> text;
  getpwuid_r(getuid(), &entry, text.data(), text.size(), &found);
  return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

}  // namespace flow

#include "tools/flowrun/launch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/flowrun/daemon.h"
#include "tools/flowrun/nodes.h"

namespace flowrun {

namespace {

int64_t num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// The names of the FLOW_ variables that must be the same on all ranks.
std::vector<std::string> common_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (name.starts_with("FLOW_") && name != "FLOW_NUM_THREADS" && name != "FLOW_STATUS_DIR" &&
        name != kTerminalWidth) {
      names.push_back(name);
    }
  }
  names.emplace_back(kTerminalWidth);  // environment_of() sets it
  return names;
}

// The columns that a rank has for its output, which flowrun forwards; 0 if no terminal shows it.
int64_t terminal_width_of_ranks(const Options& options) {
  constexpr int64_t kUsual = 80;  // of terminals that do not say
  if (!options.output_dir.empty() || isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const int64_t width = is_known ? size.ws_col : kUsual;
  const bool has_prefix = options.has_prefix && !options.are_threads;
  const size_t prefix = has_prefix ? std::to_string(kMostRanks).size() + 3 : 0;
  return std::max<int64_t>(1, width - static_cast<int64_t>(prefix));
}

bool is_program(const std::string& path) {
  return std::filesystem::is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

// The link is read once: it ends in " (deleted)" after the file was replaced.
const std::string& own_path() {
  static const std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  return path;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : std::string();
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  for (size_t colon = 0; colon != std::string::npos && !rest.empty();) {
    colon = rest.find(':');
    std::string candidate = rest.substr(0, colon) + '/' + name;
    if (is_program(candidate)) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

std::string why_not_found(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (!is_path) {
    const std::string here =
        std::filesystem::exists(name) ? "; for the file here give ./" + name : "";
    return "cannot find the program " + name + " in PATH" + here;
  }
  if (std::filesystem::is_directory(name)) return name + " is a folder, not a program";
  if (std::filesystem::exists(name)) {
    return "the file " + name + " is not executable; build a program, or run chmod +x " + name;
  }
  return "cannot find the program " + name;
}

std::vector<std::string> environment_of(const Options& options, const std::string& session) {
  const int64_t cores = num_cores();
  const int64_t share = std::max<int64_t>(1, cores / options.ranks);
  const int64_t threads = options.num_threads > 0 ? options.num_threads : share;
  std::vector<std::string> environment = {
      "FLOW_STATUS_DIR=" + session,
      std::string(kTerminalWidth) + '=' + std::to_string(terminal_width_of_ranks(options))};
  const auto set_unless_given = [&](const std::string& name, const std::string& value) {
    if (options.num_threads > 0 || std::getenv(name.c_str()) == nullptr) {
      environment.push_back(name + '=' + value);
    }
  };
  set_unless_given("FLOW_NUM_THREADS", std::to_string(threads));
  set_unless_given("OMP_NUM_THREADS", std::to_string(threads));
  if (options.ranks > cores) set_unless_given("OMP_WAIT_POLICY", "passive");
  // Streams that share a queue of the device wait for each other. A rank of a pipeline has more
  // streams than the 8 queues that CUDA gives it by default.
  if (std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") == nullptr)
    environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS=32");
  // CUDA may wait for all work of a device when it loads a kernel at its first launch, and this
  // work may be a receive whose sender waits likewise.
  if (std::getenv("CUDA_MODULE_LOADING") == nullptr)
    environment.emplace_back("CUDA_MODULE_LOADING=EAGER");
  if (options.are_threads) {
    environment.push_back("FLOW_RANKS=threads:" + std::to_string(options.ranks));
  }
  return environment;
}

// MPI writes all its files to the session's folder. MPI itself waits only when it starts and ends;
// at all other times flow waits.
std::vector<std::string> launcher_command(const Options& options, const std::string& session,
                                          const std::string& flowrun, const Nodes* nodes) {
  const int64_t ranks = nodes == nullptr ? options.ranks : nodes->num_ranks();
  const std::string networks = nodes == nullptr ? "lo" : nodes->networks();
  std::vector<std::string> words = {"mpirun",          "-n",        std::to_string(ranks),
                                    "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"odls_base_sigkill_timeout", "0"}, {"orte_base_help_aggregate", "1"},
      {"orte_execute_quiet", "1"},        {"btl", "vader,self,tcp"},
      {"btl_tcp_if_include", networks},   {"oob_tcp_if_include", networks},
      {"orte_tmpdir_base", session}};
  if (nodes == nullptr) {
    parameters.emplace_back("btl_vader_backing_directory", session);
  } else {
    // This flowrun starts all daemons, and each stays a child of the flowrun of its node. The host
    // names are meaningful only to flowrun. The keepers find out the rest on their nodes.
    words.insert(words.end(), {"--host", nodes->hosts(), "--map-by", "slot", "--wdir", "/",
                               "--leave-session-attached"});
    for (const std::string& name : common_variables())
      words.insert(words.end(), {"-x", name});
    parameters.insert(parameters.end(), {{"plm", "rsh"},
                                         {"plm_rsh_agent", make_agent(session, flowrun)},
                                         {"plm_rsh_no_tree_spawn", "1"},
                                         {"orte_do_not_resolve", "1"}});
  }
  for (const auto& [name, value] : parameters)
    words.insert(words.end(), {"--mca", name, value});
  return words;
}

}  // namespace flowrun

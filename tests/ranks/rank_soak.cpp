// Trains a model on two ranks, saves every 20 steps, and is killed at random times:
//
//   rank_soak FOLDER STEPS [END SEED]
//
// Ends after STEPS steps, or soon after the time END, in seconds since the epoch. With END, one of
// the ranks is killed at a random moment of each attempt, except after END. FOLDER/losses has a
// float64 for each step. A step that is done again after a restart must give the same loss, else
// the program returns 5. FOLDER/samples has a line for each rank and every 100 steps of an attempt:
//
//   rank attempt step pages descriptors threads files of-flowrun-pages -descriptors -threads
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <flow/flow.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
namespace nn = flow::nn;
namespace sbp = flow::sbp;

constexpr int64_t kStepsOfSave = 20, kStepsOfSample = 100;
constexpr int kOtherLoss = 5;

// Entries of a folder of /proc or of a file system.
int64_t count_in(const std::string& folder) {
  std::error_code error;  // the process may be ending
  int64_t count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

int64_t resident_pages(const std::string& process) {
  int64_t size = 0, resident = 0;
  std::ifstream(process + "/statm") >> size >> resident;
  return resident;
}

std::string usage_of(const std::string& process) {
  return std::to_string(resident_pages(process)) + ' ' + std::to_string(count_in(process + "/fd")) +
         ' ' + std::to_string(count_in(process + "/task"));
}

// The outermost process above this one that is called flowrun: the others are its keepers.
std::string launcher() {
  std::string found = "/proc/self";
  for (long process = getppid(); process > 1;) {
    const std::string folder = "/proc/" + std::to_string(process);
    std::string line, state, name;
    std::getline(std::ifstream(folder + "/comm"), name);
    if (name == "flowrun") found = folder;
    std::getline(std::ifstream(folder + "/stat"), line);
    std::istringstream rest(line.substr(line.rfind(')') + 1));
    rest >> state >> process;
  }
  return found;
}

size_t lines_of(const std::string& path) {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);)
    ++count;
  return count;
}

// Ends this process at a random moment if it is the turn of its rank.
void plan_end(const std::string& kills, std::time_t end, uint64_t seed) {
  const size_t attempt = lines_of(kills);
  flow::env::barrier();  // all ranks have counted
  std::mt19937_64 random(seed + attempt);
  const auto victim = static_cast<int64_t>(random() % 2);
  const auto pause = std::chrono::milliseconds(random() % 2000 + (random() % 16 == 0 ? 20'000 : 0));
  if (flow::env::rank() != victim) return;
  std::thread([=] {
    std::this_thread::sleep_for(pause);
    if (std::time(nullptr) >= end) return;
    std::ofstream(kills, std::ios::app) << victim << '\n';
    raise(SIGKILL);
  }).detach();
}

// The file is made if it is not there, and keeps what it has.
FILE* open_for_update(const std::string& path) {
  std::fclose(std::fopen(path.c_str(), "ab"));
  return std::fopen(path.c_str(), "r+b");
}

// The losses of all steps, in a file that keeps them over restarts.
class Losses {
 public:
  explicit Losses(const std::string& path) : file_(open_for_update(path)) {}

  ~Losses() { std::fclose(file_); }

  Losses(const Losses&) = delete;
  Losses& operator=(const Losses&) = delete;

  // False if the step had another loss before.
  bool add(int64_t step, double loss) {
    const auto place = static_cast<long>(step) * static_cast<long>(sizeof(loss));
    double before = loss;
    std::fseek(file_, place, SEEK_SET);
    const bool is_again = std::fread(&before, sizeof(before), 1, file_) == 1;
    if (is_again && before != loss) return false;
    std::fseek(file_, place, SEEK_SET);
    return std::fwrite(&loss, sizeof(loss), 1, file_) == 1 && std::fflush(file_) == 0;
  }

 private:
  std::FILE* file_;
};

// True if a rank says so.
bool is_any(bool mine) {
  return flow::comm::all_reduce(flow::full({1}, mine ? 1.0 : 0.0)).item<double>() > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 64;
  const std::string path = argv[1];
  const int64_t num_steps = std::strtoll(argv[2], nullptr, 10);
  const bool is_killed = argc == 5;
  const auto end = static_cast<std::time_t>(is_killed ? std::strtoll(argv[3], nullptr, 10) : 0);
  const std::string kills = path + "/kills";
  const std::string flowrun = launcher();
  const size_t attempt = lines_of(kills);
  if (is_killed) plan_end(kills, end, std::strtoull(argv[4], nullptr, 10));

  const flow::Placement world("cpu", {0, 1});
  flow::manual_seed(3);
  flow::models::Mlp model({32, 64, 8});
  model.to_global(world, sbp::broadcast);
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 0.001});
  const nn::CheckpointFolder folder(path + "/saved");
  int64_t step = 0;
  if (const auto checkpoint = folder.newest()) {
    model.load_state_dict(checkpoint->read_all("model."));
    optimizer.load_state_dict(checkpoint->read_all("optimizer."));
    flow::set_generator_state(checkpoint->generator());
    step = checkpoint->step();
  }
  Losses losses(path + "/losses");
  for (int64_t done = 1; step < num_steps; ++done) {
    const flow::Tensor x = flow::randn({16, 32}, {.placement = world, .sbp = sbp::split(0)});
    const flow::Tensor loss = flow::square(flow::dropout(model(x), {.p = 0.25}) - 1.0).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    const auto value = loss.item<double>();
    if (flow::env::rank() == 0 && !losses.add(step, value)) return kOtherLoss;
    ++step;
    if (done % kStepsOfSample == 0) {
      std::ostringstream line;
      line << flow::env::rank() << ' ' << attempt << ' ' << done << ' ' << usage_of("/proc/self")
           << ' ' << count_in("/dev/shm") << ' ' << usage_of(flowrun) << '\n';
      std::ofstream(path + "/samples", std::ios::app) << line.str() << std::flush;
    }
    if (step % kStepsOfSave != 0) continue;
    folder.save(step,
                nn::joined({{"model", model.state_dict()}, {"optimizer", optimizer.state_dict()}}));
    if (is_killed && is_any(std::time(nullptr) >= end)) break;
  }
  return 0;
}

// Trains a small model with dropout on all ranks, saves a checkpoint every third step, and prints
// each loss: rank_train FOLDER [STEP]. When the last rank first reaches STEP, it is killed. A
// restarted job continues from the newest checkpoint.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <flow/flow.h>

namespace {

namespace nn = flow::nn;
namespace sbp = flow::sbp;

// True the first time; the mark then stays for later runs.
bool is_first_time(const std::string& mark) {
  if (std::filesystem::exists(mark)) return false;
  std::ofstream(mark) << "killed";
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const std::string path = argv[1];
  const int64_t last_step = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : -1;
  constexpr int64_t kSteps = 12;
  std::vector<int64_t> ranks(static_cast<size_t>(flow::env::world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  const flow::Placement world("cpu", ranks);

  flow::manual_seed(3);
  flow::models::Mlp model({6, 8, 4});
  model.to_global(world, sbp::broadcast);
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  const nn::CheckpointFolder folder(path);
  int64_t step = 0;
  if (const auto checkpoint = folder.newest()) {
    model.load_state_dict(checkpoint->read_all("model."));
    optimizer.load_state_dict(checkpoint->read_all("optimizer."));
    flow::set_generator_state(checkpoint->generator());
    step = checkpoint->step();
  }
  for (; step < kSteps; ++step) {
    const flow::Tensor x = flow::randn({8, 6}, {.placement = world, .sbp = sbp::split(0)});
    const flow::Tensor loss = flow::square(flow::dropout(model(x), {.p = 0.25}) - 1.0).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (flow::env::rank() == flow::env::world_size() - 1 && step == last_step &&
        is_first_time(path + ".killed")) {
      raise(SIGKILL);
    }
    const auto value = loss.item<double>();
    if (flow::env::rank() == 0) {
      std::printf("step %d: loss %a\n", static_cast<int>(step), value);
      std::fflush(stdout);
    }
    if ((step + 1) % 3 != 0) continue;
    folder.save(step + 1,
                nn::joined({{"model", model.state_dict()}, {"optimizer", optimizer.state_dict()}}));
  }
  return 0;
}

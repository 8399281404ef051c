// A job in which one rank makes an error: rank_fault FAULT [RANK]. All ranks first sum a number
// together; then rank RANK (the last one if it is not given) makes the error that FAULT names.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <flow/flow.h>
#include <unistd.h>

#include "boxing/comm/communicator.h"
#include "core/context.h"

namespace {

namespace sbp = flow::sbp;

flow::boxing::Communicator& world() {
  return flow::boxing::world_communicator(*flow::thread_state().context);
}

// Sums `count` numbers over all ranks.
void meet(int64_t count, flow::DType dtype = flow::float32, const char* op = "sum",
          flow::Site site = flow::Site::here()) {
  std::vector<std::byte> data(static_cast<size_t>(count) * flow::dtype_size(dtype));
  world().all_reduce(data.data(), data.data(), count, dtype, flow::boxing::ReduceOp::kSum,
                     {.op = op, .site = site});
}

void sleep_ms(int64_t duration) {
  std::this_thread::sleep_for(std::chrono::milliseconds(duration));
}

void wait_for_signal() {
  for (;;)
    pause();
}

flow::Placement all_ranks() {
  std::vector<int64_t> ranks(static_cast<size_t>(flow::env::world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  return {"cpu", ranks};
}

// Redistributes a tensor that is split by rows to all ranks.
void gather_rows(const flow::Shape& shape, flow::Site site = flow::Site::here()) {
  const auto x = flow::ones(shape, {.placement = all_ranks(), .sbp = sbp::split(0)});
  x.to_global({.sbp = sbp::broadcast}, site);
}

// What the faulty rank does instead of the second sum of 1000 numbers.
int do_wrong(const std::string& fault) {
  if (fault == "return3") return 3;
  if (fault == "return0") return 0;
  if (fault == "exit1") std::exit(1);
  if (fault == "exit0") std::exit(0);
  if (fault == "exit200") std::exit(200);
  if (fault == "_exit0") _exit(0);
  if (fault == "throw") throw std::runtime_error("a planted exception");
  if (fault == "argument") throw flow::InvalidArgument("[fault] a planted argument");
  if (fault == "memory") throw std::bad_alloc();
  if (fault == "io") throw flow::IoError("[fault] a planted file");
  if (fault == "folder") std::filesystem::directory_iterator("/no/such/folder");
  if (fault == "damaged") throw flow::BadFile("[fault] a planted damage");
  if (fault == "abort") std::abort();
  if (fault == "segv") raise(SIGSEGV);
  if (fault == "kill") raise(SIGKILL);
  if (fault == "stop") raise(SIGSTOP);
  if (fault == "op") world().barrier({.op = "wait", .site = flow::Site::here()});
  if (fault == "count") meet(1001);
  if (fault == "dtype") meet(1000, flow::float64);
  if (fault == "shape") gather_rows({2, 8});  // with the same number of elements
  if (fault == "order") {
    meet(1000, flow::float32, "second");
    meet(1000, flow::float32, "first");
  }
  if (fault == "slow") sleep_ms(1600);
  if (fault == "slow" || fault == "busy") meet(1000);
  if (fault == "missing") wait_for_signal();
  if (fault == "layout") {
    const auto x = flow::ones({4, 4}, {.placement = all_ranks(), .sbp = sbp::split(0)});
    x.to_global({.sbp = sbp::split(1)});
  }
  return 0;
}

// What the other ranks do then.
int do_right(const std::string& fault) {
  if (fault == "layout") {
    const auto x = flow::ones({4, 4}, {.placement = all_ranks(), .sbp = sbp::split(0)});
    x.to_global({.sbp = sbp::broadcast});
    return 0;
  }
  if (fault == "shape") {
    gather_rows({4, 4});
    return 0;
  }
  if (fault == "order") {
    meet(1000, flow::float32, "first");
    meet(1000, flow::float32, "second");
    return 0;
  }
  meet(1000);
  return 0;
}

// All ranks sum large data until the faulty rank is hit during any of its actions.
void sum_until_hit(const std::string& fault, int64_t faulty) {
  const bool is_hit = flow::env::rank() == faulty;
  std::thread hit([=] {
    sleep_ms(200);
    if (is_hit) kill(getpid(), fault == "kill_busy" ? SIGKILL : SIGSTOP);
  });
  hit.detach();
  for (;;)
    meet(int64_t{3} << 20);
}

// Faults in which the other ranks also do not call flow: they compute without a call, or hang.
void do_without_flow(const std::string& fault, bool is_faulty) {
  if (fault == "busy" && is_faulty) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(7);
    while (std::chrono::steady_clock::now() < end)
      continue;
  }
  if (fault == "stop_alone" && is_faulty) raise(SIGSTOP);
  if (fault == "caught" && is_faulty) {
    try {
      meet(1000);
    } catch (const flow::DistributedError&) {
      std::cout << "caught\n" << std::flush;
    }
  }
  if (fault == "caught" || fault == "stop_alone") wait_for_signal();
}

struct Inner : flow::nn::Module<Inner> {
  flow::nn::Linear fc{register_module("fc", flow::nn::Linear(4, 3))};

  flow::Tensor forward(const flow::Tensor& x) { return fc(x); }
};

struct Outer : flow::nn::Module<Outer> {
  Inner inner{register_module("inner", Inner())};

  flow::Tensor forward(const flow::Tensor& x) { return inner(x); }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const std::string fault = argv[1];
  const int64_t faulty =
      argc > 2 ? std::strtoll(argv[2], nullptr, 10) : flow::env::world_size() - 1;
  meet(1);
  if (fault == "asked_early") {
    if (flow::env::rank() == faulty) raise(SIGTERM);  // before any call of stop_requested
    return flow::env::stop_requested() ? 0 : 5;
  }
  if (fault == "none") {  // prints the layout that an op gives its result
    const auto rows = flow::ones({64, 64}, {.placement = all_ranks(), .sbp = sbp::split(0)});
    const auto addends = flow::ones({64, 64}, {.placement = all_ranks(), .sbp = sbp::split(1)})
                             .to_global({.sbp = sbp::partial_sum});
    std::cout << flow::str("result ", (rows + addends).sbp(), "\n") << std::flush;
    return 0;
  }
  if (fault == "who") {
    std::cout << flow::str("rank ", flow::env::rank(), ": ", flow::env::local_rank(), " on node ",
                           flow::env::node_rank(), "\n")
              << std::flush;
    return 0;
  }
  if (fault == "until_asked") {
    flow::env::stop_requested();  // after this call the signal ends no rank
    std::cout << "ready\n" << std::flush;
    while (!flow::env::stop_requested())
      sleep_ms(5);
    std::cout << "asked to stop\n" << std::flush;
    return 0;
  }
  if (fault == "kill_busy" || fault == "stop_busy") sum_until_hit(fault, faulty);
  if (fault == "module" && flow::env::rank() == faulty) Outer()(flow::ones({2, 5}));
  do_without_flow(fault, flow::env::rank() == faulty);
  const int code = flow::env::rank() == faulty ? do_wrong(fault) : do_right(fault);
  if (code == 0) std::cout << "done\n" << std::flush;
  return code;
}

// A job in which the process of one rank misbehaves: rank_process_fault FAULT. All ranks but the
// last first sum a number, then the last one does so too, unless FAULT keeps it from that.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <flow/flow.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxing/comm/communicator.h"
#include "core/context.h"
#include "core/launcher.h"

namespace {

void meet() {
  float number = 1;
  flow::boxing::world_communicator(*flow::thread_state().context)
      .all_reduce(&number, &number, 1, flow::float32, flow::boxing::ReduceOp::kSum,
                  {.op = "sum", .site = flow::Site::here()});
}

void hang() {
  for (;;)
    pause();
}

[[gnu::noinline]] int64_t use_stack(int64_t depth) {
  volatile char block[4096] = {};
  block[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : use_stack(depth - 1) + block[0];
}

// Runs `body` in a child, and waits for it.
void in_a_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) body();
  if (child > 0) waitpid(child, nullptr, 0);
}

int own_queue = -1;  // a descriptor of the program that waits for events

std::vector<flow::comm::Work> own_calls;  // of the rank's process, which ends before they do

// Before the first flow call.
const std::map<std::string, std::function<void()>> kEarly = {
    {"early_exit", [] { std::exit(0); }},
    {"close_own", [] { own_queue = epoll_create1(0); }},
    {"fork_early_exit_5", [] { in_a_child([] { std::exit(5); }); }},
    {"early_sleep", hang},
    {"early_loop", [] {
       for (volatile bool goes_on = true; goes_on;)
         continue;
     }}};

// After the first flow call.
const std::map<std::string, std::function<void()>> kLate = {
    {"atexit_sleep", [] { std::atexit(hang); }},
    {"close_all",
     [] {
       for (int file = 3; file < 1024; ++file)
         close(file);
       hang();
     }},
    {"close_own",
     [] {
       close(own_queue);
       sleep(2);  // the watchdog looks twice a second
     }},
    {"overflow", [] { use_stack(int64_t{1} << 40); }},
    {"null", [] { *static_cast<volatile int*>(nullptr) = 1; }},
    {"exit0", [] { std::exit(0); }},
    {"_exit0", [] { _exit(0); }},
    {"fork_exit", [] { in_a_child([] { std::exit(0); }); }},
    {"fork_exit_5", [] { in_a_child([] { std::exit(5); }); }},
    {"fork_call",
     [] {
       in_a_child([] {
         try {
           flow::ones({2}).sum();
           meet();
           std::cout << "the child called flow\n" << std::flush;
         } catch (const flow::Error& error) {
           std::cout << error.what() << '\n' << std::flush;
         }
         _exit(0);
       });
     }},
    {"fork_throw", [] { in_a_child([] { throw std::runtime_error("an error of the child"); }); }},
    {"fork_stay", [] {
       if (fork() > 0) return;
       setsid();
       for (int file = 0; file < 3; ++file)
         close(file);
       hang();
     }}};

void do_if_known(const std::map<std::string, std::function<void()>>& faults,
                 const std::string& fault) {
  if (const auto found = faults.find(fault); found != faults.end()) found->second();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const std::string fault = argv[1];
  const flow::Launcher launcher = flow::find_launcher();
  const bool is_process = launcher.world_size > 1;
  const auto is_last = [] { return flow::env::rank() == flow::env::world_size() - 1; };
  if (is_process && launcher.rank == launcher.world_size - 1) {
    if (fault == "atexit_sleep_first") std::atexit(hang);
    do_if_known(kEarly, fault);
  }
  meet();
  if (fault == "all_exit") std::exit(0);
  if (fault == "usage") std::exit(64);
  if (fault == "planning") {
    const flow::PlanningWorld planned(flow::env::world_size());
    const flow::Placement all("cpu", {0, 1});
    const flow::Tensor x = flow::ones({2}, {.placement = all, .sbp = flow::sbp::split(0)});
    try {
      static_cast<void>(x.to_global({.sbp = flow::sbp::broadcast}));
    } catch (const flow::InvalidArgument& error) {
      std::cout << error.what() << '\n' << std::flush;
    }
  }
  if (fault == "static_call") {
    const int64_t from = is_last() ? 0 : flow::env::world_size() - 1;
    own_calls.push_back(flow::comm::irecv(flow::zeros({100'000}), from));
  }
  if (fault == "exit_in_call") {
    if (!is_last()) sleep(1);
    flow::comm::TensorWork sum = flow::comm::all_reduce_async(flow::ones({100'000}));
    if (is_last()) std::exit(0);
    sum.wait();
    std::cout << "done\n" << std::flush;
    return 0;
  }
  if (is_last()) do_if_known(kLate, fault);
  meet();
  std::cout << "done\n" << std::flush;
  return 0;
}

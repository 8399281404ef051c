// What ranks of emulated devices pass to each other, next to the same in host memory:
// rank_devices CASE. Rank 0 prints "rank 0: same, with NCCL" or what differs.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <flow/flow.h>

#include "tests/support/cuda_emulator/library_hooks.h"

namespace {

using flow::Tensor;
namespace comm = flow::comm;
namespace sbp = flow::sbp;

using Call = std::function<Tensor(const Tensor&)>;

int64_t me() {
  return flow::env::rank();
}

std::vector<double> values(const Tensor& x) {
  return flow::cast(x.to("cpu"), flow::float64).flatten().to_vector<double>();
}

bool report(const std::vector<std::string>& differing) {
  std::string text = differing.empty() ? "same" : "differing:";
  for (const std::string& name : differing)
    text += ' ' + name;
  const bool has_used_nccl = cuda_emulator::library_calls().nccl > 0;
  std::printf("rank %d: %s, with%s NCCL\n", static_cast<int>(me()), text.c_str(),
              has_used_nccl ? "" : "out");
  std::fflush(stdout);
  return differing.empty();
}

// Compares each call on the device with the same call in host memory.
bool compare(const std::vector<std::pair<std::string, Call>>& calls) {
  std::vector<std::string> differing;
  for (const flow::Shape& shape : {flow::Shape{7, 3}, flow::Shape{70, 301}}) {
    const Tensor x = flow::randn(shape) * 10;
    const Tensor there = x.to("cuda");
    for (const auto& [name, call] : calls) {
      if (values(call(there)) != values(call(x))) differing.push_back(name);
    }
  }
  return report(differing);
}

bool run_collectives() {
  return compare({
      {"all_reduce", [](const Tensor& x) { return comm::all_reduce(x); }},
      {"reduce", [](const Tensor& x) { return comm::reduce(x, 1); }},
      {"reduce_scatter", [](const Tensor& x) { return comm::reduce_scatter(x); }},
      {"all_gather", [](const Tensor& x) { return comm::all_gather(x.narrow(0, 0, 1 + me())); }},
      {"gather", [](const Tensor& x) { return comm::gather(x.narrow(0, 0, 3), 1); }},
      {"scatter", [](const Tensor& x) { return comm::scatter(x, 1); }},
      {"broadcast", [](const Tensor& x) { return comm::broadcast(x, 1); }},
      {"all_to_all",
       [](const Tensor& x) {
         return comm::all_to_all(x, {.rows = {1 + me(), x.size(0) - 1 - me()}});
       }},
      {"global tensor",
       [](const Tensor& x) {
         const flow::Placement both(std::string(flow::device_type_name(x.device())), {0, 1});
         return x.to_global({.placement = both, .sbp = sbp::partial_sum})
             .to_global({.sbp = sbp::split(1)})
             .to_local();
       }},
  });
}

// NCCL adds in another order, which changes nothing for small integers.
bool run_sums() {
  std::vector<std::string> differing;
  const Tensor x = flow::full({600, 5}, static_cast<double>(me() + 1), {.dtype = flow::float32});
  const auto sum = values(comm::all_reduce(x.to("cuda")));
  if (sum != std::vector<double>(3000, 3)) differing.push_back("all_reduce");
  return report(differing);
}

bool run_on_one_device() {
  flow::cuda::set_device(0);
  return run_collectives();
}

// NCCL fails on rank 1, so rank 0 would wait forever.
bool run_failure() {
  const Tensor x = flow::ones({3}, {.device = "cuda"});
  static_cast<void>(comm::all_reduce(x));
  comm::barrier();
  cuda_emulator::fail_nccl_of(1);
  comm::barrier();
  static_cast<void>(comm::all_reduce(x));
  return report({});
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, bool (*)()> cases = {{"collectives", run_collectives},
                                                   {"sums", run_sums},
                                                   {"one_device", run_on_one_device},
                                                   {"failure", run_failure}};
  const auto found = argc == 2 ? cases.find(argv[1]) : cases.end();
  if (found == cases.end()) return 64;
  return found->second() ? 0 : 1;
}

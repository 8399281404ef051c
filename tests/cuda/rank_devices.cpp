// What ranks of emulated devices pass to each other, next to the same in host memory:
// rank_devices CASE. Rank 0 prints "rank 0: same, with NCCL" or what differs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <flow/flow.h>

#include "boxing/comm/device_copy.h"
#include "boxing/comm/mpi_transport.h"
#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "core/context.h"
#include "core/device/device_graph.h"
#include "core/device/device_memory.h"
#include "core/device/device_time.h"
#include "graph/run/compiled_step.h"
#include "tests/cuda/compiled_trainings.h"
#include "tests/support/cuda_emulator/library_hooks.h"
#include "tests/support/training_layouts.h"

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
  const bool has_shared = cuda_emulator::num_opened_blocks() > 0;
  std::printf("rank %d: %s, with%s NCCL%s\n", static_cast<int>(me()), text.c_str(),
              has_used_nccl ? "" : "out", has_shared ? ", by pointers" : "");
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

bool run_different_calls() {
  flow::cuda::set_device(0);
  const Tensor x = flow::ones({300}, {.device = "cuda"});
  static_cast<void>(comm::all_reduce(x));
  static_cast<void>(me() == 0 ? comm::all_reduce(x) : comm::broadcast(x, 0));
  return report({});
}

Tensor filled(int64_t size, double value, const char* device = "cuda") {
  return flow::full({size}, value, {.dtype = flow::float32, .device = device});
}

bool has(const Tensor& x, double value) {
  return values(x) == std::vector<double>(static_cast<size_t>(x.numel()), value);
}

// Notes the names of checks that fail.
class Checks {
 public:
  void expect(bool holds, const std::string& name) {
    if (!holds) failed_.push_back(name);
  }

  bool report() const { return ::report(failed_); }

 private:
  std::vector<std::string> failed_;
};

// Rank 0's part is empty, and begins where an allocation of the device ends.
bool gather_an_empty_part() {
  flow::cuda::set_device(0);
  constexpr int64_t kSize = 5 << 20;
  const Tensor x = filled(kSize, 2);
  const int64_t own = 3 * me();
  const Tensor all = comm::all_gather(x.narrow(0, kSize - own, own));
  Checks checks;
  checks.expect(all.numel() == 3 && has(all, 2), "all_gather");
  return checks.report();
}

constexpr int64_t kSmall = 40;      // buffered
constexpr int64_t kLarge = 30'000;  // not buffered: 120 KB

// Both directions at once, and each rank waits for its send first.
void exchange(Checks& checks, int64_t size) {
  const Tensor x = filled(size, static_cast<double>(me()) + 1);
  const Tensor received = filled(size, 0);
  comm::Work sending = comm::isend(x, 1 - me());
  comm::Work receiving = comm::irecv(received, 1 - me());
  sending.wait();
  x.fill_(7);
  receiving.wait();
  checks.expect(has(received + 1, static_cast<double>(3 - me())), "exchange");
}

// Messages of a tag come in order; the rank may ask for another tag first.
void match_by_tag(Checks& checks, int64_t size) {
  const std::vector<std::pair<int64_t, double>> sent = {{1, 10}, {1, 11}, {2, 20}};
  if (me() == 0) {
    std::vector<comm::Work> works;
    for (const auto& [tag, value] : sent)
      works.push_back(comm::isend(filled(size, value), 1, {.tag = tag}));
    for (comm::Work& work : works)
      work.wait();
    return;
  }
  for (const size_t i : {2, 0, 1}) {
    const Tensor received = filled(size, 0);
    comm::recv(received, 0, {.tag = sent[i].first});
    checks.expect(has(received, sent[i].second), "tag");
  }
}

// A receive that was posted for one tag leaves messages of another one alone.
void post_other_tag_first(Checks& checks, int64_t size) {
  if (me() == 0) {
    comm::barrier();
    comm::send(filled(size, 5), 1, {.tag = 5});
    comm::send(filled(size, 4), 1, {.tag = 4});
    return;
  }
  const Tensor fourth = filled(size, 0);
  const Tensor fifth = filled(size, 0);
  comm::Work of_fourth = comm::irecv(fourth, 0, {.tag = 4});
  comm::Work of_fifth = comm::irecv(fifth, 0, {.tag = 5});
  comm::barrier();
  of_fourth.wait();
  of_fifth.wait();
  checks.expect(has(fourth, 4) && has(fifth, 5), "posted tag");
}

// A message makes progress while its sender is in another call.
void progress_in_other_calls(Checks& checks) {
  if (me() == 0) {
    comm::Work sending = comm::isend(filled(kLarge, 3), 1);
    comm::barrier();
    sending.wait();
    return;
  }
  const Tensor received = filled(kLarge, 0);
  comm::recv(received, 0);
  comm::barrier();
  checks.expect(has(received, 3), "progress");
}

void mix_host_and_devices(Checks& checks, int64_t size) {
  for (const int64_t on_device : {0, 1}) {
    const Tensor x = filled(size, 3, me() == on_device ? "cuda" : "cpu");
    if (me() == 0) {
      comm::send(x + 1, 1);
    } else {
      comm::recv(x, 0);
      checks.expect(has(x, 4), "host memory");
    }
  }
}

void exchange_once() {
  Checks checks;
  exchange(checks, kLarge);
}

bool run_messages() {
  Checks checks;
  for (const int64_t size : {kSmall, kLarge}) {
    exchange(checks, size);
    match_by_tag(checks, size);
    post_other_tag_first(checks, size);
    mix_host_and_devices(checks, size);
  }
  progress_in_other_calls(checks);
  const Tensor received = filled(kSmall, 0);
  comm::send(filled(kSmall, static_cast<double>(me())), 1 - me());  // both send first
  comm::recv(received, 1 - me());
  checks.expect(has(received, static_cast<double>(1 - me())), "both send first");
  comm::barrier();
  return checks.report();
}

bool run_messages_on_one_device() {
  flow::cuda::set_device(0);
  return run_messages();
}

// Many messages are on their way at once, in both directions, so events are used again.
void send_many(Checks& checks, int64_t size) {
  for (int round = 0; round < 5; ++round) {
    std::vector<Tensor> received;
    std::vector<comm::Work> works;
    for (int i = 0; i < 3 * (5 - round); ++i) {
      const Tensor x = filled(size, static_cast<double>(100 * me() + i));
      received.push_back(filled(size, -1));
      works.push_back(comm::irecv(received.back(), 1 - me(), {.tag = i % 2}));
      works.push_back(comm::isend(x, 1 - me(), {.tag = i % 2}));
    }
    for (comm::Work& work : works)
      work.wait();
    for (size_t i = 0; i < received.size(); ++i) {
      const auto expected = static_cast<double>(100 * (1 - me())) + static_cast<double>(i);
      checks.expect(has(received[i], expected), flow::str("message ", i));
    }
  }
}

// The data of messages is never in host memory.
bool run_messages_by_pointers() {
  flow::cuda::set_device(0);
  Checks checks;
  for (const int64_t size : {kSmall, kLarge}) {
    const Tensor x = filled(size, static_cast<double>(me()) + 1);
    const Tensor received = filled(size, 0);
    comm::barrier();
    const int64_t before = cuda_emulator::num_host_bytes();
    comm::Work receiving = comm::irecv(received, 1 - me());
    comm::send(x, 1 - me());
    receiving.wait();
    comm::barrier();
    checks.expect(cuda_emulator::num_host_bytes() == before, "host memory");
    checks.expect(has(received, static_cast<double>(2 - me())), "values");
    send_many(checks, size);
  }
  return checks.report();
}

// The receiver of a message does not wait for it, because of an exception. Nobody else gets the
// host memory to which it comes while it may still come.
bool drop_receive() {
  namespace boxing = flow::boxing;
  flow::RankContext& rank = *flow::thread_state().context;
  comm::barrier();  // by what the rank then keeps
  const auto world = std::make_shared<boxing::ProcessWorld>(
      boxing::internal::connect_mpi_by_messages(int64_t{1} << 30));
  rank.slot_ptr<boxing::ProcessWorld>() = world;
  const auto both = boxing::make_process_communicator(rank, {0, 1}, me());
  const boxing::Fingerprint here{.site = flow::Site::here()};
  boxing::Fingerprint on_device = here;
  on_device.device = flow::DeviceType::kCuda;
  constexpr auto kBytes = static_cast<int64_t>(kLarge * sizeof(float));
  const auto x = std::make_shared<Tensor>(filled(kLarge, 3));
  Checks checks;
  if (me() == 0) {
    boxing::Transfer sending = both->isend(x->impl().data(), kBytes, 1, 5, on_device);
    comm::barrier();
    comm::barrier();  // nothing is done for the message meanwhile
    both->wait(std::move(sending));
    both->barrier(here);
  } else {
    comm::barrier();
    boxing::Transfer receiving = both->irecv(x->impl().data(), kBytes, 0, 5, on_device);
    receiving->memory = x;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end)
      world->advance();  // the rank learns of the message and shows where it is to come
    receiving.reset();
    const flow::Ref<flow::Storage> next = flow::allocate_staging(rank, kBytes);
    auto* const numbers = reinterpret_cast<float*>(next->data());
    std::fill_n(numbers, kLarge, 4.0F);
    comm::barrier();
    both->barrier(here);
    checks.expect(std::all_of(numbers, numbers + kLarge, [](float one) { return one == 4; }),
                  "memory of another message");
  }
  rank.slot_ptr<boxing::ProcessWorld>() = nullptr;
  return checks.report();
}

bool run_pipeline() {
  Checks checks;
  const auto plainly = [](int /*step*/, const std::function<Tensor()>& run) { return run(); };
  const std::vector<double> expected = flow::train_in_stages("cpu", plainly);
  const std::vector<double> actual = flow::train_in_stages("cuda", plainly);
  for (size_t i = 0; i < expected.size(); ++i) {
    checks.expect(std::abs(actual[i] - expected[i]) <= 1e-4 + 1e-4 * std::abs(expected[i]),
                  flow::str(actual[i], " instead of ", expected[i]));
  }
  return checks.report();
}

struct Replicas {
  std::vector<double> losses;
  std::vector<double> weights;
  int64_t num_in_background = 0;  // steps of the program
};

// Trains replicas in compiled steps; `before_step` is called before each.
Replicas train_replicas(
    const char* where, const flow::nn::OverlapOptions& overlap,
    const std::function<void(int step)>& before_step = [](int) {}) {
  namespace nn = flow::nn;
  flow::manual_seed(6);
  nn::Sequential net(nn::Linear(20, 60), nn::ReLU(), nn::Linear(60, 50), nn::Linear(50, 30));
  net.to(where);
  const flow::Placement both(where, {0, 1});
  net.to_global(both, sbp::broadcast);
  flow::optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  flow::MlpStep graph(net, sgd);
  graph.config().set_overlap(overlap);
  const flow::TensorOptions options{.placement = both, .sbp = sbp::split(0)};
  Replicas trained;
  for (int step = 0; step < 5; ++step) {
    before_step(step);
    const Tensor x = flow::randn({8, 20}, options), target = flow::randn({8, 30}, options);
    trained.losses.push_back(graph(x, target).item());
    if (step > 0) continue;
    for (const auto& it : graph.compile(x, target).plan().program().steps)
      trained.num_in_background += it.in_background ? 1 : 0;
  }
  for (const Tensor& weight : net.parameters()) {
    const std::vector<double> all = values(weight.detach().to_local());
    trained.weights.insert(trained.weights.end(), all.begin(), all.end());
  }
  return trained;
}

bool train_with_transfers() {
  Checks checks;
  const Replicas plain = train_replicas("cuda", {.enabled = false});
  const Replicas overlapped = train_replicas("cuda", flow::kOverlapsAll);
  const Replicas expected = train_replicas("cpu", {.enabled = false});
  checks.expect(plain.num_in_background == 0 && overlapped.num_in_background >= 2, "background");
  checks.expect(overlapped.losses == plain.losses, "losses");
  checks.expect(overlapped.weights == plain.weights, "weights");
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    checks.expect(std::abs(plain.losses[i] - expected.losses[i]) <= 1e-4,
                  flow::str(plain.losses[i], " instead of ", expected.losses[i]));
  }
  return checks.report();
}

bool train_with_transfers_on_one_device() {
  flow::cuda::set_device(0);
  return train_with_transfers();
}

// Rank 0 waits for a transfer of a step that rank 1 never begins.
bool run_killed_in_transfer() {
  flow::cuda::set_device(0);
  static_cast<void>(train_replicas("cuda", flow::kOverlapsAll, [](int step) {
    if (step < 2) return;
    comm::barrier();
    if (me() == 1) raise(SIGKILL);
  }));
  return report({});
}

struct Pipeline {
  int64_t width = 4;
  int64_t micro_batches = 1;
  flow::pipeline::ScheduleRule schedule = flow::pipeline::one_f_one_b();
};

struct TrainPipeline : flow::nn::Graph<TrainPipeline> {
  flow::StageList model;

  TrainPipeline(const flow::StageList& m, flow::optim::Optimizer& optimizer, const Pipeline& how)
      : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(how.micro_batches).set_schedule(how.schedule);
  }

  Tensor build(const Tensor& x, const Tensor& weights) {
    const Tensor loss = flow::sum(flow::square(model(x)) * weights);
    loss.backward();
    return loss;
  }
};

// The weights of the rank's stage after a training, and the most bytes that a later step has moved
// between host memory and the device.
std::pair<std::vector<double>, int64_t> train_pipeline(const char* where, const Pipeline& how) {
  namespace nn = flow::nn;
  static int64_t width;
  width = how.width;
  flow::manual_seed(3);
  flow::StageList model(2, [] { return nn::Sequential(nn::Linear(width, width), nn::Tanh()); });
  model.to(where);
  const flow::Placement first(where, {0}), last(where, {1});
  model.place({first, last});
  flow::optim::SGD sgd(model.parameters(), {.lr = 0.01});
  TrainPipeline graph(model, sgd, how);
  int64_t most_bytes = 0;
  for (int step = 0; step < 4; ++step) {
    const Tensor x = flow::rand({16, width}, {.placement = first, .sbp = sbp::broadcast});
    const Tensor weights = flow::rand({16, width}, {.placement = last, .sbp = sbp::broadcast});
    comm::barrier();
    const int64_t before = cuda_emulator::num_host_bytes();
    static_cast<void>(graph(x, weights));
    if (step > 0) most_bytes = std::max(most_bytes, cuda_emulator::num_host_bytes() - before);
  }
  std::vector<double> all;
  for (const Tensor& weight : model.parameters()) {
    if (!weight.placement().contains(me())) continue;
    const std::vector<double> own = values(weight.detach().to_local());
    all.insert(all.end(), own.begin(), own.end());
  }
  return {all, most_bytes};
}

// Edges of random pipelines between processes of one device never pass through host memory.
bool run_pipelines_by_pointers() {
  flow::cuda::set_device(0);
  Checks checks;
  std::mt19937 random(5);
  const auto below = [&](uint32_t limit) { return static_cast<int64_t>(random() % limit); };
  for (int i = 0; i < 6; ++i) {
    const std::vector<flow::pipeline::ScheduleRule> rules = {
        flow::pipeline::gpipe(), flow::pipeline::one_f_one_b(), flow::pipeline::zb_h1()};
    const Pipeline how{.width = 40 + below(20),
                       .micro_batches = int64_t{1} << below(4),
                       .schedule = rules[static_cast<size_t>(below(3))]};
    const auto [weights, host_bytes] = train_pipeline("cuda", how);
    const std::vector<double> expected = train_pipeline("cpu", how).first;
    checks.expect(host_bytes < 16 * 40 * 4, flow::str(host_bytes, " bytes through host memory"));
    for (size_t k = 0; k < expected.size(); ++k)
      checks.expect(std::abs(weights[k] - expected[k]) <= 1e-4, flow::str("pipeline ", i));
  }
  return checks.report();
}

// Rank 1 ends while rank 0 waits for a message of it.
bool run_killed_in_message() {
  flow::cuda::set_device(0);
  exchange_once();
  comm::barrier();
  if (me() == 1) raise(SIGKILL);
  comm::recv(filled(kLarge, 1), 1);
  return report({});
}

bool run_message_of_wrong_size() {
  flow::cuda::set_device(0);
  exchange_once();
  if (me() == 0) comm::send(filled(kLarge, 1), 1);
  if (me() == 1) comm::recv(filled(kLarge - 1, 1), 0);
  return report({});
}

// Rank 1 never receives.
bool run_lost_message() {
  if (me() == 0) comm::send(filled(kLarge, 1), 1, {.tag = 3});
  if (me() == 1) comm::recv(filled(kLarge, 1), 0, {.tag = 4});
  return report({});
}

bool run_lost_message_on_one_device() {
  flow::cuda::set_device(0);
  exchange_once();
  return run_lost_message();
}

// NCCL cannot connect one side of each direction between the ranks.
bool run_messages_without_senders() {
  cuda_emulator::refuse_nccl_of(0);
  return run_messages();
}

bool run_messages_without_receivers() {
  cuda_emulator::refuse_nccl_of(1);
  return run_messages();
}

bool run_collectives_without_a_member() {
  cuda_emulator::refuse_nccl_of(1);
  return run_collectives();
}

// NCCL fails on rank 0, which sends.
bool run_message_failure() {
  comm::barrier();
  cuda_emulator::fail_nccl_of(0);
  if (me() == 0) comm::send(filled(kLarge, 1), 1);
  if (me() == 1) comm::recv(filled(kLarge, 1), 0);
  return report({});
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

// NCCL fails on rank 0 after the call has returned, so the device of rank 0 would wait forever.
bool run_failure_of_queued_work() {
  const Tensor x = flow::ones({3}, {.device = "cuda"});
  static_cast<void>(comm::all_gather(x));
  comm::barrier();
  cuda_emulator::fail_queued_nccl_of(0);
  const Tensor all = comm::all_gather(x);
  if (me() == 0) static_cast<void>(all.to("cpu"));  // raises: it is not what was gathered
  if (me() == 1) comm::barrier();
  return report({});
}

bool run_failure_of_queued_message() {
  exchange_once();
  cuda_emulator::fail_queued_nccl_of(0);
  if (me() == 0) comm::send(filled(kLarge, 1), 1);
  if (me() == 1) comm::recv(filled(kLarge, 1), 0);
  flow::cuda::synchronize();
  comm::barrier();
  return report({});
}

// A thread that has used no device yet, as the one that attends to messages while the rank
// computes.
bool ask_on_another_thread() {
  flow::RankContext& rank = *flow::thread_state().context;
  const flow::boxing::DevicePointPtr point = flow::boxing::queued_work(rank);
  std::thread([&] { static_cast<void>(flow::boxing::is_reached(*point)); }).join();
  Checks checks;
  checks.expect(cuda_emulator::library_calls().mistakes == 0, cuda_emulator::last_mistake());
  return checks.report();
}

// All that a thread may free that has used no device yet.
bool free_on_another_thread() {
  flow::RankContext& rank = *flow::thread_state().context;
  const Tensor x = filled(kLarge, 1);
  Tensor freed = x + x;
  flow::boxing::DevicePointPtr point = flow::boxing::queued_work(rank);
  flow::DeviceMark mark = flow::DeviceMark::now(rank);
  auto memory = std::make_shared<flow::CaptureMemory>();
  flow::DeviceGraph graph = flow::DeviceGraph::capture(rank, memory, [&] { x.fill_(2); });
  graph.launch(rank);
  std::thread([&] {
    freed = {};
    point = {};
    mark = {};
    graph = {};
    memory = {};
  }).join();
  Checks checks;
  checks.expect(has(x, 2), "graph");
  checks.expect(cuda_emulator::library_calls().mistakes == 0, cuda_emulator::last_mistake());
  return checks.report();
}

}  // namespace

int main(int argc, char** argv) {
  cuda_emulator::allow_one_context();
  const std::map<std::string, bool (*)()> cases = {
      {"collectives", run_collectives},
      {"sums", run_sums},
      {"one_device", run_on_one_device},
      {"different_calls", run_different_calls},
      {"empty_part", gather_an_empty_part},
      {"messages", run_messages},
      {"messages_one_device", run_messages_on_one_device},
      {"dropped_receive", drop_receive},
      {"pipeline", run_pipeline},
      {"messages_by_pointers", run_messages_by_pointers},
      {"pipelines_by_pointers", run_pipelines_by_pointers},
      {"killed_in_message", run_killed_in_message},
      {"message_of_wrong_size", run_message_of_wrong_size},
      {"lost_message_one_device", run_lost_message_on_one_device},
      {"transfers", train_with_transfers},
      {"transfers_one_device", train_with_transfers_on_one_device},
      {"killed_in_transfer", run_killed_in_transfer},
      {"lost_message", run_lost_message},
      {"message_failure", run_message_failure},
      {"asked_on_another_thread", ask_on_another_thread},
      {"freed_on_another_thread", free_on_another_thread},
      {"messages_without_senders", run_messages_without_senders},
      {"messages_without_receivers", run_messages_without_receivers},
      {"collectives_without_a_member", run_collectives_without_a_member},
      {"failure_of_queued_work", run_failure_of_queued_work},
      {"failure_of_queued_message", run_failure_of_queued_message},
      {"failure", run_failure}};
  const auto found = argc == 2 ? cases.find(argv[1]) : cases.end();
  if (found == cases.end()) return 64;
  return found->second() ? 0 : 1;
}

// Runs collectives, redistributions and training steps on all ranks of its job. Prints a digest of
// all data that each rank has seen, so that jobs of different kinds can be compared bit for bit.
//
//   rank_digest            as the rank of a job, or as rank 0 of 1
//   rank_digest THREADS    on thread ranks
#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <flow/flow.h>

#include "boxing/comm/communicator.h"
#include "boxing/comm/mpi_transport.h"
#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/ranks/process_ranks.h"
#include "core/context.h"
#include "core/hash.h"

namespace {

namespace sbp = flow::sbp;
using flow::Tensor;
using flow::boxing::Communicator;
using flow::boxing::Fingerprint;
using flow::boxing::ReduceOp;

class Digest {
 public:
  void add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      hasher_.add(static_cast<uint64_t>(static_cast<const unsigned char*>(data)[i]));
  }

  void add(const Tensor& local) {
    const std::vector<float> values = local.to_vector<float>();
    add(values.data(), values.size() * sizeof(float));
  }

  uint64_t value() const { return hasher_.value(); }

 private:
  flow::Hasher hasher_;
};

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values)
    value = normal(random);
  return values;
}

// Runs reductions of every dtype, at sizes that cover every algorithm, and collectives that move
// bytes.
void run_collectives(Communicator& group, Digest& digest) {
  const Fingerprint what{.site = flow::Site::here()};
  const int64_t ranks = group.size();
  const auto rank = static_cast<uint64_t>(flow::env::rank());
  for (const int64_t count : {int64_t{0}, int64_t{7}, int64_t{1000}, int64_t{70001}}) {
    for (int code = 0; code < flow::kNumDTypes; ++code) {
      flow::dispatch_all(static_cast<flow::DType>(code), [&]<class T>() {
        const std::vector<float> values = numbers(count, 100 * rank + static_cast<uint64_t>(code));
        std::vector<std::array<T, 1>> source(values.size()), target(values.size());
        for (size_t i = 0; i < values.size(); ++i)
          source[i][0] = T(values[i]);
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
          group.all_reduce(source.data(), target.data(), count, flow::dtype_of<T>, op, what);
          digest.add(target.data(), target.size() * sizeof(T));
          group.reduce(source.data(), target.data(), count, flow::dtype_of<T>, op, ranks - 1, what);
          digest.add(target.data(), target.size() * sizeof(T));
        }
        std::vector<int64_t> counts(static_cast<size_t>(ranks), 0);
        counts[0] = count / 3;
        counts.back() += count - count / 3;
        group.reduce_scatter(source.data(), target.data(), counts, flow::dtype_of<T>,
                             ReduceOp::kSum, what);
        digest.add(target.data(), target.size() * sizeof(T));
      });
    }
    std::vector<float> mine = numbers(count, rank + 7);
    std::vector<int64_t> bytes(static_cast<size_t>(ranks), 4 * count);
    std::vector<float> all(static_cast<size_t>(count * ranks));
    const auto add_all = [&] { digest.add(all.data(), all.size() * sizeof(float)); };
    group.all_gather(mine.data(), all.data(), bytes, what);
    add_all();
    std::vector<float> turned(all.size());
    group.all_to_all(all.data(), bytes, turned.data(), bytes, what);
    digest.add(turned.data(), turned.size() * sizeof(float));
    group.gather(mine.data(), all.data(), bytes, 0, what);
    add_all();
    group.scatter(all.data(), mine.data(), bytes, ranks - 1, what);
    digest.add(mine.data(), mine.size() * sizeof(float));
    group.broadcast(all.data(), 4 * count * ranks, ranks - 1, what);
    add_all();
    group.barrier(what);
    if (ranks == 1) continue;
    const int64_t next = (group.position() + 1) % ranks;
    const int64_t previous = (group.position() + ranks - 1) % ranks;
    auto receiving = group.irecv(all.data(), 4 * count, previous, 3, what);
    auto sending = group.isend(mine.data(), 4 * count, next, 3, what);
    group.wait(std::move(receiving));
    group.wait(std::move(sending));
    digest.add(all.data(), static_cast<size_t>(count) * sizeof(float));
  }
}

flow::Placement all_ranks() {
  std::vector<int64_t> ranks(static_cast<size_t>(flow::env::world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  return {"cpu", ranks};
}

void run_redistributions(Digest& digest) {
  const std::vector<flow::Sbp> layouts = {sbp::split(0), sbp::split(1), sbp::broadcast,
                                          sbp::partial_sum};
  for (const flow::Shape& shape : {flow::Shape{7, 5}, flow::Shape{130, 67}}) {
    for (const flow::Sbp from : layouts) {
      for (const flow::Sbp to : layouts) {
        const Tensor whole = flow::randn(shape, {.placement = all_ranks(), .sbp = sbp::broadcast});
        const Tensor x = whole.to_global({.sbp = from});
        digest.add(x.to_global({.sbp = to}).to_local());
        const flow::Placement last("cpu", {flow::env::world_size() - 1});
        digest.add(x.to_global({.placement = last, .sbp = sbp::broadcast}).full());
      }
    }
  }
}

void run_training(Digest& digest, flow::Sbp x_sbp, flow::Sbp w1_sbp, flow::Sbp w2_sbp) {
  const flow::Placement all = all_ranks();
  const Tensor x = flow::randn({16, 12}, {.placement = all, .sbp = x_sbp});
  const Tensor y = flow::randn({16, 4}, {.placement = all, .sbp = x_sbp});
  const Tensor w1 = flow::randn({12, 24}, {.placement = all, .sbp = w1_sbp, .requires_grad = true});
  const Tensor w2 = flow::randn({24, 4}, {.placement = all, .sbp = w2_sbp, .requires_grad = true});
  flow::optim::SGD optimizer({w1, w2}, {.lr = 0.01});
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = flow::mse_loss(flow::matmul(flow::relu(flow::matmul(x, w1)), w2), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    digest.add(loss.full());
  }
  digest.add(w1.to_local());
  digest.add(w2.to_local());
}

// A large message arrives even if its sender does not wait for it, because of an exception.
void check_dropped_message(Communicator& world) {
  constexpr int64_t kCount = 100'000;
  constexpr auto kBytes = static_cast<int64_t>(kCount * sizeof(float));
  const flow::boxing::Fingerprint here{.site = flow::Site::here()};
  if (world.position() == 0) {
    auto source = std::make_shared<std::vector<float>>(kCount, 3.0F);
    flow::boxing::Transfer pending = world.isend(source->data(), kBytes, 1, 5, here);
    pending->memory = std::move(source);
    pending.reset();
    // They take the place of memory that was freed.
    const std::vector<std::vector<float>> later(4, std::vector<float>(kCount, 4.0F));
    world.barrier(here);
  } else {
    world.barrier(here);
  }
  if (world.position() == 1) {
    std::vector<float> target(kCount);
    world.recv(target.data(), kBytes, 0, 5, here);
    if (target != std::vector<float>(kCount, 3.0F)) throw std::runtime_error("a message is wrong");
  }
  world.barrier(here);
}

// Messages must give the same results as shared memory. Data that is longer than one MPI message is
// sent in several; here a limit of 1000 bytes replaces that of 2 GiB.
void check_short_messages(Communicator& world) {
  using flow::boxing::internal::connect_mpi_by_messages;
  flow::boxing::ProcessWorld short_messages(connect_mpi_by_messages(1000));
  const auto other =
      flow::boxing::make_process_communicator(short_messages, world.ranks(), world.position());
  Digest usual, cut;
  run_collectives(world, usual);
  run_collectives(*other, cut);
  if (usual.value() != cut.value()) throw std::runtime_error("short messages change the result");
}

void check_dropped_messages(Communicator& world) {
  check_dropped_message(world);
  using flow::boxing::internal::connect_mpi_by_messages;
  flow::boxing::ProcessWorld messages(connect_mpi_by_messages(int64_t{1} << 30));
  check_dropped_message(
      *flow::boxing::make_process_communicator(messages, world.ranks(), world.position()));
}

void run() {
  flow::RankContext& context = *flow::thread_state().context;
  Digest digest;
  Communicator& world = flow::boxing::world_communicator(context);
  run_collectives(world, digest);
  if (flow::boxing::process_world() != nullptr && world.size() > 1) {
    check_short_messages(world);
    check_dropped_messages(world);
  }
  const int64_t half = flow::env::world_size() / 2;
  std::vector<int64_t> mine;  // the ranks of this half, in descending order
  const bool is_low = flow::env::rank() < half;
  for (int64_t rank = flow::env::world_size() - 1; rank >= 0; --rank) {
    if ((rank < half) == is_low) mine.push_back(rank);
  }
  run_collectives(flow::boxing::communicator_for(context, mine), digest);
  run_redistributions(digest);
  run_training(digest, sbp::split(0), sbp::broadcast, sbp::broadcast);
  run_training(digest, sbp::broadcast, sbp::split(1), sbp::split(0));

  const uint64_t own = digest.value();
  std::vector<uint64_t> values(static_cast<size_t>(flow::env::world_size()));
  world.gather(&own, values.data(), std::vector<int64_t>(values.size(), 8), 0,
               {.site = flow::Site::here()});
  if (flow::env::rank() != 0) return;
  std::ostringstream lines;
  for (size_t rank = 0; rank < values.size(); ++rank)
    lines << "rank " << rank << ": " << std::hex << values[rank] << std::dec << '\n';
  std::cout << lines.str() << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    flow::run_ranks(std::strtoll(argv[1], nullptr, 10), run);
  } else {
    run();
  }
}

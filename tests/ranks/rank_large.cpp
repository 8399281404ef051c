// Moves and reduces 2^31 + 9 bytes between the two ranks of its job and checks every byte.
//
//   rank_large             as a rank of a job: through shared memory, then by messages
//   rank_large THREADS     on thread ranks
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <flow/flow.h>

#include "boxing/comm/communicator.h"
#include "boxing/comm/mpi_transport.h"
#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "core/context.h"

namespace {

using flow::DType;
using flow::boxing::Communicator;
using flow::boxing::ReduceOp;

constexpr int64_t kCount = (int64_t{1} << 31) + 9;

// Differs between ranks and between any two indices whose distance is a power of two.
uint8_t byte_of(int64_t rank, int64_t i) {
  const auto mixed = static_cast<uint64_t>(i + 7 * rank) * 0x9E3779B97F4A7C15U;
  return static_cast<uint8_t>(mixed >> 56U);
}

void fill(std::vector<uint8_t>& data, int64_t rank) {
  for (int64_t i = 0; i < kCount; ++i)
    data[static_cast<size_t>(i)] = byte_of(rank, i);
}

template <class Expected>
void check(const std::vector<uint8_t>& data, const char* what, Expected expected) {
  for (int64_t i = 0; i < kCount; ++i) {
    if (data[static_cast<size_t>(i)] != expected(i)) {
      throw std::runtime_error(std::string(what) + " differs at byte " + std::to_string(i));
    }
  }
}

void run_calls(Communicator& pair) {
  const int64_t own = pair.position();
  const flow::boxing::Fingerprint here = {.site = flow::Site::here()};
  std::vector<uint8_t> data(static_cast<size_t>(kCount));

  fill(data, own);
  pair.all_reduce(data.data(), data.data(), kCount, DType::kUInt8, ReduceOp::kMax, here);
  check(data, "all_reduce", [](int64_t i) { return std::max(byte_of(0, i), byte_of(1, i)); });

  fill(data, own);
  pair.broadcast(data.data(), kCount, 1, here);
  check(data, "broadcast", [](int64_t i) { return byte_of(1, i); });

  if (own == 1) fill(data, 5);
  if (own == 1) pair.send(data.data(), kCount, 0, 3, here);
  if (own == 0) pair.recv(data.data(), kCount, 1, 3, here);
  check(data, "send", [](int64_t i) { return byte_of(5, i); });

  // Rank 0 contributes all bytes of the gathered data except 9.
  const std::array<int64_t, 2> parts = {kCount - 9, 9};
  std::vector<uint8_t> part(static_cast<size_t>(parts[static_cast<size_t>(own)]));
  for (size_t i = 0; i < part.size(); ++i)
    part[i] = byte_of(own, static_cast<int64_t>(i));
  pair.all_gather(part.data(), data.data(), parts, here);
  check(data, "all_gather",
        [&](int64_t i) { return i < parts[0] ? byte_of(0, i) : byte_of(1, i - parts[0]); });
}

void run() {
  flow::RankContext& context = *flow::thread_state().context;
  Communicator& world = flow::boxing::world_communicator(context);
  if (world.size() != 2) throw std::runtime_error("rank_large needs two ranks");
  run_calls(world);
  if (flow::boxing::process_world() == nullptr) return;
  flow::boxing::ProcessWorld messages(
      flow::boxing::internal::connect_mpi_by_messages(int64_t{1} << 30));
  run_calls(*flow::boxing::make_process_communicator(messages, world.ranks(), world.position()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    flow::run_ranks(std::strtoll(argv[1], nullptr, 10), run);
  } else {
    run();
  }
}

// Collectives and messages of two process ranks, compared with Open MPI's own calls. The program
// starts itself through flowrun. Rank 0 measures and tells rank 1 what runs next.
//
// Rows without a suffix pass a fingerprint whose hash is known, as compiled steps do. Rows with
// /fingerprint make the fingerprint at each call, as eager ops do. The ranks compare both.
//
// Rows with /rewritten write their source before each call, and the time includes this. Data that
// does not change stays in the caches of both cores, so a copy from the other rank's memory would
// find it in the own cache.
//
// The limit is the time in which copies move the bytes of the row while both ranks copy, because
// the cores share the memory bandwidth. For rows of n bytes, each rank reads and writes n bytes in
// all, half of them in a broadcast and in send_recv, and three quarters in a reduce_scatter. The
// rate is the better of that of copies of n and of n / 2 bytes, as parts of the data stay in
// caches.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "benchmarks/machine_limits.h"
#include "benchmarks/start_ranks.h"
#include "boxing/comm/communicator.h"
#include "core/context.h"
#include "core/launcher.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"

namespace {

using flow::boxing::Communicator;
using flow::boxing::Fingerprint;
using flow::boxing::ReduceOp;

Communicator& world() {
  return flow::boxing::world_communicator(*flow::thread_state().context);
}

// Floats in memory that is allocated like that of tensors.
class Floats {
 public:
  explicit Floats(int64_t count) : tensor_(flow::ones({count})) {}

  float* data() { return tensor_.data<float>(); }

 private:
  flow::Tensor tensor_;
};

// Two buffers of a row's bytes.
struct Buffers {
  explicit Buffers(int64_t bytes)
      : num_bytes(bytes), num_floats(bytes / 4), in(num_floats), out(num_floats) {}

  int64_t num_bytes;
  int64_t num_floats;
  bool knows_hash = false;
  uint64_t known_hash = 0;
  Floats in, out;
};

struct Row {
  std::string name;
  int64_t bytes;
  std::function<void(Buffers&)> run;
  bool knows_hash = false;
  bool rewrites = false;
  double moved = 2;  // bytes that each rank reads and writes at least, as a multiple of `bytes`
};

// The call of a row. The bytes of the row are those of the whole tensor if the call splits it, or
// else those of each rank.
using Call = void (*)(Buffers&);

// The fingerprint of the calls that are measured.
Fingerprint described(const Buffers& b, flow::Site site = flow::Site::here()) {
  Fingerprint what{.op = "bench", .shape = {b.num_floats}, .dtype = flow::float32, .site = site};
  if (b.knows_hash) what.known_hash = b.known_hash;
  return what;
}

void all_reduce(Buffers& b) {
  world().all_reduce(b.in.data(), b.out.data(), b.num_floats, flow::float32, ReduceOp::kSum,
                     described(b));
}

void all_reduce_openmpi(Buffers& b) {
  MPI_Allreduce(b.in.data(), b.out.data(), static_cast<int>(b.num_floats), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

void all_gather(Buffers& b) {
  const int64_t half = b.num_bytes / 2;
  world().all_gather(b.in.data(), b.out.data(), std::vector<int64_t>{half, half}, described(b));
}

void all_gather_openmpi(Buffers& b) {
  const int half = static_cast<int>(b.num_floats / 2);
  MPI_Allgather(b.in.data(), half, MPI_FLOAT, b.out.data(), half, MPI_FLOAT, MPI_COMM_WORLD);
}

void reduce_scatter(Buffers& b) {
  const int64_t half = b.num_floats / 2;
  world().reduce_scatter(b.in.data(), b.out.data(), std::vector<int64_t>{half, half}, flow::float32,
                         ReduceOp::kSum, described(b));
}

void reduce_scatter_openmpi(Buffers& b) {
  MPI_Reduce_scatter_block(b.in.data(), b.out.data(), static_cast<int>(b.num_floats / 2), MPI_FLOAT,
                           MPI_SUM, MPI_COMM_WORLD);
}

void all_to_all(Buffers& b) {
  const std::vector<int64_t> halves = {b.num_bytes / 2, b.num_bytes / 2};
  world().all_to_all(b.in.data(), halves, b.out.data(), halves, described(b));
}

void all_to_all_openmpi(Buffers& b) {
  const int half = static_cast<int>(b.num_floats / 2);
  MPI_Alltoall(b.in.data(), half, MPI_FLOAT, b.out.data(), half, MPI_FLOAT, MPI_COMM_WORLD);
}

void broadcast(Buffers& b) {
  world().broadcast(b.in.data(), b.num_bytes, 0, described(b));
}

void broadcast_openmpi(Buffers& b) {
  MPI_Bcast(b.in.data(), static_cast<int>(b.num_floats), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

void barrier(Buffers& b) {
  world().barrier(described(b));
}

void barrier_openmpi(Buffers& /*b*/) {
  MPI_Barrier(MPI_COMM_WORLD);
}

// A message from rank 0 to rank 1, and an empty message back.
void send_recv(Buffers& b) {
  if (world().position() == 0) {
    world().send(b.in.data(), b.num_bytes, 1, 0, described(b));
    world().recv(nullptr, 0, 1, 0, described(b));
  } else {
    world().recv(b.out.data(), b.num_bytes, 0, 0, described(b));
    world().send(nullptr, 0, 0, 0, described(b));
  }
}

void send_recv_openmpi(Buffers& b) {
  const int count = static_cast<int>(b.num_floats);
  if (world().position() == 0) {
    MPI_Send(b.in.data(), count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(b.out.data(), count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
  }
}

std::vector<Row> make_rows() {
  struct Pair {
    const char* name;
    Call ours, theirs;
    double moved;
  };

  constexpr Pair kPairs[] = {{"all_reduce", all_reduce, all_reduce_openmpi, 2},
                             {"all_gather", all_gather, all_gather_openmpi, 2},
                             {"reduce_scatter", reduce_scatter, reduce_scatter_openmpi, 1.5},
                             {"all_to_all", all_to_all, all_to_all_openmpi, 2},
                             {"broadcast", broadcast, broadcast_openmpi, 1},
                             {"send_recv", send_recv, send_recv_openmpi, 1}};
  std::vector<Row> rows;
  for (const Pair& pair : kPairs) {
    for (const int64_t bytes : {int64_t{8}, int64_t{1} << 10, int64_t{64} << 10, int64_t{1} << 20,
                                int64_t{16} << 20, int64_t{64} << 20}) {
      const std::string name = std::string("comm/") + pair.name + '/' + std::to_string(bytes);
      rows.push_back({name, bytes, pair.ours, true, false, pair.moved});
      rows.push_back({name + "/fingerprint", bytes, pair.ours, false, false, pair.moved});
      rows.push_back({name + "/openmpi", bytes, pair.theirs, false, false, pair.moved});
      if (bytes < int64_t{64} << 10 || bytes > int64_t{16} << 20) continue;
      rows.push_back({name + "/rewritten", bytes, pair.ours, true, true, pair.moved});
      rows.push_back({name + "/rewritten/openmpi", bytes, pair.theirs, false, true, pair.moved});
    }
  }
  rows.push_back({"comm/barrier", 8, barrier, true});
  rows.push_back({"comm/barrier/openmpi", 8, barrier_openmpi});
  return rows;
}

// The number of calls that take at least a millisecond together.
int64_t calls_per_block(int64_t bytes) {
  constexpr int64_t kBytes = 4 << 20;
  return std::clamp<int64_t>(kBytes / bytes, 1, 500);
}

constexpr int64_t kEnd = -1;

// A task in which both ranks measure the rate of copies for rows with this many bytes.
int64_t rate_task(int64_t bytes) {
  return kEnd - bytes;
}

// In bytes/s.
double copy_rate(int64_t bytes) {
  const auto meet = [] { world().barrier({.site = flow::Site::here()}); };
  return std::max(flow::bench::copy_bytes_together(bytes, meet),
                  flow::bench::copy_bytes_together(bytes / 2, meet));
}

// Returns rank 0's task on both ranks.
int64_t agree(int64_t task) {
  world().broadcast(&task, sizeof(task), 0, {.op = "next row", .site = flow::Site::here()});
  return task;
}

Buffers make_buffers(const Row& row) {
  Buffers buffers(row.bytes);
  buffers.known_hash = described(buffers).context_hash();
  buffers.knows_hash = row.knows_hash;
  return buffers;
}

void run_block(const Row& row, Buffers& buffers) {
  for (int64_t call = calls_per_block(row.bytes); call > 0; --call) {
    if (row.rewrites)
      std::memset(buffers.in.data(), static_cast<int>(call), static_cast<size_t>(row.bytes));
    row.run(buffers);
  }
}

// Runs on rank 0; measures each size once.
double limit_us(const Row& row) {
  static std::map<int64_t, double> rates;
  const auto [entry, is_new] = rates.try_emplace(row.bytes);
  if (is_new) {
    agree(rate_task(row.bytes));
    entry->second = copy_rate(row.bytes);
  }
  return 1e6 * row.moved * static_cast<double>(row.bytes) / entry->second;
}

void measure(benchmark::State& state, const std::vector<Row>& rows, size_t index) {
  const Row& row = rows[index];
  const double limit = limit_us(row);
  Buffers buffers = make_buffers(row);
  double best = 1e12;
  for (auto _ : state) {
    agree(static_cast<int64_t>(index));
    world().barrier({.site = flow::Site::here()});  // rank 1 has made its buffers
    const auto start = std::chrono::steady_clock::now();
    run_block(row, buffers);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / static_cast<double>(calls_per_block(row.bytes)));
  }
  flow::bench::report_time(state, best, limit, "us");
}

int lead(const std::vector<Row>& rows, int argc, char** argv) {
  for (size_t i = 0; i < rows.size(); ++i) {
    benchmark::RegisterBenchmark(rows[i].name.c_str(),
                                 [&rows, i](benchmark::State& state) { measure(state, rows, i); });
  }
  benchmark::AddCustomContext(
      "limit", "the bytes that a row moves at the rate of copies, both ranks at once");
  const int code = flow::bench::run_benchmarks(argc, argv);
  agree(kEnd);
  return code;
}

void follow(const std::vector<Row>& rows) {
  for (;;) {
    const int64_t task = agree(kEnd);
    if (task == kEnd) return;
    if (task < kEnd) {
      copy_rate(kEnd - task);
      continue;
    }
    const Row& row = rows[static_cast<size_t>(task)];
    Buffers buffers = make_buffers(row);
    world().barrier({.site = flow::Site::here()});
    run_block(row, buffers);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!flow::find_launcher().is_present) flow::bench::start_two_ranks(argc, argv);
  const std::vector<Row> rows = make_rows();
  if (flow::env::rank() == 0) return lead(rows, argc, argv);
  follow(rows);
  return 0;
}

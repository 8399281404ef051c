// A signal handler runs on the stack of the thread that it interrupts. These tests interrupt
// kernels of other libraries again and again, and hold that each handler finds that stack.
#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {
namespace {

struct Handled {
  uintptr_t stack_begin = 0;
  uintptr_t stack_end = 0;
  volatile std::sig_atomic_t on_stack = 0;
  volatile std::sig_atomic_t elsewhere = 0;
};

Handled handled;

extern "C" void flow_note_stack(int /*signal*/) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool is_on_stack = handled.stack_begin <= frame && frame < handled.stack_end;
  volatile std::sig_atomic_t& count = is_on_stack ? handled.on_stack : handled.elsewhere;
  count = count + 1;
}

// Interrupts the calling thread every 100 us while it exists.
class Interruptions {
 public:
  Interruptions() {
    pthread_attr_t attributes;
    void* begin = nullptr;
    size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
    handled.stack_begin = reinterpret_cast<uintptr_t>(begin);
    handled.stack_end = handled.stack_begin + bytes;
    handled.on_stack = 0;
    handled.elsewhere = 0;

    struct sigaction action = {};
    action.sa_handler = flow_note_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, &before_);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const timespec period = {.tv_sec = 0, .tv_nsec = 100'000};
    const itimerspec times = {.it_interval = period, .it_value = period};
    timer_settime(timer_, 0, &times, nullptr);
  }

  ~Interruptions() {
    timer_delete(timer_);
    sigaction(SIGUSR2, &before_, nullptr);
  }

  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  struct sigaction before_ = {};
  timer_t timer_{};
};

// Aligned as oneDNN wants its scratch memory.
struct alignas(64) Line {
  std::array<float, 16> values;
};

class Signals : public testing::Test {
 protected:
  // Calls `compute` until ten handlers have run on the stack and for at least `calls` times.
  template <class Fn>
  static void interrupt(int64_t calls, const Fn& compute) {
    const Interruptions interruptions;
    for (int64_t i = 0; i < calls || handled.on_stack < 10; ++i) {
      compute();
      if (handled.elsewhere > 0) break;
    }
  }
};

TEST_F(Signals, DoNotReachAProduct) {
  const std::array<std::array<int64_t, 3>, 4> sizes{
      {{1024, 384, 128}, {128, 128, 1024}, {2, 512, 512}, {48, 8, 1000}}};
  for (const GemmBackend backend :
       {GemmBackend::kOwn, GemmBackend::kOneDnn, GemmBackend::kOpenBlas}) {
    if (!has_gemm_backend<float>(backend)) continue;
    for (const auto& [m, n, k] : sizes) {
      for (const bool is_transposed : {false, true}) {
        const std::vector<float> a(static_cast<size_t>(m * k), 1.0F);
        const std::vector<float> b(static_cast<size_t>(k * n), 1.0F);
        std::vector<float> c(static_cast<size_t>(m * n));
        const GemmTask<float> task{.transpose_a = is_transposed ? Transpose::kYes : Transpose::kNo,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .a = a.data(),
                                   .lda = is_transposed ? m : k,
                                   .b = b.data(),
                                   .ldb = n,
                                   .c = c.data(),
                                   .ldc = n};

        interrupt(20'000'000 / (m * n * k) + 20, [&] { gemm_with(backend, task); });

        EXPECT_EQ(handled.elsewhere, 0)
            << "back end " << static_cast<int>(backend) << ", " << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST_F(Signals, DoNotReachAConvolution) {
  if (!has_onednn()) GTEST_SKIP() << onednn_description();
  for (const ConvolutionPass pass : {ConvolutionPass::kForward, ConvolutionPass::kBackwardSource,
                                     ConvolutionPass::kBackwardWeights}) {
    // With layouts of one channel after the other, and uneven groups, oneDNN computes products.
    const ConvolutionSpec spec{.pass = pass,
                               .batch = 2,
                               .in_channels = 15,
                               .out_channels = 21,
                               .groups = 3,
                               .window = {.in = {32, 32}, .kernel = {3, 3}},
                               .source = nullptr,
                               .weights = nullptr,
                               .destination = nullptr};
    const auto kernel = make_onednn(spec);
    std::vector<float> x(static_cast<size_t>(spec.source_shape().numel()));
    std::vector<float> w(static_cast<size_t>(spec.weights_shape().numel()));
    std::vector<float> y(static_cast<size_t>(spec.destination_shape().numel()));
    std::vector<Line> scratch(kernel->scratch_bytes() / sizeof(Line) + 1);

    interrupt(200, [&] {
      kernel->run({.source = x.data(),
                   .weights = w.data(),
                   .destination = y.data(),
                   .scratch = scratch.data()});
    });

    EXPECT_EQ(handled.elsewhere, 0) << "pass " << static_cast<int>(pass);
  }
}

}  // namespace
}  // namespace flow::ops

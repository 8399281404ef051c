// Benchmarks of several ranks start themselves.
#pragma once

namespace flow::bench {

// Replaces this process by two ranks of its program, through flowrun. Throws IoError when flowrun
// cannot be started.
[[noreturn]] void start_two_ranks(int argc, char** argv);

}  // namespace flow::bench

// Starts benchmarks on several ranks.
#pragma once

namespace flow::bench {

// Replaces this process with two ranks of its program, through flowrun. Throws IoError if flowrun
// cannot be started.
[[noreturn]] void start_two_ranks(int argc, char** argv);

}  // namespace flow::bench

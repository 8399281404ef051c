// What was measured on a CPU: the libraries that multiply fastest there, and how own kernels divide
// a product. A table for a kind of CPU is committed; flow-calibrate measures one for the machine at
// hand, which is read at the next start. Nothing is measured while a program runs.
#pragma once

#include <string>
#include <string_view>

#include "ops/kernel/cpu_features.h"
#include "ops/linear/gemm_table.h"

namespace flow::ops {

struct CpuTable {
  static constexpr int64_t kMaxDepth = 1024;

  std::string cpu;        // the microarchitecture and the instruction set: "zen4 avx512"
  std::string libraries;  // that were compared, with their versions
  std::string origin;     // the file, or what the committed table was measured on
  // The longest part of a sum that own kernels add to a float product at once where the rows of the
  // first operand are contiguous: a multiple of 64 up to kMaxDepth. It decides the order of
  // additions.
  int64_t depth = 256;
  GemmTable products;
};

// The name of this CPU and of the instruction set in use, and the versions of the libraries.
std::string cpu_and_isa();
std::string product_libraries();

// The text of a file, without the origin, and a table from such a text. Throws BadFile, which
// names `origin`, if it is none.
std::string to_string(const CpuTable& table);
CpuTable parse_cpu_table(std::string_view text, const std::string& origin);

// The committed table of a microarchitecture and an instruction set, else that of the instruction
// set.
CpuTable committed_cpu_table(CpuIsa isa, std::string_view microarchitecture);
// For this CPU.
CpuTable committed_cpu_table(CpuIsa isa);

// ~/.cache/flow/cpu-MICROARCHITECTURE-ISA.table, where flow-calibrate writes and every program
// reads, or the file that FLOW_CPU_TABLE names.
std::string cpu_table_path();

// The table in use: at the first call that of cpu_table_path(), else the committed one. A file of
// other library versions or of another CPU is not used, which a warning says, unless
// FLOW_CPU_TABLE names it: then it throws BadFile, or IoError if it cannot be read.
const CpuTable& cpu_table();

// Uses another table from now on, in the whole process. Products that run at the same time use one
// of the two.
void set_cpu_table(CpuTable table);

// Ranks on different CPUs may choose different libraries, and results then differ between them in
// the last bits. The start of a job keeps rank 0's table on the ranks that have another one, and
// graphs whose results must be exact switch to it: use_cpu_table_of_rank_0() does nothing on other
// ranks.
void keep_cpu_table_of_rank_0(CpuTable table);
void use_cpu_table_of_rank_0();

}  // namespace flow::ops

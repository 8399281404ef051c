// Measures how own kernels divide a product best, and which library multiplies each class of shapes
// fastest (ops/linear/cpu_table.h).
#pragma once

#include <functional>
#include <string>

#include "ops/linear/cpu_table.h"

namespace flow {

// Called with the share that is done, 0 to 1.
using OnProgress = std::function<void(double share)>;

struct ProductReport {
  ops::CpuTable table;
  int num_measured = 0;
  int num_changed = 0;     // entries that differ from the base
  double own_vs_best = 0;  // geometric mean of own kernels' speed over that of the fastest
  double least_own_vs_best = 0;
};

// Measures every second class of each dim, and compares it with the table `base`. An entry is
// changed if another library is faster in two measurements one after the other. A class between
// measured ones is changed if all of these were changed alike. Takes about half a minute.
ProductReport calibrate_products(const ops::CpuTable& base, const OnProgress& on_progress);

// Measures every class, whatever was known. Takes some minutes.
ProductReport measure_all_products(const OnProgress& on_progress);

// C++ with the table, for ops/linear/gemm_table_NAME.cpp. `name` is in PascalCase: "Avx2".
std::string to_source(const ops::CpuTable& table, const std::string& cpu, const std::string& name);

}  // namespace flow

#include "ops/linear/cpu_table.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/env.h"
#include "core/error.h"
#include "core/log.h"
#include "ops/kernel/cpu_model.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/openblas.h"

namespace flow::ops {

namespace {

constexpr std::string_view kFirstLine = "flow cpu table 2";
constexpr std::string_view kBothLibraries = "oneDNN 2.6.3, OpenBLAS 0.3.21";

struct CommittedTable {
  CpuIsa isa;
  std::string_view microarchitecture;  // empty: for those that no line before names
  std::string_view libraries;
  int64_t depth;
  const GemmTable::Text& products;
};

const CommittedTable kCommittedTables[] = {
    {CpuIsa::kAvx2, "zen3", kBothLibraries, 512, kGemmTableZen3Avx2},
    {CpuIsa::kAvx2, "", kBothLibraries, 512, kGemmTableAvx2},
    {CpuIsa::kAvx512, "zen4", kBothLibraries, 512, kGemmTableZen4Avx512},
    {CpuIsa::kAvx512, "zen5", kBothLibraries, 256, kGemmTableZen5Avx512},
    {CpuIsa::kAvx512, "sapphire-rapids", "oneDNN 2.6.3", 512, kGemmTableSapphireRapidsAvx512},
    {CpuIsa::kAvx512, "", kBothLibraries, 256, kGemmTableAvx512},
};

constexpr const char* kTypes[] = {"float", "double"};
constexpr const char* kForms[] = {"NN", "NT", "TN", "TT"};

[[noreturn]] void throw_bad(const std::string& origin, const std::string& what) {
  throw BadFile(str("[cpu table] ", origin, " is not a table of this machine: ", what,
                    "; write one with flow-calibrate, or remove the file"));
}

// Takes lines from a text.
class Lines {
 public:
  Lines(std::string_view text, const std::string& origin) : rest_(text), origin_(origin) {}

  std::string_view next() {
    if (rest_.empty()) throw_bad(origin_, str("it ends after line ", number_));
    ++number_;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }

  // The rest of the next line, which begins with this word and a space.
  std::string_view after(std::string_view word) {
    const std::string_view line = next();
    if (!line.starts_with(word) || line.size() <= word.size() || line[word.size()] != ' ')
      throw_bad(origin_, str("line ", number_, " does not begin with '", word, "'"));
    return line.substr(word.size() + 1);
  }

  void expect(std::string_view text) {
    if (next() != text) throw_bad(origin_, str("line ", number_, " is not '", text, "'"));
  }

  int number() const { return number_; }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const std::string& origin_;
  int number_ = 0;
};

void parse_row(std::string_view line, GemmTable& table, int type, int form, int m,
               const std::string& origin, int number) {
  constexpr auto kClasses = static_cast<size_t>(kGemmSizeClasses);
  const auto fail = [&] {
    throw_bad(origin, str("line ", number, " needs ten groups of ten letters w, d or o"));
  };
  if (line.size() != kClasses * (kClasses + 1) - 1) fail();
  for (size_t i = 0; i < line.size(); ++i) {
    const size_t n = i / (kClasses + 1), k = i % (kClasses + 1);
    if (k == kClasses) {
      if (line[i] != ' ') fail();
      continue;
    }
    if (line[i] != 'w' && line[i] != 'd' && line[i] != 'o') fail();
    table.letter(type, form, m, static_cast<int>(n), static_cast<int>(k)) = line[i];
  }
}

int64_t parse_depth(std::string_view text, const std::string& origin, int number) {
  constexpr int64_t kStep = 64;
  int64_t depth = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (error != std::errc() || end != text.data() + text.size() || depth <= 0 ||
      depth > CpuTable::kMaxDepth || depth % kStep != 0)
    throw_bad(origin,
              str("line ", number, " needs a multiple of ", kStep, " up to ", CpuTable::kMaxDepth));
  return depth;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || !file) {
    throw IoError(str("[cpu table] cannot read ", path,
                      "; write it with flow-calibrate, or unset FLOW_CPU_TABLE"));
  }
  return text;
}

CpuTable read_cpu_table(const std::string& path) {
  CpuTable table = parse_cpu_table(read_file(path), path);
  if (table.cpu != cpu_and_isa())
    throw_bad(path, str("it was measured on ", table.cpu, ", and this is ", cpu_and_isa()));
  if (table.libraries != product_libraries()) {
    throw_bad(path, str("it was measured with ", table.libraries, ", and this program uses ",
                        product_libraries()));
  }
  return table;
}

CpuTable load() {
  const std::string path = cpu_table_path();
  if (!env_string("FLOW_CPU_TABLE", "").empty()) return read_cpu_table(path);
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored))
    return committed_cpu_table(active_isa());
  try {
    return read_cpu_table(path);
  } catch (const Error& error) {
    log_warning(str(error.what(), "; flow uses the table that comes with it"));
    return committed_cpu_table(active_isa());
  }
}

// All tables that were ever in use, because other threads may still read them.
struct Tables {
  std::mutex mutex;
  std::vector<std::unique_ptr<const CpuTable>> all;
  std::atomic<const CpuTable*> used{nullptr};
  std::optional<CpuTable> of_rank_0 = {};

  const CpuTable& use(CpuTable table) {
    all.push_back(std::make_unique<const CpuTable>(std::move(table)));
    used.store(all.back().get(), std::memory_order_release);
    return *all.back();
  }
};

Tables& tables() {
  static Tables instance;
  return instance;
}

}  // namespace

std::string cpu_and_isa() {
  return str(cpu_model(), " ", to_string(active_isa()));
}

std::string product_libraries() {
  return str(onednn_description(), ", ", openblas_description());
}

std::string to_string(const CpuTable& table) {
  std::string text = str(kFirstLine, "\ncpu ", table.cpu, "\nlibraries ", table.libraries,
                         "\ndepth ", table.depth, "\n");
  for (int type = 0; type < GemmTable::kNumTypes; ++type) {
    for (int form = 0; form < GemmTable::kNumForms; ++form) {
      text += str("products ", kTypes[type], " ", kForms[form], "\n");
      for (int m = 0; m < kGemmSizeClasses; ++m) {
        for (int n = 0; n < kGemmSizeClasses; ++n) {
          if (n > 0) text += ' ';
          for (int k = 0; k < kGemmSizeClasses; ++k)
            text += table.products.letter(type, form, m, n, k);
        }
        text += '\n';
      }
    }
  }
  return text;
}

CpuTable parse_cpu_table(std::string_view text, const std::string& origin) {
  Lines lines(text, origin);
  lines.expect(kFirstLine);
  CpuTable table;
  table.origin = origin;
  table.cpu = lines.after("cpu");
  table.libraries = lines.after("libraries");
  const std::string_view depth = lines.after("depth");
  table.depth = parse_depth(depth, origin, lines.number());
  for (int type = 0; type < GemmTable::kNumTypes; ++type) {
    for (int form = 0; form < GemmTable::kNumForms; ++form) {
      lines.expect(str("products ", kTypes[type], " ", kForms[form]));
      for (int m = 0; m < kGemmSizeClasses; ++m) {
        const std::string_view line = lines.next();
        parse_row(line, table.products, type, form, m, origin, lines.number());
      }
    }
  }
  if (!lines.at_end()) throw_bad(origin, str("it goes on after line ", lines.number()));
  return table;
}

CpuTable committed_cpu_table(CpuIsa isa, std::string_view microarchitecture) {
  const CpuIsa measured = isa == CpuIsa::kAvx512 ? isa : CpuIsa::kAvx2;
  const CommittedTable& table =
      *std::ranges::find_if(kCommittedTables, [&](const CommittedTable& candidate) {
        return candidate.isa == measured && (candidate.microarchitecture == microarchitecture ||
                                             candidate.microarchitecture.empty());
      });
  return {.cpu = table.microarchitecture.empty()
                     ? str("an Intel Xeon with ", to_string(measured))
                     : str(table.microarchitecture, " ", to_string(measured)),
          .libraries = std::string(table.libraries),
          .origin = "the committed table",
          .depth = table.depth,
          .products = GemmTable(table.products)};
}

CpuTable committed_cpu_table(CpuIsa isa) {
  return committed_cpu_table(isa, cpu_model());
}

std::string cpu_table_path() {
  std::string named = env_string("FLOW_CPU_TABLE", "");
  if (!named.empty()) return named;
  const std::string home = home_folder();
  if (home.empty()) return "";
  return str(home, "/.cache/flow/cpu-", cpu_model(), "-", to_string(active_isa()), ".table");
}

const CpuTable& cpu_table() {
  Tables& all = tables();
  if (const CpuTable* used = all.used.load(std::memory_order_acquire)) return *used;
  const std::lock_guard lock(all.mutex);
  if (const CpuTable* used = all.used.load(std::memory_order_acquire)) return *used;
  return all.use(load());
}

void set_cpu_table(CpuTable table) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  all.use(std::move(table));
}

void keep_cpu_table_of_rank_0(CpuTable table) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  all.of_rank_0 = std::move(table);
}

void use_cpu_table_of_rank_0() {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  if (!all.of_rank_0) return;
  all.use(std::move(*all.of_rank_0));
  all.of_rank_0.reset();
}

}  // namespace flow::ops

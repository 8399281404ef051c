#include "ops/linear/cpu_table.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/kernel/cpu_model.h"
#include "ops/linear/gemm.h"
#include "ops/linear/gemm_backend.h"
#include "ops/linear/gemm_split.h"
#include "tests/support/gemm_product.h"

namespace flow::ops {
namespace {

// Puts back the table that was in use.
class CpuTableTest : public testing::Test {
 protected:
  ~CpuTableTest() override { set_cpu_table(before_); }

  const CpuTable before_ = cpu_table();
};

CpuTable one_library(char letter) {
  CpuTable table = committed_cpu_table(CpuIsa::kAvx2);
  for (int type = 0; type < GemmTable::kNumTypes; ++type)
    for (int form = 0; form < GemmTable::kNumForms; ++form)
      for (int m = 0; m < kGemmSizeClasses; ++m)
        for (int n = 0; n < kGemmSizeClasses; ++n)
          for (int k = 0; k < kGemmSizeClasses; ++k)
            table.products.letter(type, form, m, n, k) = letter;
  return table;
}

GemmBackend fastest_of_64(const CpuTable& table) {
  return table.products.fastest<float>(Transpose::kNo, Transpose::kYes, 64, 64, 64);
}

TEST(CpuModel, FamiliesAndModelsHaveNames) {
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 0x3f), "haswell");
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 0x55), "skylake-server");
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 0x8f), "sapphire-rapids");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 0x17, 0x31), "zen2");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 0x19, 0x01), "zen3");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 0x19, 0x11), "zen4");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 0x1a, 0x02), "zen5");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 6, 0x55), "unknown");
  EXPECT_EQ(microarchitecture("", 0, 0), "unknown");
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(second_level_cache_bytes(), 64 << 10);
}

TEST_F(CpuTableTest, OneMicroarchitectureHasATableOfItsOwn) {
  const CpuTable zen3 = committed_cpu_table(CpuIsa::kAvx2, "zen3");
  const CpuTable haswell = committed_cpu_table(CpuIsa::kAvx2, "haswell");

  EXPECT_EQ(zen3.cpu, "zen3 avx2");
  EXPECT_EQ(haswell.cpu, "an Intel Xeon with avx2");
  EXPECT_NE(zen3.products, haswell.products);
  const CpuTable sapphire = committed_cpu_table(CpuIsa::kAvx512, "sapphire-rapids");
  EXPECT_EQ(sapphire.cpu, "sapphire-rapids avx512");
  const CpuTable zen4 = committed_cpu_table(CpuIsa::kAvx512, "zen4");
  EXPECT_EQ(zen4.cpu, "zen4 avx512");
  EXPECT_EQ(zen4.depth, 512);
  EXPECT_NE(zen4.products, sapphire.products);
  const CpuTable zen5 = committed_cpu_table(CpuIsa::kAvx512, "zen5");
  EXPECT_EQ(zen5.cpu, "zen5 avx512");
  EXPECT_NE(zen5.products, sapphire.products);
  EXPECT_NE(zen5.products, zen4.products);
  EXPECT_EQ(committed_cpu_table(CpuIsa::kBaseline, "zen3").cpu, "zen3 avx2");
  EXPECT_EQ(committed_cpu_table(CpuIsa::kAvx2, "sapphire-rapids").cpu, "an Intel Xeon with avx2");
  EXPECT_EQ(committed_cpu_table(CpuIsa::kAvx512, "zen3").cpu, "an Intel Xeon with avx512");
  EXPECT_EQ(committed_cpu_table(CpuIsa::kAvx2).cpu,
            committed_cpu_table(CpuIsa::kAvx2, cpu_model()).cpu);
}

TEST_F(CpuTableTest, TextParsesBack) {
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    const CpuTable table = committed_cpu_table(isa);
    const CpuTable read = parse_cpu_table(to_string(table), "file");
    EXPECT_EQ(read.products, table.products);
    EXPECT_EQ(read.depth, table.depth);
    EXPECT_EQ(read.cpu, table.cpu);
    EXPECT_EQ(read.libraries, table.libraries);
    EXPECT_EQ(read.origin, "file");
  }
}

TEST_F(CpuTableTest, OtherTextsNameTheirLine) {
  const std::string text = to_string(committed_cpu_table(CpuIsa::kAvx2, "haswell"));
  const auto message_of = [](const std::string& changed) -> std::string {
    try {
      parse_cpu_table(changed, "some.table");
    } catch (const BadFile& error) {
      return error.what();
    }
    return "";
  };
  const auto with = [&](size_t position, char letter) {
    std::string changed = text;
    changed[position] = letter;
    return changed;
  };
  const std::string advice = "; write one with flow-calibrate, or remove the file";
  const std::string start = "[cpu table] some.table is not a table of this machine: ";
  EXPECT_EQ(message_of(""), start + "it ends after line 0" + advice);
  EXPECT_EQ(message_of(with(0, 'F')), start + "line 1 is not 'flow cpu table 2'" + advice);
  EXPECT_EQ(message_of(with(text.find("cpu an"), 'x')),
            start + "line 2 does not begin with 'cpu'" + advice);
  const size_t depth = text.find("depth ") + 6;
  const size_t depth_end = text.find('\n', depth);
  for (const char* bad : {"x", "", "0", "-64", "100", "1088", "512 ", "99999999999999999999"}) {
    std::string changed = text;
    changed.replace(depth, depth_end - depth, bad);
    EXPECT_EQ(message_of(changed), start + "line 4 needs a multiple of 64 up to 1024" + advice);
  }
  const size_t row = text.find("NN\n") + 3;
  for (const auto& [position, letter] : {std::pair{row, 'x'}, {row + 10, 'w'}, {row + 109, 'w'}}) {
    EXPECT_EQ(message_of(with(position, letter)),
              start + "line 6 needs ten groups of ten letters w, d or o" + advice);
  }
  EXPECT_EQ(message_of(text.substr(0, row)), start + "it ends after line 5" + advice);
  EXPECT_EQ(message_of(text + "\n"), start + "it goes on after line 92" + advice);
}

TEST_F(CpuTableTest, ProductsUseTheTable) {
  EXPECT_EQ(fastest_of_64(one_library('w')), GemmBackend::kOwn);
  EXPECT_EQ(fastest_of_64(one_library('d')), GemmBackend::kOneDnn);
  EXPECT_EQ(fastest_of_64(one_library('o')), GemmBackend::kOpenBlas);
  set_cpu_table(one_library('o'));
  EXPECT_EQ(fastest_of_64(cpu_table()), GemmBackend::kOpenBlas);
}

void use_depth(int64_t depth) {
  CpuTable table = committed_cpu_table(CpuIsa::kAvx2);
  table.depth = depth;
  set_cpu_table(std::move(table));
}

// A new product, by own kernels.
std::vector<float> own_product(int64_t m, int64_t n, int64_t k) {
  Product<float> product(Transpose::kNo, Transpose::kNo, m, n, k);
  gemm_with(GemmBackend::kOwn, product.task);
  return product.results();
}

// The same product, as ops compute it.
std::vector<float> divided_product(int64_t m, int64_t n, int64_t k) {
  Product<float> product(Transpose::kNo, Transpose::kNo, m, n, k);
  gemm_parallel(one_thread, product.task);
  return product.results();
}

TEST_F(CpuTableTest, TheDepthDecidesTheOrderOfAdditions) {
  constexpr int64_t kM = 48, kN = 64, kK = 1000;
  use_depth(CpuTable::kMaxDepth);
  const std::vector<float> whole = own_product(kM, kN, kK);
  EXPECT_EQ(own_product(kM, kN, kK), whole);
  for (const int64_t depth : {64, 256, 512}) {
    use_depth(depth);
    const std::vector<float> parts = own_product(kM, kN, kK);
    EXPECT_NE(parts, whole) << depth;
    for (size_t i = 0; i < parts.size(); ++i)
      ASSERT_NEAR(parts[i], whole[i], 1e-3) << depth << " " << i;
  }
}

TEST_F(CpuTableTest, SharedProductsEqualOwnOnesAtEveryDepth) {
  constexpr int64_t kM = 200, kN = 256, kK = 1100;
  ASSERT_TRUE(split_gemm(1, kM, kN, kK).shares_packing);
  for (const int64_t depth : {int64_t{64}, int64_t{512}, CpuTable::kMaxDepth}) {
    use_depth(depth);
    EXPECT_EQ(divided_product(kM, kN, kK), own_product(kM, kN, kK)) << depth;
  }
}

TEST_F(CpuTableTest, PartsOfAProductUseTheBackEndOfTheWhole) {
  constexpr int64_t kM = 16, kN = 4096, kK = 512;
  CpuTable table = one_library('d');
  table.products.letter(0, 0, gemm_size_class(kM), gemm_size_class(kN), gemm_size_class(kK)) = 'w';
  set_cpu_table(std::move(table));
  ASSERT_GT(split_gemm(1, kM, kN, kK).cells(), 1);
  EXPECT_EQ(divided_product(kM, kN, kK), own_product(kM, kN, kK));
}

TEST_F(CpuTableTest, TheTableOfRank0IsUsedOnceItIsAskedFor) {
  set_cpu_table(one_library('o'));
  use_cpu_table_of_rank_0();
  EXPECT_EQ(fastest_of_64(cpu_table()), GemmBackend::kOpenBlas) << "rank 0 has the same";
  keep_cpu_table_of_rank_0(one_library('d'));
  EXPECT_EQ(fastest_of_64(cpu_table()), GemmBackend::kOpenBlas);
  use_cpu_table_of_rank_0();
  EXPECT_EQ(fastest_of_64(cpu_table()), GemmBackend::kOneDnn);
}

}  // namespace
}  // namespace flow::ops

// flow-conform box: shards in a file, brought to where a table says.
#include <fstream>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"
#include "tools/flow_conform/box_command.h"

namespace flow::parity {
namespace {

TEST(BoxCommand, RedistributesTheShardsOfATable) {
  const TempFolder folder;
  conform::BoxOptions options;
  options.table = folder.file("table.json");
  options.in = folder.file("in.safetensors");
  options.out = folder.file("out.safetensors");
  std::ofstream(options.table) << R"([
      {"id": "rows", "shape": [5, 3], "src_ranks": [0, 1], "src": ["S0"],
       "dst_ranks": [1, 2, 3], "dst": ["S1"]},
      {"id": "sum", "shape": [2], "src_ranks": [[0, 1], [2, 3]], "src": ["P", "B"],
       "dst_ranks": [3], "dst": ["B"]},
      {"id": "empty", "shape": [1], "src_ranks": [2], "src": ["B"],
       "dst_ranks": [0, 1], "dst": ["S0"]}])";
  const Tensor rows = arange(15.0).reshape({5, 3});
  const Tensor one = tensor({1.F, 2.F}), ten = tensor({10.F, 20.F});
  nn::save_safetensors(options.in, {{"rows.src.rank0", slice(rows, 0, 0, 3)},
                                    {"rows.src.rank1", slice(rows, 0, 3, 5)},
                                    {"sum.src.rank0", one},
                                    {"sum.src.rank1", one},
                                    {"sum.src.rank2", ten},
                                    {"sum.src.rank3", ten},
                                    {"empty.src.rank2", tensor({7.F})}});

  run_ranks(4, [&] { EXPECT_EQ(conform::run_boxing(options), conform::kDone); });
  const nn::StateDict out = nn::load_safetensors(options.out);

  using Floats = std::vector<float>;
  ASSERT_EQ(out.size(), 6U);
  EXPECT_EQ(out.at("rows.dst.rank1").to_vector<float>(), (Floats{0, 3, 6, 9, 12}));
  EXPECT_EQ(out.at("rows.dst.rank2").to_vector<float>(), (Floats{1, 4, 7, 10, 13}));
  EXPECT_EQ(out.at("rows.dst.rank3").to_vector<float>(), (Floats{2, 5, 8, 11, 14}));
  EXPECT_EQ(out.at("sum.dst.rank3").to_vector<float>(), (Floats{11, 22}));
  EXPECT_EQ(out.at("empty.dst.rank0").to_vector<float>(), (Floats{7}));
  EXPECT_EQ(out.at("empty.dst.rank1").shape(), Shape{0});
}

TEST(BoxCommand, AMissingTableIsAnIoError) {
  conform::BoxOptions options;
  const TempFolder folder;
  options.table = folder.file("missing/table.json");

  try {
    conform::run_boxing(options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot open " + options.table), std::string::npos);
  }
}

}  // namespace
}  // namespace flow::parity

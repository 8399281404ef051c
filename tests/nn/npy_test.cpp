#include "nn/npy.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/file.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/shape/view.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

using namespace std::string_literals;

// An array with this header text; the elements' bytes follow.
std::string npy_of(std::string text, const std::string& elements, int major = 1) {
  const size_t before = major == 1 ? 10 : 12;
  text.resize((before + text.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  text += '\n';
  std::string bytes = "\x93NUMPY"s + static_cast<char>(major) + '\0';
  for (size_t i = 0; i < before - 8; ++i)
    bytes += static_cast<char>(text.size() >> (8 * i));
  return bytes + text + elements;
}

std::string header_of(const std::string& descr, const std::string& shape,
                      const char* order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// numpy.savez(f, a=numpy.array([1, 2], "i1")), numpy 2.4.
const std::string kNumpyStored =
    "PK\x03\x04-\0\0\0\0\0\0\0!\0\xce%\xf8\xa6\xff\xff\xff\xff\xff\xff\xff\xff\x05\0\x14\0"s +
    "a.npy\x01\0\x10\0\x82\0\0\0\0\0\0\0\x82\0\0\0\0\0\0\0"s +
    npy_of(header_of("|i1", "(2,)"), "\x01\x02") +
    "PK\x01\x02-\x03-\0\0\0\0\0\0\0!\0\xce%\xf8\xa6\x82\0\0\0\x82\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0"s +
    "\x80\x01\0\0\0\0a.npyPK\x05\x06\0\0\0\0\x01\0\x01\0"s + "3\0\0\0\xb9\0\0\0\0\0"s;

// numpy.savez_compressed(f, w=numpy.arange(6, dtype="f4").reshape(2, 3), n=numpy.array(7)).
const char* const kNumpyDeflated =
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400772e6e70790100100098000000000000"
    "0055000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f"
    "5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e063068b007120e4004c40d40bcc0"
    "0100504b03042d00000008000000210023b8f06cffffffffffffffff050014006e2e6e7079010010008800000000"
    "00000046000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498"
    "179f5f94920a12774bcc294e058a17672416a402f91a9a3a0ab50a14012e7606080000504b01022d032d00000008"
    "00000021004fe9002a5500000098000000050000000000000000000000800100000000772e6e7079504b01022d03"
    "2d00000008000000210023b8f06c460000008800000005000000000000000000000080018c0000006e2e6e707950"
    "4b0506000000000200020066000000090100000000";

class Npy : public testing::Test {
 protected:
  std::string path(const char* name = "x.npy") const { return folder_.file(name); }

  std::string file_of(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }

  std::string error_of(const std::string& bytes) const {
    try {
      load_npy(file_of(bytes));
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  const TempFolder folder_;
};

TEST_F(Npy, WritesTheBytesOfNumpy) {
  save_npy(path(), tensor({{0.f, 1.f, 2.f}, {3.f, 4.f, 5.f}}));
  const std::string start =
      "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"s;
  EXPECT_EQ(read_text(path()), start + std::string(128 - 1 - start.size(), ' ') +
                                   "\n\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@"s);
  save_npy(path(), tensor(2.5, {.dtype = float64}));
  EXPECT_EQ(read_text(path()), npy_of(header_of("<f8", "()"), "\0\0\0\0\0\0\x04@"s));
  save_npy(path(), zeros({0, 4}, {.dtype = int64}));
  EXPECT_EQ(read_text(path()), npy_of(header_of("<i8", "(0, 4)"), ""));
  save_npy(path(), tensor({true, false}));
  EXPECT_EQ(read_text(path()), npy_of(header_of("|b1", "(2,)"), "\1\0"s));
}

TEST_F(Npy, EveryDtypeComesBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor x = tensor(std::vector<float>{1, 0, 1, 1, 0, 1}, {2, 3}, {.dtype = dtype});
    if (dtype == bfloat16) {
      EXPECT_THROW(save_npy(path(), x), Unsupported);
      continue;
    }
    save_npy(path(), x);
    const Tensor got = load_npy(path());
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_EQ(got.shape(), Shape({2, 3}));
    EXPECT_EQ(got.to_vector<double>(), x.to_vector<double>()) << dtype;
  }
}

TEST_F(Npy, StridedAndEmptyTensorsComeBack) {
  const Tensor x = arange(6).reshape({2, 3});
  save_npy(path(), x.t());
  EXPECT_EQ(load_npy(path()).shape(), Shape({3, 2}));
  EXPECT_EQ(load_npy(path()).to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  save_npy(path(), zeros({3, 0}));
  EXPECT_EQ(load_npy(path()).shape(), Shape({3, 0}));
  save_npy(path(), tensor(7));
  EXPECT_EQ(load_npy(path()).dim(), 0);
  EXPECT_EQ(load_npy(path()).item<int64_t>(), 7);
}

TEST_F(Npy, GlobalTensorsAreGathered) {
  run_ranks(2, [&] {
    const Tensor x =
        arange(6, {.dtype = float32, .placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    save_npy(path(env::rank() == 0 ? "a.npy" : "b.npy"), x);
  });
  EXPECT_EQ(load_npy(path("a.npy")).to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read_text(path("a.npy")), read_text(path("b.npy")));
}

TEST_F(Npy, ReadsBothByteOrdersAndOrdersOfDims) {
  // numpy.asfortranarray(numpy.arange(6, dtype=">i4").reshape(2, 3))
  const Tensor x = load_npy(file_of(npy_of(header_of(">i4", "(2, 3)", "True"),
                                           "\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\0\0\2\0\0\0\5"s)));
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));

  const Tensor y = load_npy(file_of(npy_of(header_of(">f8", "()"), "@\4\0\0\0\0\0\0"s)));
  EXPECT_EQ(y.item(), 2.5);
  const Tensor h = load_npy(file_of(npy_of(header_of(">f2", "(1,)"), "\x3e\0"s)));
  EXPECT_EQ(h.item(), 1.5);
}

TEST_F(Npy, ReadsLaterFormatsAndLooseHeaders) {
  for (const int major : {2, 3}) {
    EXPECT_EQ(
        load_npy(file_of(npy_of(header_of("<i8", "(1,)"), "\5\0\0\0\0\0\0\0"s, major))).item(), 5);
  }
  const std::string loose = "{\"shape\":(1L,2),'fortran_order':False,\"descr\":\"=u1\"}";
  EXPECT_EQ(load_npy(file_of(npy_of(loose, "\3\4"))).to_vector<int>(), (std::vector<int>{3, 4}));
}

TEST_F(Npy, EveryNonZeroByteIsTrue) {
  const Tensor x = load_npy(file_of(npy_of(header_of("|b1", "(3,)"), "\0\2\xff"s)));
  EXPECT_EQ(x.to(int64).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1}));
}

TEST_F(Npy, EveryTruncationAndTrailingBytesAreRefused) {
  const std::string whole = npy_of(header_of("<i4", "(2,)"), "12345678");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(load_npy(file_of(whole.substr(0, length))), IoError) << length;
  EXPECT_THROW(load_npy(file_of(whole + "9")), IoError);
  EXPECT_NE(error_of(whole + "9").find(path()), std::string::npos);
}

TEST_F(Npy, BadHeadersAreRefused) {
  const std::vector<std::string> texts = {
      "",
      "{}",
      "[1]",
      header_of("<i4", "(2,)") + "x",
      header_of("<i4", "(2)"),
      header_of("<i4", "2"),
      header_of("<i4", "(-2,)"),
      header_of("<i4", "(2.0,)"),
      header_of("<i4", "(2,"),
      header_of("|i4", "(2,)"),
      header_of("<i4", "(2,)", "true"),
      header_of("<i4", "(4294967296, 4294967296, 4294967296)"),
      header_of("<i4", "(99999999999999999999,)"),
      header_of("<i4", "(0, 999999999999999999, 999999999999999999)"),
      "{'descr': '<i4', 'shape': (2,), }",
      "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
      "{'descr': '<i4, 'fortran_order': False, 'shape': (2,)}",
  };
  for (const std::string& text : texts)
    EXPECT_THROW(load_npy(file_of(npy_of(text, "12345678"))), Error) << text;
  EXPECT_NO_THROW(load_npy(file_of(npy_of(header_of("<i4", "(2,)"), "12345678"))));
}

TEST_F(Npy, TypesThatAreLackingAreNamed) {
  for (const char* descr : {"<u2", "<c8", "|O", "<U3", "|V2", "<f16"}) {
    const std::string error = error_of(npy_of(header_of(descr, "(1,)"), "12345678"));
    EXPECT_NE(error.find(descr), std::string::npos) << error;
    EXPECT_NE(error.find("astype"), std::string::npos) << error;
  }
  const std::string structured = "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}";
  EXPECT_NE(error_of(npy_of(structured, "1234")).find("structured"), std::string::npos);
  EXPECT_THROW(load_npy(file_of(npy_of(header_of("<i4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "1234"))),
               Unsupported);
}

TEST_F(Npy, FailedWriteLeavesTheOldFile) {
  save_npy(path(), ones({2}));
  EXPECT_THROW(save_npy(path("missing/x"), ones({2})), IoError);
  EXPECT_THROW(save_npz(path(), {{"a", ones({2})}, {"b", ones({2}, {.dtype = bfloat16})}}),
               Unsupported);
  EXPECT_EQ(load_npy(path()).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(Npy, ReadsArchivesOfNumpy) {
  const StateDict stored = load_npz(file_of(kNumpyStored));
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored.at("a").dtype(), int8);
  EXPECT_EQ(stored.at("a").to_vector<int>(), (std::vector<int>{1, 2}));

  const StateDict deflated = load_npz(file_of(from_hex(kNumpyDeflated)));
  ASSERT_EQ(deflated.size(), 2U);
  EXPECT_EQ(deflated.at("n").item<int64_t>(), 7);
  EXPECT_EQ(deflated.at("w").shape(), Shape({2, 3}));
  EXPECT_EQ(deflated.at("w").to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST_F(Npy, ArchivesComeBack) {
  const StateDict tensors = {{"layer.weight", arange(200'000).to(float32).reshape({400, 500})},
                             {"layer.bias", zeros({0})},
                             {"ünï", tensor({true, false})}};
  for (const bool compressed : {false, true}) {
    save_npz(path("a.npz"), tensors, {.compressed = compressed});
    const StateDict got = load_npz(path("a.npz"));
    ASSERT_EQ(got.size(), tensors.size());
    for (const auto& [name, want] : tensors) {
      EXPECT_EQ(got.at(name).dtype(), want.dtype()) << name;
      EXPECT_EQ(got.at(name).shape(), want.shape()) << name;
      EXPECT_EQ(got.at(name).to_vector<double>(), want.to_vector<double>()) << name;
    }
    save_npz(path("b.npz"), tensors, {.compressed = compressed});
    EXPECT_EQ(read_text(path("a.npz")), read_text(path("b.npz")));
  }
  EXPECT_LT(std::filesystem::file_size(path("a.npz")), 500'000U);
}

TEST_F(Npy, AnArchiveWithoutMembersIsThatOfNumpy) {
  save_npz(path("a.npz"), {});
  // numpy.savez(f). numpy.load takes a file that begins in another way for a pickled object.
  EXPECT_EQ(read_text(path("a.npz")), "PK\x05\x06"s + std::string(18, '\0'));
  EXPECT_TRUE(load_npz(path("a.npz")).empty());
}

TEST_F(Npy, MoreMembersThanSixteenBitsCountComeBack) {
  StateDict tensors;
  const Tensor none = zeros({0});
  for (int64_t i = 0; i < 65'536; ++i)
    tensors.emplace(str(i), none);
  save_npz(path("a.npz"), tensors);
  EXPECT_EQ(load_npz(path("a.npz")).size(), tensors.size());
}

TEST_F(Npy, DamagedArchivesAreRefused) {
  for (const std::string& whole : {kNumpyStored, from_hex(kNumpyDeflated)}) {
    for (size_t length = 0; length < whole.size(); ++length)
      EXPECT_THROW(load_npz(file_of(whole.substr(0, length))), IoError) << length;
  }
  std::string changed = kNumpyStored;
  changed[30 + 5 + 20 + 128] ^= 1;  // the first element
  try {
    load_npz(file_of(changed));
    ADD_FAILURE() << "accepted";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("checksum of a.npy"), std::string::npos);
  }
}

TEST_F(Npy, MembersThatClaimTooMuchTakeNoMemory) {
  save_npz(path("a.npz"), {{"a", zeros({64})}}, {.compressed = true});
  std::string bytes = read_text(path("a.npz"));
  const std::string size = "\x80\x01\0\0\0\0\0\0"s;  // 128 + 4 × 64
  const std::string huge = "\0\0\0\0\0\1\0\0"s;
  for (size_t at = bytes.find(size); at != std::string::npos; at = bytes.find(size))
    bytes.replace(at, size.size(), huge);
  try {
    load_npz(file_of(bytes));
    ADD_FAILURE() << "accepted";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("claims"), std::string::npos);
  }
}

TEST_F(Npy, OtherMembersAreRefused) {
  std::string bytes = kNumpyStored;
  for (size_t at = bytes.find("a.npy"); at != std::string::npos; at = bytes.find("a.npy"))
    bytes.replace(at, 5, "a.txt");
  EXPECT_THROW(load_npz(file_of(bytes)), IoError);
}

}  // namespace
}  // namespace flow::nn

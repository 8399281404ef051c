#include "ops/creation/dlpack.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/shape/slice.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

template <class Managed>
struct Give {
  void operator()(Managed* managed) const { managed->deleter(managed); }
};

template <class Managed>
using Given = std::unique_ptr<Managed, Give<Managed>>;

// Memory of another library that counts how often it is released.
template <class Managed>
struct Foreign {
  Floats data{0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape{2, 3};
  std::vector<int64_t> strides{3, 1};
  int released = 0;
  Managed managed{};

  Foreign() {
    managed.dl_tensor = {.data = data.data(),
                         .device = {DLDeviceType::kDLCPU, 0},
                         .ndim = 2,
                         .dtype = {DLDataTypeCode::kDLFloat, 32, 1},
                         .shape = shape.data(),
                         .strides = strides.data(),
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->released; };
    if constexpr (requires { managed.version; }) managed.version = kDLPackVersion;
  }
};

TEST(DLPack, GivesMemoryWithShapeStridesAndOffset) {
  const Tensor x = arange(6).reshape({2, 3});
  const Given<DLManagedTensorVersioned> given(to_dlpack(x.t().narrow(0, 1, 2)));
  const DLTensor& t = given->dl_tensor;
  EXPECT_EQ(given->version.major, 1U);
  EXPECT_EQ(given->flags, 0U);
  EXPECT_EQ(t.data, x.data<int64_t>() + 1);
  EXPECT_EQ(t.byte_offset, 0U);
  ASSERT_EQ(t.ndim, 2);
  EXPECT_EQ((std::vector<int64_t>{t.shape[0], t.shape[1], t.strides[0], t.strides[1]}),
            (std::vector<int64_t>{2, 2, 1, 3}));
  EXPECT_EQ(t.dtype.code, DLDataTypeCode::kDLInt);
  EXPECT_EQ(t.dtype.bits, 64);
  EXPECT_EQ(t.dtype.lanes, 1);
}

TEST(DLPack, EveryDtypeComesBackInTheSameMemory) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const Tensor x = ones({2, 3}, {.dtype = static_cast<DType>(i)});
    const Tensor y = from_dlpack(to_dlpack(x));
    const Tensor z = from_dlpack(to_dlpack_legacy(x));
    EXPECT_EQ(y.dtype(), x.dtype());
    EXPECT_EQ(z.dtype(), x.dtype());
    EXPECT_EQ(y.impl().data(), x.impl().data());
    EXPECT_EQ(z.impl().data(), x.impl().data());
  }
}

TEST(DLPack, WritesAreSeenOnBothSides) {
  const Tensor x = zeros({2, 3});
  const Tensor y = from_dlpack(to_dlpack(x.t()));
  y.select(0, 2).add_(1);
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 0, 1, 0, 0, 1}));
}

TEST(DLPack, GivenMemoryOutlivesItsTensor) {
  Tensor y;
  {
    const Tensor x = tensor({1.0, 2.0});
    y = from_dlpack(to_dlpack(x));
  }
  EXPECT_EQ(y.to_vector<float>(), Floats({1, 2}));
}

TEST(DLPack, ABoolOfAnotherByteIsRefused) {
  Foreign<DLManagedTensorVersioned> foreign;
  std::vector<uint8_t> bytes{0, 1, 1, 0, 2, 1};
  foreign.managed.dl_tensor.data = bytes.data();
  foreign.managed.dl_tensor.dtype = {DLDataTypeCode::kDLBool, 8, 1};

  EXPECT_THROW(from_dlpack(&foreign.managed), InvalidArgument);

  bytes[4] = 1;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_vector<bool>(),
            (std::vector<bool>{false, true, true, false, true, true}));
}

template <class Managed>
void expect_released_once() {
  Foreign<Managed> foreign;
  Tensor view;
  {
    const Tensor x = from_dlpack(&foreign.managed);
    EXPECT_EQ(x.data<float>(), foreign.data.data());
    EXPECT_EQ(x.to_vector<float>(), foreign.data);
    view = x.select(0, 1);
  }
  EXPECT_EQ(foreign.released, 0);
  EXPECT_EQ(view.to_vector<float>(), Floats({3, 4, 5}));
  view = Tensor();
  EXPECT_EQ(foreign.released, 1);
}

TEST(DLPack, TakenMemoryIsGivenBackOnce) {
  expect_released_once<DLManagedTensorVersioned>();
  expect_released_once<DLManagedTensor>();
}

TEST(DLPack, TakesStridesOffsetsAndNone) {
  Foreign<DLManagedTensor> foreign;
  foreign.shape = {2, 2};
  foreign.strides = {1, 3};
  foreign.managed.dl_tensor.shape = foreign.shape.data();
  foreign.managed.dl_tensor.strides = foreign.strides.data();
  foreign.managed.dl_tensor.byte_offset = 4;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_vector<float>(), Floats({1, 4, 2, 5}));
  foreign.managed.dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_vector<float>(), Floats({1, 2, 3, 4}));
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).numel(), 4);
  EXPECT_EQ(foreign.released, 2);
}

TEST(DLPack, EmptyAndScalarTensorsPass) {
  const Given<DLManagedTensor> empty(to_dlpack_legacy(zeros({0, 3})));
  EXPECT_EQ(empty->dl_tensor.data, nullptr);
  EXPECT_EQ(from_dlpack(to_dlpack(zeros({0, 3}))).shape(), Shape({0, 3}));
  EXPECT_EQ(from_dlpack(to_dlpack(tensor(2.5))).item(), 2.5);
}

TEST(DLPack, ReadOnlyMemoryIsCopied) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.flags = kDLPackReadOnly;
  const Tensor x = from_dlpack(&foreign.managed);
  EXPECT_EQ(foreign.released, 1);
  x.add_(1);
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(foreign.data, Floats({0, 1, 2, 3, 4, 5}));
}

TEST(DLPack, WhatIsRefusedStaysWithTheCaller) {
  using Edit = void (*)(Foreign<DLManagedTensorVersioned> & foreign);
  for (const auto& [edit, words] : std::vector<std::pair<Edit, const char*>>{
           {[](auto& f) { f.managed.version.major = 2; }, "DLPack 2.0"},
           {[](auto& f) { f.managed.dl_tensor.device.device_type = DLDeviceType{2}; }, "type 2"},
           {[](auto& f) { f.managed.dl_tensor.dtype.lanes = 4; }, "4 lanes"},
           {[](auto& f) { f.managed.dl_tensor.dtype.bits = 8; }, "8 bits"},
           {[](auto& f) { f.managed.dl_tensor.ndim = 9; }, "9 dims"},
           {[](auto& f) { f.managed.dl_tensor.ndim = -1; }, "-1 dims"},
           {[](auto& f) { f.managed.dl_tensor.shape = nullptr; }, "shape is null"},
           {[](auto& f) { f.managed.dl_tensor.data = nullptr; }, "is null"},
           {[](auto& f) { f.managed.dl_tensor.byte_offset = 2; }, "not aligned"},
           {[](auto& f) { f.shape[1] = -3; }, "size 1 is -3"},
           {[](auto& f) { f.shape[1] = int64_t{1} << 61; }, ""},
           {[](auto& f) { f.strides[0] = -3; }, "stride 0 is -3"},
           {[](auto& f) { f.strides[0] = int64_t{1} << 62; }, "stride 0"},
       }) {
    Foreign<DLManagedTensorVersioned> foreign;
    edit(foreign);
    const std::string error = error_of<Error>([&] { from_dlpack(&foreign.managed); });
    EXPECT_NE(error, "no error") << words;
    EXPECT_NE(error.find(words), std::string::npos) << error;
    EXPECT_EQ(foreign.released, 0) << words;
  }
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), InvalidArgument);
}

TEST(DLPack, TensorsThatRequireGradAreRefused) {
  const Tensor x = ones({2}).requires_grad_();
  EXPECT_NE(error_of<Error>([&] { to_dlpack(x); }).find("detach()"), std::string::npos);
  EXPECT_NE(error_of<Error>([&] { to_dlpack_legacy(x * 2); }).find("detach()"), std::string::npos);
  EXPECT_EQ(from_dlpack(to_dlpack(x.detach())).to_vector<float>(), Floats({1, 1}));
}

TEST(DLPack, GlobalTensorsAreRefused) {
  run_ranks(2, [] {
    const Tensor x = ones({4}, {.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    EXPECT_NE(error_of<Error>([&] { to_dlpack(x); }).find("to_local()"), std::string::npos);
    EXPECT_EQ(from_dlpack(to_dlpack(x.to_local())).numel(), 2);
  });
}

}  // namespace
}  // namespace flow

#include "ops/creation/dlpack.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "core/error.h"
#include "ops/creation/copy.h"

namespace flow {

namespace {

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

struct DTypeRow {
  DType dtype;
  DLDataTypeCode code;
  uint8_t bits;
};

constexpr std::array kDTypes = {DTypeRow{bool_, DLDataTypeCode::kDLBool, 8},
                                DTypeRow{uint8, DLDataTypeCode::kDLUInt, 8},
                                DTypeRow{int8, DLDataTypeCode::kDLInt, 8},
                                DTypeRow{int16, DLDataTypeCode::kDLInt, 16},
                                DTypeRow{int32, DLDataTypeCode::kDLInt, 32},
                                DTypeRow{int64, DLDataTypeCode::kDLInt, 64},
                                DTypeRow{float16, DLDataTypeCode::kDLFloat, 16},
                                DTypeRow{bfloat16, DLDataTypeCode::kDLBfloat, 16},
                                DTypeRow{float32, DLDataTypeCode::kDLFloat, 32},
                                DTypeRow{float64, DLDataTypeCode::kDLFloat, 64}};

constexpr int64_t kMaxBytes = int64_t{1} << 62;

// The data that an exported tensor must keep alive, with its shape and strides.
template <class Managed>
struct Export {
  Tensor tensor;
  std::array<int64_t, kMaxDims> shape;
  std::array<int64_t, kMaxDims> strides;
  Managed managed;
};

template <class Managed>
Managed* export_tensor(const TensorArg& x) {
  const TensorMeta& meta = x->meta();
  if (meta.is_global()) {
    throw InvalidArgument(str("[to_dlpack] ", meta,
                              " is global, but DLPack describes the memory of one "
                              "process; pass to_local() or full()"),
                          x.site());
  }
  if (meta.device != DeviceType::kCpu) {
    throw Unsupported(str("[to_dlpack] the tensor, ", meta, ", is stored on ", meta.device,
                          "; only host memory can be shared: pass to(\"cpu\")"),
                      x.site());
  }
  if (x->requires_grad()) {
    throw InvalidArgument(str("[to_dlpack] ", meta,
                              " requires grad, but another library would not "
                              "record its operations; pass detach()"),
                          x.site());
  }
  if (!x->impl().storage) {
    throw InvalidArgument(str("[to_dlpack] ", meta,
                              " has no value yet: it is part of a trace; give "
                              "the result of the graph"),
                          x.site());
  }
  x->make_strided();
  auto owned = std::make_unique<Export<Managed>>();
  owned->tensor = Tensor(x->impl().alias());
  std::copy(meta.shape.begin(), meta.shape.end(), owned->shape.begin());
  const Strides& strides = x->strides();
  std::copy(strides.begin(), strides.end(), owned->strides.begin());
  const auto* row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                 [&](const DTypeRow& r) { return r.dtype == meta.dtype; });
  Managed& managed = owned->managed;
  managed.dl_tensor = {.data = meta.numel == 0 ? nullptr : x->impl().data(),
                       .device = {DLDeviceType::kDLCPU, 0},
                       .ndim = static_cast<int32_t>(meta.dim()),
                       .dtype = {row->code, row->bits, 1},
                       .shape = owned->shape.data(),
                       .strides = owned->strides.data(),
                       .byte_offset = 0};
  managed.manager_ctx = owned.get();
  managed.deleter = [](Managed* self) {
    const std::unique_ptr<Export<Managed>> last(static_cast<Export<Managed>*>(self->manager_ctx));
  };
  return &owned.release()->managed;
}

DType dtype_of_dlpack(const DLDataType& given, Site site) {
  const auto* row = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeRow& r) {
    return r.code == given.code && r.bits == given.bits;
  });
  if (row == kDTypes.end() || given.lanes != 1) {
    throw Unsupported(
        str("[from_dlpack] the elements have type code ", static_cast<int>(given.code), " with ",
            int{given.bits}, " bits and ", given.lanes,
            " lanes; give bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32 or "
            "float64"),
        site);
  }
  return row->dtype;
}

// Checks a description of memory from another library. Computes the number of bytes from the first
// element to the end of the last one.
MetaPtr meta_of(const DLTensor& given, size_t* bytes, Site site) {
  if (given.device.device_type != DLDeviceType::kDLCPU) {
    throw Unsupported(str("[from_dlpack] the memory is on a device of type ",
                          static_cast<int>(given.device.device_type),
                          "; this build takes host memory: copy it there first"),
                      site);
  }
  const DType dtype = dtype_of_dlpack(given.dtype, site);
  if (given.ndim < 0 || given.ndim > kMaxDims) {
    throw Unsupported(str("[from_dlpack] the tensor has ", given.ndim, " dims; 0 to ", kMaxDims,
                          " are supported"),
                      site);
  }
  if (given.ndim > 0 && given.shape == nullptr) {
    throw InvalidArgument("[from_dlpack] the shape is null; give one size for each dim", site);
  }
  Shape shape;
  for (int32_t d = 0; d < given.ndim; ++d) {
    if (given.shape[d] < 0) {
      throw InvalidArgument(
          str("[from_dlpack] size ", d, " is ", given.shape[d], "; sizes must be at least 0"),
          site);
    }
    shape.push_back(given.shape[d]);
  }
  const MetaPtr whole = local_meta(shape, dtype, DeviceType::kCpu);
  const auto element = static_cast<int64_t>(dtype_size(dtype));
  *bytes = whole->local_bytes();
  if (whole->numel == 0) return whole;
  if (given.data == nullptr) {
    throw InvalidArgument(str("[from_dlpack] the data of ", *whole, " is null; give memory"), site);
  }
  if ((reinterpret_cast<uintptr_t>(given.data) + given.byte_offset) % dtype_size(dtype) != 0) {
    throw Unsupported(
        str("[from_dlpack] the data of ", *whole, " is not aligned to its elements; copy it first"),
        site);
  }
  if (given.strides == nullptr) return whole;
  Strides strides = whole->strides;
  int64_t last = 0;  // offset of the last element
  for (int32_t d = 0; d < given.ndim; ++d) {
    if (shape[d] == 1) continue;  // such a stride is never used
    int64_t reach = 0;
    if (given.strides[d] < 0 || __builtin_mul_overflow(given.strides[d], shape[d] - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last) || last >= kMaxBytes / element) {
      throw Unsupported(
          str("[from_dlpack] stride ", d, " is ", given.strides[d], " for ", *whole,
              "; it must not be negative or lead out of memory: copy the tensor first"),
          site);
    }
    strides[d] = given.strides[d];
  }
  *bytes = static_cast<size_t>((last + 1) * element);
  return strided_meta(shape, strides, dtype, DeviceType::kCpu);
}

// A C++ bool has only two valid values; reading any other byte as a bool is undefined behaviour.
void check_bools(const TensorMeta& meta, const std::byte* data, Site site) {
  if (meta.dtype != DType::kBool) return;
  for (int64_t i = 0; i < meta.numel; ++i) {
    int64_t offset = 0;
    int64_t rest = i;
    for (int64_t d = meta.shape.size() - 1; d >= 0; --d) {
      offset += rest % meta.shape[d] * meta.strides[d];
      rest /= meta.shape[d];
    }
    const int value = std::to_integer<int>(data[offset]);
    if (value > 1) {
      throw InvalidArgument(str("[from_dlpack] element ", i, " of a bool tensor is the byte ",
                                value, "; give 0 or 1, or the tensor as uint8"),
                            site);
    }
  }
}

template <class Managed>
Tensor import_tensor(Managed* managed, bool is_read_only, Site site) {
  const DLTensor& given = managed->dl_tensor;
  size_t bytes = 0;
  const MetaPtr meta = meta_of(given, &bytes, site);
  auto* data = static_cast<std::byte*>(given.data);
  if (data != nullptr) {
    data += given.byte_offset;
    check_bools(*meta, data, site);
  }
  const auto release = [managed](void* /*data*/) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
  if (is_read_only) {
    Tensor copy = clone({Tensor::make(meta, Storage::wrap(data, bytes, {})), site});
    release(nullptr);
    return copy;
  }
  return Tensor::make(meta, Storage::wrap(data, bytes, release));
}

void check_given(const void* managed, Site site) {
  if (managed == nullptr) {
    throw InvalidArgument("[from_dlpack] the managed tensor is null; it may have been taken before",
                          site);
  }
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const TensorArg& x) {
  auto* managed = export_tensor<DLManagedTensorVersioned>(x);
  managed->version = kDLPackVersion;
  managed->flags = 0;
  return managed;
}

DLManagedTensor* to_dlpack_legacy(const TensorArg& x) {
  return export_tensor<DLManagedTensor>(x);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, Site site) {
  check_given(managed, site);
  if (managed->version.major != kDLPackVersion.major) {
    throw Unsupported(str("[from_dlpack] the tensor uses DLPack ", managed->version.major, ".",
                          managed->version.minor, "; ", kDLPackVersion.major,
                          ".x is supported: ask its library for that version"),
                      site);
  }
  return import_tensor(managed, (managed->flags & kDLPackReadOnly) != 0, site);
}

Tensor from_dlpack(DLManagedTensor* managed, Site site) {
  check_given(managed, site);
  return import_tensor(managed, false, site);
}

}  // namespace flow

// Exchanges tensors with other libraries of the same process without copying, by DLPack (the data
// structures of https://dmlc.github.io/dlpack, versions 0.x and 1.x). The structures are declared
// here with the standard's names and layout; programs that include the standard's header cast the
// pointers.
//
//   flow::Tensor x = flow::from_dlpack(managed);        // takes over what another library gave
//   DLManagedTensor* given = flow::to_dlpack_legacy(x);  // whoever takes it calls given->deleter
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

enum class DLDeviceType : int32_t { kDLCPU = 1 };

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

enum class DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6
};

struct DLDataType {
  DLDataTypeCode code;
  uint8_t bits;
  uint16_t lanes;  // numbers per element; 1 here
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

// The structure of versions 0.x.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // may be null
};

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

inline constexpr DLPackVersion kDLPackVersion{1, 0};
inline constexpr uint64_t kDLPackReadOnly = 1;  // a flag
inline constexpr uint64_t kDLPackIsCopied = 2;

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);  // may be null
  uint64_t flags;
  DLTensor dl_tensor;
};

// Shares the memory of x, which stays valid until the deleter is called (once, on any thread). x
// must be local; it need not be contiguous. A tensor that requires grad is rejected, because its
// reader would not record a gradient: call detach() first.
DLManagedTensorVersioned* to_dlpack(const TensorArg& x);
DLManagedTensor* to_dlpack_legacy(const TensorArg& x);

// Returns a local tensor that uses the given memory and takes ownership of `managed`: its deleter
// is called when the last tensor that uses the memory is destroyed. Memory marked read-only is
// copied instead, because tensors can be written. Only host memory is supported. If the function
// throws (InvalidArgument for malformed input, Unsupported for what the library lacks), the caller
// still owns `managed`.
Tensor from_dlpack(DLManagedTensorVersioned* managed, Site site = Site::here());
Tensor from_dlpack(DLManagedTensor* managed, Site site = Site::here());

}  // namespace flow

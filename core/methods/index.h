// Methods that pick or replace elements by position or condition. They are defined in ops/index,
// ops/shape (slices, diagonals), ops/elementwise (conditions) and ops/random (multinomial).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/methods/method_family.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow {

class IndexArg;
class IndexList;
class Tensor;
class TensorArg;
struct UniqueConsecutiveOptions;
struct NonzeroStaticOptions;
struct UniqueOptions;
struct UniqueResult;

struct IndexPutOptions {
  bool accumulate = false;  // adds to the element, also if it is named twice
};

struct ScatterOptions {
  std::string reduce = {};  // "": the last value stays; "add"; "multiply"
};

struct ScatterReduceOptions {
  bool include_self = true;  // x's element is one of the reduced values
};

struct MultinomialOptions {
  bool replacement = false;
};

class IndexMethods : public MethodFamily<IndexMethods> {
 public:
  // ---- elements by position
  Tensor operator[](const IndexArg& index) const&;
  // Of a temporary: releases it, so that a write into a view that nobody else sees is refused.
  Tensor operator[](const IndexArg& index) &&;
  Tensor index(const IndexList& indices) const;
  Tensor index_select(int64_t dim, const TensorArg& index) const;
  Tensor masked_select(const TensorArg& mask) const;
  Tensor nonzero(Site site = Site::here()) const;
  Tensor nonzero_static(const NonzeroStaticOptions& options, Site site = Site::here()) const;
  Tensor argwhere(Site site = Site::here()) const;
  Tensor take(const TensorArg& index) const;
  Tensor take_along_dim(const TensorArg& indices, std::optional<int64_t> dim = std::nullopt) const;
  Tensor gather(int64_t dim, const TensorArg& index) const;
  Tensor multinomial(int64_t num_samples, const MultinomialOptions& options = {},
                     Site site = Site::here()) const;
  UniqueResult unique(Site site = Site::here()) const;
  UniqueResult unique(const UniqueOptions& options, Site site = Site::here()) const;
  UniqueResult unique_consecutive(Site site = Site::here()) const;
  UniqueResult unique_consecutive(const UniqueConsecutiveOptions& options,
                                  Site site = Site::here()) const;

  // ---- copies with elements replaced
  Tensor scatter(int64_t dim, const TensorArg& index, const TensorArg& src,
                 const ScatterOptions& options = {}) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const Scalar& value,
                 const ScatterOptions& options = {}) const;
  Tensor scatter_add(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  Tensor scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                        const std::string& reduce, const ScatterReduceOptions& options = {}) const;
  Tensor index_add(int64_t dim, const TensorArg& index, const TensorArg& source,
                   double alpha = 1) const;
  Tensor index_put(const IndexList& indices, const TensorArg& values,
                   const IndexPutOptions& options = {}) const;
  Tensor index_copy(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  Tensor index_fill(int64_t dim, const TensorArg& index, const Scalar& value) const;
  Tensor slice_scatter(const TensorArg& source, int64_t dim = 0,
                       std::optional<int64_t> start = std::nullopt,
                       std::optional<int64_t> end = std::nullopt, int64_t step = 1) const;
  Tensor select_scatter(const TensorArg& source, int64_t dim, int64_t index) const;
  Tensor diagonal_scatter(const TensorArg& source, int64_t offset = 0, int64_t dim1 = 0,
                          int64_t dim2 = 1) const;
  Tensor masked_fill(const TensorArg& mask, const Scalar& value) const;
  Tensor masked_fill(const TensorArg& mask, const TensorArg& value) const;
  Tensor masked_scatter(const TensorArg& mask, const TensorArg& source) const;
  // The elements of this tensor where the condition holds, else those of other.
  Tensor where(const TensorArg& condition, const TensorArg& other) const;
  Tensor where(const TensorArg& condition, const Scalar& other) const;
};

}  // namespace flow

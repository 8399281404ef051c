#include "ops/linear/einsum.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/error.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// Letters are 0 … 51, upper case first; the dims of "..." follow.
constexpr int kFirstEllipsis = 52;
constexpr int kNumLabels = kFirstEllipsis + kMaxDims;

using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// A tensor whose dims have names.
struct Operand {
  Tensor tensor;
  Labels labels;
};

// Returns x with its dims in the order of `labels`.
Tensor arranged(const Operand& x, const Labels& labels) {
  std::vector<int64_t> order;
  for (const int label : labels) {
    const auto found = std::find(x.labels.begin(), x.labels.end(), label);
    order.push_back(found - x.labels.begin());
  }
  return std::is_sorted(order.begin(), order.end()) ? x.tensor : permute(x.tensor, order);
}

// Returns x summed over the dims that are not in `needed`.
Operand reduced_to(const Operand& x, const Labels& needed) {
  Labels kept;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(needed, x.labels[i])) {
      kept.push_back(x.labels[i]);
    } else {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  if (dims.empty()) return x;
  return {sum(x.tensor, std::move(dims)), std::move(kept)};
}

// The dims that two operands share and do not share.
struct Pairing {
  Labels batch;       // in both and in the result
  Labels contracted;  // in both, summed over
  Labels left;        // in the first only
  Labels right;       // in the second only
};

Pairing pair_up(const Operand& a, const Operand& b, const Labels& needed) {
  Pairing pairing;
  for (const int label : a.labels) {
    if (!contains(b.labels, label)) {
      pairing.left.push_back(label);
    } else {
      (contains(needed, label) ? pairing.batch : pairing.contracted).push_back(label);
    }
  }
  for (const int label : b.labels) {
    if (!contains(a.labels, label)) pairing.right.push_back(label);
  }
  return pairing;
}

Labels joined(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

int64_t count_of(const Tensor& arranged, size_t first, size_t count) {
  int64_t product = 1;
  for (size_t i = first; i < first + count; ++i)
    product *= arranged.shape()[static_cast<int64_t>(i)];
  return product;
}

// Products of all pairs of elements that agree in the batch dims.
Tensor outer_product(const Operand& a, const Operand& b, const Pairing& dims) {
  Tensor left = arranged(a, joined(dims.batch, dims.left, {}));
  for (size_t i = 0; i < dims.right.size() && left.dim() > 0; ++i)
    left = unsqueeze(left, -1);
  Tensor right = arranged(b, joined(dims.batch, {}, dims.right));
  for (size_t i = 0; i < dims.left.size() && right.dim() > 0; ++i)
    right = unsqueeze(right, static_cast<int64_t>(dims.batch.size()));
  return mul(left, right);
}

// Sums of products as one matrix product, or as one for each index of the batch dims.
Tensor matrix_product(const Operand& a, const Operand& b, const Pairing& dims) {
  const Tensor left = arranged(a, joined(dims.batch, dims.left, dims.contracted));
  const Tensor right = arranged(b, joined(dims.batch, dims.contracted, dims.right));
  const size_t batch = dims.batch.size();
  const size_t inner = dims.contracted.size();
  Shape rows{count_of(left, batch, dims.left.size())};
  rows.push_back(count_of(right, batch, inner));
  Shape columns{rows[1], count_of(right, batch + inner, dims.right.size())};
  Shape shape;
  for (size_t i = 0; i < batch + dims.left.size(); ++i)
    shape.push_back(left.shape()[static_cast<int64_t>(i)]);
  for (size_t i = batch + inner; i < batch + inner + dims.right.size(); ++i)
    shape.push_back(right.shape()[static_cast<int64_t>(i)]);
  if (batch > 0) {
    rows.insert(0, count_of(left, 0, batch));
    columns.insert(0, rows[0]);
  }
  return reshape(matmul(reshape(left, rows), reshape(right, columns)), shape);
}

// The product of a and b, summed over the dims that `needed` lacks.
Operand contract(const Operand& a, const Operand& b, const Labels& needed) {
  const Operand left = reduced_to(a, joined(needed, b.labels, {}));
  const Operand right = reduced_to(b, joined(needed, a.labels, {}));
  const Pairing dims = pair_up(left, right, needed);
  const Tensor product = dims.contracted.empty() ? outer_product(left, right, dims)
                                                 : matrix_product(left, right, dims);
  return {product, joined(dims.batch, dims.left, dims.right)};
}

// ---- the equation

class Equation {
 public:
  Equation(std::string_view text, const TensorListArg& operands)
      : text_(text), site_(operands.site) {
    std::string written;
    for (const char c : text) {
      if (c != ' ') written.push_back(c);
    }
    const size_t arrow = written.find("->");
    read_operands(written.substr(0, arrow), operands.tensors);
    if (arrow == std::string::npos) {
      infer_result();
    } else {
      result_ = read_term(written.substr(arrow + 2), num_ellipsis_dims_);
      check_result();
    }
  }

  // The operands without repeated letters and without dims that only broadcast.
  const std::vector<Operand>& operands() const { return operands_; }

  const Labels& result() const { return result_; }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    if (!ok) throw InvalidArgument(str("[einsum] ", parts..., " in '", text_, "'"), site_);
  }

  // The labels of a term, "..." being `num_ellipsis` dims.
  Labels read_term(std::string_view term, int64_t num_ellipsis) const {
    Labels labels;
    bool has_ellipsis = false;
    for (size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      if (c >= 'A' && c <= 'Z') {
        labels.push_back(c - 'A');
      } else if (c >= 'a' && c <= 'z') {
        labels.push_back(c - 'a' + 26);
      } else {
        check(term.substr(i, 3) == "..." && !has_ellipsis, "unexpected '", c,
              "'; give letters, one '...' a term, ',' and '->'");
        has_ellipsis = true;
        i += 2;
        for (int64_t k = num_ellipsis; k > 0; --k)
          labels.push_back(static_cast<int>(kNumLabels - k));
      }
    }
    return labels;
  }

  void read_operands(const std::string& terms, const std::vector<Tensor>& tensors) {
    size_t begin = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const size_t end = std::min(terms.find(',', begin), terms.size());
      check(begin <= terms.size(), "fewer terms than the ", tensors.size(),
            " operands given; write one for each, with commas between them");
      const std::string term = terms.substr(begin, end - begin);
      begin = end + 1;
      const auto num_letters = static_cast<int64_t>(read_term(term, 0).size());
      const bool has_ellipsis = term.find('.') != std::string::npos;
      const int64_t num_others = tensors[i].dim() - num_letters;
      check(num_others == 0 || (num_others > 0 && has_ellipsis), "term '", term,
            "' does not fit operand ", i, " of shape ", tensors[i].shape(),
            "; write a letter for each dim, or ... for some");
      num_ellipsis_dims_ = std::max(num_ellipsis_dims_, num_others);
      operands_.push_back({tensors[i], read_term(term, num_others)});
    }
    check(!tensors.empty() && begin == terms.size() + 1, "not one operand for each term; received ",
          tensors.size(), "; give one for each");
    for (Operand& operand : operands_) {
      for (const int label : operand.labels)
        ++occurrences_[static_cast<size_t>(label)];
      take_diagonals(operand);
      note_sizes(operand);
    }
    for (Operand& operand : operands_)
      drop_broadcast_dims(operand);
  }

  void take_diagonals(Operand& operand) const {
    for (size_t i = 0; i < operand.labels.size();) {
      const int label = operand.labels[i];
      const auto again = std::find(operand.labels.begin() + static_cast<int64_t>(i) + 1,
                                   operand.labels.end(), label);
      if (again == operand.labels.end()) {
        ++i;
        continue;
      }
      const auto first = static_cast<int64_t>(i);
      const int64_t second = again - operand.labels.begin();
      const Shape& shape = operand.tensor.shape();
      check(shape[first] == shape[second], "a letter names dims of sizes ", shape[first], " and ",
            shape[second], " of one operand; use two letters");
      operand.tensor = diagonal({operand.tensor, site_}, 0, first, second);
      operand.labels.erase(again);
      operand.labels.erase(operand.labels.begin() + first);
      operand.labels.push_back(label);
    }
  }

  void note_sizes(const Operand& operand) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const int64_t size = operand.tensor.shape()[static_cast<int64_t>(i)];
      int64_t& known = sizes_[static_cast<size_t>(operand.labels[i])];
      check(known == 0 || known == 1 + size || known == 2 || size == 1,
            "a letter names dims of sizes ", known - 1, " and ", size, "; use two letters");
      if (known == 0 || known == 2) known = 1 + size;
    }
  }

  // A factor that is constant along a dim does not need that dim.
  void drop_broadcast_dims(Operand& operand) const {
    for (size_t i = operand.labels.size(); i-- > 0;) {
      const auto dim = static_cast<int64_t>(i);
      const int64_t size = sizes_[static_cast<size_t>(operand.labels[i])] - 1;
      if (operand.tensor.shape()[dim] == size) continue;
      operand.tensor = squeeze({operand.tensor, site_}, dim);
      operand.labels.erase(operand.labels.begin() + dim);
    }
  }

  void infer_result() {
    for (int64_t k = num_ellipsis_dims_; k > 0; --k)
      result_.push_back(static_cast<int>(kNumLabels - k));
    for (int label = 0; label < kFirstEllipsis; ++label) {
      if (occurrences_[static_cast<size_t>(label)] == 1) result_.push_back(label);
    }
  }

  void check_result() const {
    for (const int label : result_) {
      check(occurrences_[static_cast<size_t>(label)] > 0,
            "the result has a letter that no operand has; leave it out");
      check(std::count(result_.begin(), result_.end(), label) == 1,
            "the result has a letter twice; name it once and use diag_embed");
    }
  }

  std::string_view text_;
  Site site_;
  std::vector<Operand> operands_;
  Labels result_;
  int64_t num_ellipsis_dims_ = 0;
  std::array<int, kNumLabels> occurrences_{};
  std::array<int64_t, kNumLabels> sizes_{};  // plus one; 0: not seen
};

}  // namespace

Tensor einsum(std::string_view equation, const TensorListArg& operands) {
  return ops::named("einsum", operands.site, [&]() -> Tensor {
    const Equation parsed(equation, operands);
    const std::vector<Operand>& factors = parsed.operands();
    Operand product = factors.front();
    for (size_t i = 1; i < factors.size(); ++i) {
      Labels needed = parsed.result();
      for (size_t later = i + 1; later < factors.size(); ++later)
        needed = joined(needed, factors[later].labels, {});
      product = contract(product, factors[i], needed);
    }
    const Tensor y = arranged(reduced_to(product, parsed.result()), parsed.result());
    return y.is_same(operands.tensors.front()) ? reshape({y, operands.site}, y.shape()) : y;
  });
}

namespace {

// A dim of size 1 is paired with one of any size, whose sum it multiplies.
void sum_against_ones(Tensor& a, const Ints& dims_a, Tensor& b, const Ints& dims_b) {
  for (int64_t i = 0; i < dims_a.size(); ++i) {
    const int64_t in_a = normalize_dim(dims_a[i], a.dim(), "tensordot");
    const int64_t in_b = normalize_dim(dims_b[i], b.dim(), "tensordot");
    if (a.size(in_a) == b.size(in_b)) continue;
    if (a.size(in_a) == 1) {
      b = sum(b, in_b, {.keepdim = true, .dtype = b.dtype()});
    } else if (b.size(in_b) == 1) {
      a = sum(a, in_a, {.keepdim = true, .dtype = a.dtype()});
    }
  }
}

// tensordot, with its operands as they are.
Tensor sum_products(const TensorArg& a, const TensorArg& b, const Ints& dims_a,
                    const Ints& dims_b) {
  return ops::located(a.site(), [&]() -> Tensor {
    Operand left{a, {}};
    Operand right{b, {}};
    if (dims_a.size() == dims_b.size()) sum_against_ones(left.tensor, dims_a, right.tensor, dims_b);
    Labels needed;
    for (int64_t i = 0; i < a->dim() + b->dim(); ++i) {
      needed.push_back(static_cast<int>(i));
      (i < a->dim() ? left : right).labels.push_back(static_cast<int>(i));
    }
    bool is_valid = dims_a.size() == dims_b.size();
    for (int64_t i = 0; is_valid && i < dims_a.size(); ++i) {
      const int64_t in_a = normalize_dim(dims_a[i], a->dim(), "tensordot");
      const int64_t in_b = normalize_dim(dims_b[i], b->dim(), "tensordot");
      int& label = right.labels[static_cast<size_t>(in_b)];
      is_valid = left.tensor.size(in_a) == right.tensor.size(in_b) && label >= a->dim() &&
                 contains(needed, static_cast<int>(in_a));
      std::erase(needed, static_cast<int>(in_a));
      std::erase(needed, label);
      label = static_cast<int>(in_a);
    }
    if (!is_valid) {
      throw InvalidArgument(
          str("[tensordot] dims ", Shape(dims_a.values()), " and ", Shape(dims_b.values()),
              " do not pair different dims of equal sizes; received tensors of shapes ", a->shape(),
              " and ", b->shape()),
          a.site());
    }
    return contract(left, right, needed).tensor;
  });
}

}  // namespace

Tensor tensordot(const TensorArg& a, const TensorArg& b, int64_t dims) {
  if (dims < 0 || dims > a->dim() || dims > b->dim()) {
    throw InvalidArgument(str("[tensordot] dims is ", dims, "; received tensors of shapes ",
                              a->shape(), " and ", b->shape(), "; give at most their dims"),
                          a.site());
  }
  std::vector<int64_t> dims_a;
  std::vector<int64_t> dims_b;
  for (int64_t i = 0; i < dims; ++i) {
    dims_a.push_back(a->dim() - dims + i);
    dims_b.push_back(i);
  }
  return tensordot(a, b, Ints(std::move(dims_a)), Ints(std::move(dims_b)));
}

Tensor tensordot(const TensorArg& a, const TensorArg& b, const Ints& dims_a, const Ints& dims_b) {
  return ops::in_widest_dtype(
      [&](const TensorArg& x, const TensorArg& y) { return sum_products(x, y, dims_a, dims_b); }, a,
      b);
}

}  // namespace flow

#include "core/print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <ostream>
#include <vector>

#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "core/tensor.h"
#include "core/view_link.h"

namespace flow {

namespace internal {

void write_to_stdout(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace internal

namespace {

// What set_printoptions sets.
struct Style {
  int precision = 4;
  int64_t threshold = 1000;
  int64_t edge_items = 3;
  int64_t line_width = 80;
  std::optional<bool> is_scientific = {};
};

// The style of one rank; the rank's threads share it.
struct RankStyle {
  std::mutex mutex;
  Style style;  // guarded by mutex
};

Style style_of_this_rank() {
  auto& shared = thread_state().context->slot<RankStyle>();
  const std::lock_guard lock(shared.mutex);
  return shared.style;
}

Style profile_named(const std::string& name) {
  Style style;
  if (name == "short") {
    style.precision = 2;
    style.edge_items = 2;
  } else if (name == "full") {
    style.threshold = std::numeric_limits<int64_t>::max();
  } else if (name != "default") {
    throw InvalidArgument(
        str("[set_printoptions] profile is '", name, "'; give default, short or full"));
  }
  return style;
}

// A local part in memory.
struct Part {
  const std::byte* data;
  DType dtype;
  Shape shape;
  Strides strides;
  Style style;
  bool is_summarized;
};

double read_double(const Part& part, int64_t offset) {
  return dispatch_all(part.dtype, [&]<class T>() {
    const T value = reinterpret_cast<const T*>(part.data)[offset];
    if constexpr (kIsHalf<T>) {
      return static_cast<double>(static_cast<float>(value));
    } else {
      return static_cast<double>(value);
    }
  });
}

std::string integer_text(const Part& part, int64_t offset) {
  return dispatch_all(part.dtype, [&]<class T>() -> std::string {
    const T value = reinterpret_cast<const T*>(part.data)[offset];
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "True" : "False";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(value);
    } else {
      return {};
    }
  });
}

std::string float_text(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  std::array<char, 400> text;  // the largest double has 309 digits
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr;
  return {text.data(), end};
}

// The indices of one dim that are printed; -1 represents the dots.
std::vector<int64_t> shown_indices(const Part& part, int64_t dim) {
  const int64_t size = part.shape[dim];
  std::vector<int64_t> indices;
  const int64_t edge_items = part.style.edge_items;
  const bool has_gap = part.is_summarized && size > 2 * edge_items;
  for (int64_t i = 0; i < (has_gap ? edge_items : size); ++i)
    indices.push_back(i);
  if (has_gap) {
    indices.push_back(-1);
    for (int64_t i = size - edge_items; i < size; ++i)
      indices.push_back(i);
  }
  return indices;
}

// Calls visit(offset) for every element that is printed.
template <class Visit>
void for_each_shown(const Part& part, int64_t dim, int64_t offset, const Visit& visit) {
  if (dim == part.shape.size()) {
    visit(offset);
    return;
  }
  for (const int64_t i : shown_indices(part, dim)) {
    if (i >= 0) for_each_shown(part, dim + 1, offset + i * part.strides[dim], visit);
  }
}

// One width and one notation for all elements of a tensor.
class Formatter {
 public:
  explicit Formatter(const Part& part) : part_(part) {
    if (is_floating(part.dtype)) {
      choose_notation();
    } else {
      for_each_shown(part, 0, 0, [&](int64_t offset) { widen(integer_text(part_, offset)); });
    }
  }

  int64_t width() const { return static_cast<int64_t>(width_); }

  std::string operator()(int64_t offset) const {
    const std::string text =
        is_floating(part_.dtype) ? number(read_double(part_, offset)) : integer_text(part_, offset);
    return std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') + text;
  }

 private:
  void widen(const std::string& text) { width_ = std::max(width_, text.size()); }

  // Decided from the finite numbers that are not zero; all other numbers are printed in the same
  // notation.
  void choose_notation() {
    std::vector<double> values;
    double largest = 0;
    double smallest = INFINITY;
    for_each_shown(part_, 0, 0, [&](int64_t offset) {
      const double value = read_double(part_, offset);
      if (!std::isfinite(value) || value == 0) return;
      values.push_back(value);
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
      is_whole_ = is_whole_ && value == std::ceil(value);
    });
    if (values.empty()) return;
    is_scientific_ = largest / smallest > 1000 || largest > 1e8 || (!is_whole_ && smallest < 1e-4);
    is_scientific_ = part_.style.is_scientific.value_or(is_scientific_);
    for (const double value : values)
      widen(number(value));
  }

  std::string number(double value) const {
    if (is_scientific_)
      return float_text(value, std::chars_format::scientific, part_.style.precision);
    if (!is_whole_) return float_text(value, std::chars_format::fixed, part_.style.precision);
    return float_text(value, std::chars_format::fixed, 0) + (std::isfinite(value) ? "." : "");
  }

  const Part& part_;
  bool is_whole_ = true;
  bool is_scientific_ = false;
  size_t width_ = 1;
};

// The text of the innermost dim, with line breaks at the line width.
std::string vector_text(const Part& part, const Formatter& format, int64_t offset, int64_t indent) {
  const int64_t per_line =
      std::max<int64_t>(1, (part.style.line_width - indent) / (format.width() + 2));
  const int64_t dim = part.shape.size() - 1;
  std::string text = "[";
  int64_t count = 0;
  for (const int64_t i : shown_indices(part, dim)) {
    if (count > 0 && count % per_line == 0) {
      text += ",\n" + std::string(static_cast<size_t>(indent + 1), ' ');
    } else if (count > 0) {
      text += ", ";
    }
    ++count;
    text += i < 0 ? " ..." : format(offset + i * part.strides[dim]);
  }
  return text + "]";
}

std::string nested_text(const Part& part, const Formatter& format, int64_t dim, int64_t offset,
                        int64_t indent) {
  const int64_t inner_dims = part.shape.size() - dim;
  if (inner_dims == 0) return format(offset);
  if (inner_dims == 1) return vector_text(part, format, offset, indent);
  const std::string separator = "," + std::string(static_cast<size_t>(inner_dims - 1), '\n') +
                                std::string(static_cast<size_t>(indent + 1), ' ');
  std::string text = "[";
  for (const int64_t i : shown_indices(part, dim)) {
    if (text.size() > 1) text += separator;
    text += i < 0 ? "..."
                  : nested_text(part, format, dim + 1, offset + i * part.strides[dim], indent + 1);
  }
  return text + "]";
}

// "AddBackward0" for the op add: PyTorch's names of the functions that made a tensor.
std::string grad_fn_name(std::string_view op) {
  std::string name;
  bool is_start = true;
  for (const char c : op) {
    if (c == '_') {
      is_start = true;
      continue;
    }
    name += is_start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    is_start = false;
  }
  return name + "Backward0";
}

std::vector<std::string> suffixes_of(const Tensor& tensor, bool shows_values) {
  const TensorMeta& meta = tensor.meta();
  std::vector<std::string> suffixes;
  if (meta.is_global()) {
    suffixes.push_back(str("shape=", meta.shape));
    suffixes.push_back(str("sbp=", meta.nd_sbp));
    suffixes.push_back(str("placement=", meta.placement));
  } else if (!shows_values || (meta.numel == 0 && meta.dim() != 1)) {
    suffixes.push_back(str("size=", meta.shape));
  }
  if (meta.device != DeviceType::kCpu && !meta.is_global()) {
    suffixes.push_back(str("device=", meta.device));
  }
  const bool is_evident = shows_values && meta.local_numel > 0 &&
                          (meta.dtype == DType::kInt64 || meta.dtype == DType::kBool);
  if (meta.dtype != DType::kFloat32 && !is_evident) {
    suffixes.push_back(str("dtype=", meta.dtype));
  }
  const TensorImpl& impl = tensor.impl();
  if (impl.grad_fn) {
    suffixes.push_back(str("grad_fn=<", grad_fn_name(impl.grad_fn->name()), ">"));
  } else if (impl.requires_grad) {
    suffixes.push_back("requires_grad=True");
  }
  return suffixes;
}

}  // namespace

void set_printoptions(const PrintOptions& options) {
  const auto check = [](const char* name, std::optional<int64_t> value, int64_t highest) {
    if (!value || (*value >= 0 && *value <= highest)) return;
    throw InvalidArgument(
        str("[set_printoptions] ", name, " is ", *value, "; give 0 to ", highest));
  };
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max() / 4;
  check("precision", options.precision, 30);
  check("threshold", options.threshold, kMany);
  check("edgeitems", options.edgeitems, kMany);
  check("linewidth", options.linewidth, kMany);
  Style style = options.profile.empty() ? style_of_this_rank() : profile_named(options.profile);
  if (options.precision) style.precision = static_cast<int>(*options.precision);
  style.threshold = options.threshold.value_or(style.threshold);
  style.edge_items = options.edgeitems.value_or(style.edge_items);
  style.line_width = options.linewidth.value_or(style.line_width);
  style.is_scientific = options.sci_mode;
  auto& shared = thread_state().context->slot<RankStyle>();
  const std::lock_guard lock(shared.mutex);
  shared.style = style;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "tensor(undefined)";
  const Tensor strided = strided_form(tensor);
  const TensorMeta& meta = strided.meta();
  const Style style = style_of_this_rank();
  // Bringing a view up to date would communicate.
  const bool shows_values = strided.impl().storage && !is_outdated_view(tensor);
  std::string text = "tensor(";
  const auto indent = static_cast<int64_t>(text.size());
  if (!shows_values) {
    text += "...";
  } else if (meta.local_numel == 0) {
    text += "[]";
  } else {
    Ref<Storage> copy;
    if (meta.device != DeviceType::kCpu) {
      RankContext& rank = *thread_state().context;
      OthersMemory others(rank);
      others.add(strided.impl(), "print", Site::none(), OthersMemory::Where::kAnywhere);
      copy = host_copy(rank, {strided.impl().data(), &meta});
    }
    const Part part{copy ? copy->data() : strided.impl().data(),
                    meta.dtype,
                    meta.local_shape,
                    meta.strides,
                    style,
                    meta.local_numel > style.threshold};
    text += nested_text(part, Formatter(part), 0, 0, indent);
  }
  // Suffixes stay on the last line if they fit.
  const size_t line_start = text.rfind('\n');
  auto line_length = static_cast<int64_t>(
      line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1);
  for (const std::string& suffix : suffixes_of(tensor, shows_values)) {
    const auto length = static_cast<int64_t>(suffix.size());
    if (line_length + length + 2 > style.line_width) {
      text += ",\n" + std::string(static_cast<size_t>(indent), ' ') + suffix;
      line_length = indent + length;
    } else {
      text += ", " + suffix;
      line_length += length + 2;
    }
  }
  return out << text << ")";
}

}  // namespace flow

#include "nn/npy_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/context.h"
#include "core/error.h"
#include "ops/creation/copy.h"
#include "ops/shape/view.h"

namespace flow::nn {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
// The longest header of format 1.0. Longer headers occur only for structured arrays, which are
// refused anyway.
constexpr uint32_t kMaxHeaderBytes = 65535;

struct DTypeCode {
  DType dtype;
  std::string_view code;  // kind and number of bytes
};

constexpr std::array kDTypes = {
    DTypeCode{bool_, "b1"},   DTypeCode{uint8, "u1"},   DTypeCode{int8, "i1"},
    DTypeCode{int16, "i2"},   DTypeCode{int32, "i4"},   DTypeCode{int64, "i8"},
    DTypeCode{float16, "f2"}, DTypeCode{float32, "f4"}, DTypeCode{float64, "f8"}};

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw BadFile(str("[npy] ", name, " is not a valid npy array: ", why,
                    "; write it again or restore a copy"));
}

struct Header {
  DType dtype = DType::kFloat32;
  bool is_swapped = false;
  bool is_fortran = false;
  std::vector<uint64_t> shape;
};

// Parses the dict literal: strings, True and False, and a tuple of integers. The header of a plain
// array contains nothing else.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = parse_string("a key");
      expect(':');
      if (key == "descr") {
        claim(has_descr, key);
        parse_descr();
      } else if (key == "fortran_order") {
        claim(has_order, key);
        parse_order();
      } else if (key == "shape") {
        claim(has_shape, key);
        parse_shape();
      } else {
        fail(name_, str("its header has the unknown key ", key));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_spaces();
    if (at_ != text_.size()) fail(name_, "text follows the dict in its header");
    if (!has_descr || !has_order || !has_shape) {
      fail(name_, "its header lacks descr, fortran_order or shape");
    }
    return header_;
  }

 private:
  void claim(bool& is_known, std::string_view key) const {
    if (is_known) fail(name_, str("its header has ", key, " twice"));
    is_known = true;
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }

  bool accept(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(name_, str("its header has no '", wanted, "' at byte ", at_));
  }

  std::string_view parse_string(const char* what) {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      fail(name_, str("its header has no ", what, " at byte ", at_));
    }
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail(name_, "a string in its header does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  void parse_descr() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') refuse_dtype("structured");
    const std::string_view descr = parse_string("type string");
    const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeCode& entry) {
      return descr.size() == 3 && descr.substr(1) == entry.code;
    });
    if (found == kDTypes.end()) refuse_dtype(str("'", descr.substr(0, 32), "'"));
    header_.dtype = found->dtype;
    const bool is_byte = dtype_size(found->dtype) == 1;
    if (std::string_view(is_byte ? "|<>=" : "<>=").find(descr[0]) == std::string_view::npos) {
      fail(name_, str("its type string ", descr, " has no byte order"));
    }
    header_.is_swapped = descr[0] == '>' && !is_byte;
  }

  [[noreturn]] void refuse_dtype(const std::string& what) const {
    throw Unsupported(
        str("[npy] ", name_, " has unsupported elements; received type ", what,
            "; save it as bool, uint8, int8, int16, int32, int64, float16, float32 or "
            "float64 (numpy: x.astype(...))"));
  }

  void parse_order() {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    header_.is_fortran = rest.starts_with("True");
    if (!header_.is_fortran && !rest.starts_with("False")) {
      fail(name_, "its fortran_order is neither True nor False");
    }
    at_ += header_.is_fortran ? 4 : 5;
  }

  void parse_shape() {
    expect('(');
    while (!accept(')')) {
      header_.shape.push_back(parse_size());
      if (accept(',')) continue;
      if (header_.shape.size() == 1) fail(name_, "its shape is not a tuple");
      expect(')');
      break;
    }
  }

  uint64_t parse_size() {
    skip_spaces();
    uint64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value >= uint64_t{1} << 59) fail(name_, "a size in its shape is too large");
      value = value * 10 + static_cast<uint64_t>(text_[at_] - '0');
    }
    if (at_ == begin) fail(name_, "its shape has a size that is not an integer");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers like this
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  Header header_;
};

uint64_t element_bytes(const Header& header, const std::string& name) {
  uint64_t bytes = dtype_size(header.dtype);
  for (const uint64_t size : header.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) fail(name, "the size of its shape overflows");
  }
  return bytes;
}

void swap_elements(std::byte* data, size_t bytes, size_t element) {
  for (size_t i = 0; i < bytes; i += element)
    std::reverse(data + i, data + i + element);
}

}  // namespace

std::string npy_header(DType dtype, const Shape& shape) {
  const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                   [&](const DTypeCode& entry) { return entry.dtype == dtype; });
  if (found == kDTypes.end()) {
    throw Unsupported(str("[npy] NumPy has no type for dtype ", dtype,
                          "; save x.to(flow::float32) or use save_safetensors"));
  }
  std::string text = str("{'descr': '", dtype_size(dtype) == 1 ? '|' : '<', found->code,
                         "', 'fortran_order': False, 'shape': (");
  for (int64_t i = 0; i < shape.size(); ++i)
    text += str(i == 0 ? "" : ", ", shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  const size_t before = kMagic.size() + 4;
  const size_t total = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(total - before - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Tensor read_npy(const ReadBytes& read, uint64_t bytes, const std::string& name) {
  std::array<unsigned char, 12> start{};
  if (bytes < 10) fail(name, str("it has ", bytes, " bytes, fewer than the start of a header"));
  read(start.data(), 8);
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(name, "it does not start with the magic string");
  }
  const int major = start[6];
  if (major < 1 || major > 3 || start[7] != 0) {
    throw Unsupported(str("[npy] ", name, " has an unsupported format; received version ", major,
                          ".", int{start[7]}, "; write version 1.0, 2.0 or 3.0"));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes < 8 + length_bytes) fail(name, "it ends within its header");
  read(start.data() + 8, length_bytes);
  uint32_t length = 0;
  for (size_t i = length_bytes; i-- > 0;)
    length = length << 8 | start[8 + i];
  const uint64_t left = bytes - 8 - length_bytes;
  if (length > kMaxHeaderBytes || length > left) {
    fail(name, str("its header length ", length, " is more than ",
                   length > left ? "the file holds" : "the header of a plain array has"));
  }
  std::string text(length, '\0');
  read(text.data(), text.size());
  const Header header = HeaderParser(text, name).parse();
  if (header.shape.size() > static_cast<size_t>(kMaxDims)) {
    throw Unsupported(str("[npy] ", name, " has ", header.shape.size(), " dims, but at most ",
                          kMaxDims, " are supported; reshape it before saving"));
  }
  if (const uint64_t wanted = element_bytes(header, name); wanted != left - length) {
    fail(name,
         str("its shape needs ", wanted, " bytes of elements but ", left - length, " follow"));
  }
  Shape stored;
  for (const uint64_t size : header.shape)
    stored.push_back(static_cast<int64_t>(size));
  if (header.is_fortran) std::reverse(stored.begin(), stored.end());
  const MetaPtr meta = local_meta(stored, header.dtype, DeviceType::kCpu);
  Ref<Storage> storage =
      Storage::allocate(thread_state().context->allocator(), meta->local_bytes());
  std::byte* data = storage->data();
  read(data, meta->local_bytes());
  if (header.is_swapped) swap_elements(data, meta->local_bytes(), dtype_size(header.dtype));
  if (header.dtype == bool_) {
    std::transform(data, data + meta->local_bytes(), data,
                   [](std::byte value) { return std::byte{value != std::byte{0}}; });
  }
  Tensor result = Tensor::make(meta, std::move(storage));
  if (!header.is_fortran || stored.size() < 2) return result;
  std::vector<int64_t> reversed;
  for (int64_t dim = stored.size(); dim-- > 0;)
    reversed.push_back(dim);
  return contiguous(permute(result, reversed));
}

}  // namespace flow::nn

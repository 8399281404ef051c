#include "nn/safetensors_index.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "nn/checked_json.h"

namespace flow::nn {

namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit

struct FormatDType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype = {};  // unset: flow does not have it
};

// The dtypes of the format (safetensors 0.6).
constexpr std::array kDTypes = {FormatDType{"BOOL", 8, bool_},
                                FormatDType{"U8", 8, uint8},
                                FormatDType{"I8", 8, int8},
                                FormatDType{"I16", 16, int16},
                                FormatDType{"I32", 32, int32},
                                FormatDType{"I64", 64, int64},
                                FormatDType{"F16", 16, float16},
                                FormatDType{"BF16", 16, bfloat16},
                                FormatDType{"F32", 32, float32},
                                FormatDType{"F64", 64, float64},
                                FormatDType{"U16", 16},
                                FormatDType{"U32", 32},
                                FormatDType{"U64", 64},
                                FormatDType{"C64", 64},
                                FormatDType{"F4", 4},
                                FormatDType{"F6_E2M3", 6},
                                FormatDType{"F6_E3M2", 6},
                                FormatDType{"F8_E5M2", 8},
                                FormatDType{"F8_E4M3", 8},
                                FormatDType{"F8_E8M0", 8},
                                FormatDType{"F8_E4M3FNUZ", 8},
                                FormatDType{"F8_E5M2FNUZ", 8}};

const FormatDType* find_dtype(std::string_view name) {
  const auto* const found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                         [&](const FormatDType& d) { return d.name == name; });
  return found == kDTypes.end() ? nullptr : found;
}

// "b (C64), c (U16)", of at most five tensors.
std::string list_of(const std::vector<std::string>& left_out) {
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < std::min(left_out.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + left_out[i];
  return left_out.size() <= kMost ? text : str(text, " and ", left_out.size() - kMost, " more");
}

using Entry = SafetensorsEntry;

class IndexReader {
 public:
  IndexReader(InputFile& file, const std::string& path) : path_(path), file_(file) {}

  std::vector<Entry> read(Metadata* metadata) {
    std::array<unsigned char, 8> length_bytes{};
    if (file_.size() < 8)
      fail(str("it has ", file_.size(), " bytes, less than the 8 bytes of the header length"));
    file_.read(length_bytes.data(), 8);
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;)
      length = length << 8 | length_bytes[i];
    if (length > kMaxHeaderBytes || length > file_.size() - 8) {
      fail(str("the header length ", length, " is greater than the size of the file"));
    }
    std::string text(static_cast<size_t>(length), '\0');
    file_.read(text.data(), text.size());
    data_bytes_ = file_.size() - 8 - length;
    parse(text, metadata);
    check_layout();
    leave_out();
    for (Entry& entry : entries_) {
      entry.begin += 8 + length;
      entry.end += 8 + length;
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw BadFile(str("[safetensors] ", path_, " is not a valid safetensors file: ", why,
                      "; write it again or restore a copy"));
  }

  void parse(const std::string& text, Metadata* metadata) {
    if (text.empty() || text[0] != '{') fail("the header does not start with '{'");
    // Depth 1 has the tensor names. The lists of numbers in their values are at depth 3.
    const Json header = parse_checked(text, {.max_depth = 3, .has_unique_names = true},
                                      [&](const std::string& why) { fail(why); });
    if (!header.is_object()) fail("the header is not a JSON object");
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        read_metadata(value, metadata);
      } else {
        entries_.push_back(parse_entry(name, value));
      }
    }
  }

  void read_metadata(const Json& value, Metadata* metadata) const {
    if (!value.is_object()) fail(str(kMetadata, " is not a JSON object"));
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail(str(kMetadata, ' ', key, " is not a string"));
      if (metadata != nullptr) metadata->emplace(key, text.get<std::string>());
    }
  }

  uint64_t unsigned_number(const Json& value, const std::string& name) const {
    if (!value.is_number_unsigned())
      fail(str("tensor ", name, " has a size or offset that is not a non-negative integer"));
    return value.get<uint64_t>();
  }

  Entry parse_entry(const std::string& name, const Json& value) {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string() || !value["shape"].is_array() ||
        !value["data_offsets"].is_array() || value["data_offsets"].size() != 2) {
      fail(str("tensor ", name, " does not have exactly dtype, shape and data_offsets"));
    }
    Entry entry;
    entry.name = name;
    const auto dtype_text = value["dtype"].get<std::string>();
    const FormatDType* const dtype = find_dtype(dtype_text);
    if (dtype == nullptr) fail(str("tensor ", name, " has an unknown dtype ", dtype_text));
    if (dtype->dtype) {
      entry.dtype = *dtype->dtype;
    } else {
      left_out_.emplace(name, dtype->name);
    }
    entry.begin = unsigned_number(value["data_offsets"][0], name);
    entry.end = unsigned_number(value["data_offsets"][1], name);
    if (value["shape"].size() > kMaxDims) {
      fail(str("tensor ", name, " has ", value["shape"].size(), " dims, but at most ", kMaxDims,
               " are supported"));
    }
    uint64_t bits = dtype->bits;
    for (const Json& size_value : value["shape"]) {
      const uint64_t size = unsigned_number(size_value, name);
      if (__builtin_mul_overflow(bits, size, &bits) || size > (uint64_t{1} << 62)) {
        fail(str("tensor ", name, " has a shape whose size overflows"));
      }
      entry.shape.push_back(static_cast<int64_t>(size));
    }
    const uint64_t bytes = bits / 8;
    if (bits % 8 != 0 || entry.end < entry.begin || entry.end - entry.begin != bytes ||
        entry.end > data_bytes_) {
      fail(str("tensor ", name, " needs ", bytes, " bytes", bits % 8 == 0 ? "" : " and a part",
               ", but its data_offsets are [", entry.begin, ", ", entry.end, ") in ", data_bytes_,
               " bytes of data"));
    }
    return entry;
  }

  // Checks that the tensors fill the data without overlaps and gaps.
  void check_layout() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t next = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin != next)
        fail(str("tensor ", entry.name, " overlaps another one or leaves a gap"));
      next = entry.end;
    }
    if (next != data_bytes_) fail(str("the data ends at ", next, " of ", data_bytes_, " bytes"));
  }

  // Removes the entries of dtypes that flow does not have.
  void leave_out() {
    if (left_out_.empty()) return;
    std::erase_if(entries_, [&](const Entry& entry) { return left_out_.contains(entry.name); });
    std::vector<std::string> names;
    for (const auto& [name, dtype] : left_out_)
      names.push_back(str(name, " (", dtype, ')'));
    log_warning(str("[safetensors] ", path_, ": ", names.size(),
                    names.size() == 1 ? " tensor is" : " tensors are",
                    " left out, because flow does not have the dtype: ", list_of(names)));
  }

  const std::string& path_;
  InputFile& file_;
  uint64_t data_bytes_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::string_view> left_out_;  // dtypes by tensor
};

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const FormatDType& entry : kDTypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return {};
}

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  const FormatDType* const dtype = find_dtype(name);
  return dtype == nullptr ? std::nullopt : dtype->dtype;
}

namespace {
// The header as JSON text. Throws InvalidArgument for names that are not UTF-8.
std::string text_of(const Json& header) {
  try {
    return header.dump();
  } catch (const Json::exception& error) {
    throw InvalidArgument(str("[safetensors] a name or the metadata is not UTF-8 text (",
                              error.what(), "); nothing was written; use UTF-8 text"));
  }
}
}  // namespace

void write_safetensors(const std::string& path, const std::vector<SafetensorsData>& entries,
                       const Metadata& metadata) {
  const auto bytes_of = [](const SafetensorsData& entry) {
    return static_cast<size_t>(entry.shape.numel()) * dtype_size(entry.dtype);
  };
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsData& entry : entries) {
    if (entry.name == kMetadata) {
      throw InvalidArgument(str("[safetensors] the format reserves the name ", kMetadata,
                                "; give the tensor another name"));
    }
    header[entry.name] = {{"dtype", safetensors_name(entry.dtype)},
                          {"shape", std::vector<int64_t>(entry.shape.begin(), entry.shape.end())},
                          {"data_offsets", {offset, offset + bytes_of(entry)}}};
    offset += bytes_of(entry);
  }
  std::string text = text_of(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data is 8-byte aligned
  std::array<unsigned char, 8> length{};
  for (size_t i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(text.size() >> (8 * i));

  OutputFile file(path);
  file.write(length.data(), length.size());
  file.write(text.data(), text.size());
  for (const SafetensorsData& entry : entries)
    file.write(entry.data, bytes_of(entry));
  file.commit();
}

std::vector<SafetensorsEntry> read_safetensors_index(InputFile& file, const std::string& path,
                                                     Metadata* metadata) {
  return IndexReader(file, path).read(metadata);
}

std::vector<SafetensorsEntry> read_safetensors_index(const std::string& path, Metadata* metadata) {
  InputFile file(path);
  return read_safetensors_index(file, path, metadata);
}

}  // namespace flow::nn

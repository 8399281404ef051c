#include "nn/safetensors_index.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "nn/checked_json.h"

namespace flow::nn {

namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit

struct DTypeName {
  DType dtype;
  std::string_view name;
};

constexpr std::array kDTypes = {DTypeName{bool_, "BOOL"},  DTypeName{uint8, "U8"},
                                DTypeName{int8, "I8"},     DTypeName{int16, "I16"},
                                DTypeName{int32, "I32"},   DTypeName{int64, "I64"},
                                DTypeName{float16, "F16"}, DTypeName{bfloat16, "BF16"},
                                DTypeName{float32, "F32"}, DTypeName{float64, "F64"}};

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

  Entry parse_entry(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string() || !value["shape"].is_array() ||
        !value["data_offsets"].is_array() || value["data_offsets"].size() != 2) {
      fail(str("tensor ", name, " does not have exactly dtype, shape and data_offsets"));
    }
    Entry entry;
    entry.name = name;
    const auto dtype_text = value["dtype"].get<std::string>();
    const std::optional<DType> dtype = dtype_of_safetensors(dtype_text);
    if (!dtype) fail(str("tensor ", name, " has an unknown dtype ", dtype_text));
    entry.dtype = *dtype;
    entry.begin = unsigned_number(value["data_offsets"][0], name);
    entry.end = unsigned_number(value["data_offsets"][1], name);
    if (value["shape"].size() > kMaxDims) {
      fail(str("tensor ", name, " has ", value["shape"].size(), " dims, but at most ", kMaxDims,
               " are supported"));
    }
    uint64_t bytes = dtype_size(entry.dtype);
    for (const Json& size_value : value["shape"]) {
      const uint64_t size = unsigned_number(size_value, name);
      if (__builtin_mul_overflow(bytes, size, &bytes) || size > (uint64_t{1} << 62)) {
        fail(str("tensor ", name, " has a shape whose size overflows"));
      }
      entry.shape.push_back(static_cast<int64_t>(size));
    }
    if (entry.end < entry.begin || entry.end - entry.begin != bytes || entry.end > data_bytes_) {
      fail(str("tensor ", name, " needs ", bytes, " bytes, but its data_offsets are [", entry.begin,
               ", ", entry.end, ") in ", data_bytes_, " bytes of data"));
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

  const std::string& path_;
  InputFile& file_;
  uint64_t data_bytes_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const DTypeName& entry : kDTypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return {};
}

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const DTypeName& entry : kDTypes) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
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

#include "nn/data/idx.h"

#include <array>
#include <cstring>
#include <filesystem>

#include <zlib.h>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "nn/file.h"

namespace flow::data {

namespace {

constexpr uint32_t kImagesMagic = 0x0803;  // unsigned bytes, three dims
constexpr uint32_t kLabelsMagic = 0x0801;  // unsigned bytes, one dim
constexpr int64_t kMaxImages = 10'000'000;
constexpr int64_t kMaxSide = 1024;

// A file to read, gzip or plain: zlib returns the bytes of plain files unchanged.
class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path) {
    if (!std::filesystem::is_regular_file(path)) {
      throw IoError(str("[idx] file not found: ", path, "; check the path"));
    }
    file_ = gzopen(path.c_str(), "rb");
    if (file_ == nullptr)
      throw IoError(
          str("[idx] cannot open ", path, ": ", std::strerror(errno), "; check the permissions"));
  }

  ~IdxFile() { gzclose(file_); }

  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  [[noreturn]] void fail(const std::string& why) const {
    throw BadFile(
        str("[idx] ", path_, " is not a valid idx file: ", why, "; download or write it again"));
  }

  void read(uint8_t* target, size_t bytes, const char* what) {
    while (bytes > 0) {
      const auto part = static_cast<unsigned>(std::min<size_t>(bytes, 1U << 24));
      const int count = gzread(file_, target, part);
      if (count <= 0) {
        int code = 0;
        const char* reason = gzerror(file_, &code);
        fail(code < 0 ? str("it is damaged within the ", what, " (", reason, ")")
                      : str("it ends within the ", what));
      }
      target += count;
      bytes -= static_cast<size_t>(count);
    }
  }

  int64_t read_u32(const char* what) {
    std::array<uint8_t, 4> bytes{};
    read(bytes.data(), bytes.size(), what);
    return int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
  }

  void check_magic(uint32_t magic) {
    const int64_t found = read_u32("header");
    if (found != magic) fail(str("its magic number is ", found, ", not ", magic));
  }

  void check_end() {
    uint8_t extra = 0;
    if (gzread(file_, &extra, 1) > 0) fail("it has more bytes than its header says");
    int code = Z_OK;
    const char* reason = gzerror(file_, &code);
    if (code != Z_OK) fail(str("it is damaged at its end (", reason, ")"));
  }

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

void append_u32(std::vector<uint8_t>& bytes, int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<uint8_t>(value >> shift));
}

void write(const std::string& path, const std::vector<uint8_t>& header,
           const std::vector<uint8_t>& body) {
  nn::OutputFile file(path);
  file.write(header.data(), header.size());
  file.write(body.data(), body.size());
  file.commit();
}

}  // namespace

Digits read_idx(const std::string& images_path, const std::string& labels_path, Site site) {
  const SiteScope scope(site);
  Digits digits;
  IdxFile images(images_path);
  images.check_magic(kImagesMagic);
  digits.count = images.read_u32("header");
  digits.height = images.read_u32("header");
  digits.width = images.read_u32("header");
  if (digits.count > kMaxImages || digits.height > kMaxSide || digits.width > kMaxSide) {
    images.fail(
        str("its header says ", digits.count, " images of ", digits.height, " x ", digits.width));
  }
  IdxFile labels(labels_path);
  labels.check_magic(kLabelsMagic);
  if (const int64_t count = labels.read_u32("header"); count != digits.count) {
    labels.fail(
        str("it has ", count, " labels for the ", digits.count, " images of ", images_path));
  }
  // The buffer grows with the bytes that are read, so a header cannot claim memory that the file
  // does not fill.
  const auto image_bytes = static_cast<size_t>(digits.height * digits.width);
  for (int64_t i = 0; i < digits.count; ++i) {
    digits.pixels.resize(digits.pixels.size() + image_bytes);
    images.read(digits.pixels.data() + digits.pixels.size() - image_bytes, image_bytes, "images");
  }
  images.check_end();
  digits.labels.resize(static_cast<size_t>(digits.count));
  labels.read(digits.labels.data(), digits.labels.size(), "labels");
  labels.check_end();
  for (const uint8_t label : digits.labels) {
    if (label > 9) labels.fail(str("a label is ", int{label}, ", but digits are 0 to 9"));
  }
  return digits;
}

void write_idx(const Digits& digits, const std::string& images_path, const std::string& labels_path,
               Site site) {
  const SiteScope scope(site);
  std::vector<uint8_t> header;
  append_u32(header, kImagesMagic);
  append_u32(header, digits.count);
  append_u32(header, digits.height);
  append_u32(header, digits.width);
  write(images_path, header, digits.pixels);
  header.clear();
  append_u32(header, kLabelsMagic);
  append_u32(header, digits.count);
  write(labels_path, header, digits.labels);
}

}  // namespace flow::data

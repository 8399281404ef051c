// Implements the .ZIP File Format Specification (PKWARE, APPNOTE.TXT) 6.3.
#include "nn/zip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <zlib.h>

#include "core/error.h"

namespace flow::nn {

namespace {

constexpr uint32_t kMemberMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kMemberBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kSee64 = 0xffffffff;  // the number is in the 64-bit record
constexpr uint16_t kExtra64 = 1;         // the extra field that contains it
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kVersion64 = 45;   // readers need version 4.5 of the format
constexpr uint16_t kFirstDay = 0x21;  // 1 January 1980
constexpr uint64_t kMaxRatio = 1032;  // of deflate: 2 bits can stand for 258 bytes
constexpr uint64_t kMaxDirectoryBytes = 100'000'000;
constexpr size_t kBufferBytes = 1 << 16;

uint64_t number(const unsigned char* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;)
    value = value << 8 | at[i];
  return value;
}

void append(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t checksum_of(uint32_t start, const void* data, size_t bytes) {
  if (bytes == 0) return start;  // for a null pointer zlib would restart the checksum
  return static_cast<uint32_t>(crc32_z(start, static_cast<const Bytef*>(data), bytes));
}

// Compresses `parts` to a raw deflate stream.
std::string deflated(std::span<const std::span<const std::byte>> parts) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw OutOfMemory("[zip] out of memory for compression; save without compression");
  }
  const std::unique_ptr<z_stream, int (*)(z_streamp)> guard(&stream, deflateEnd);
  std::string packed;
  std::array<char, kBufferBytes> buffer{};
  const auto run = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);  // fails only if it is misused
      packed.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const auto step = part.first(std::min<size_t>(part.size(), size_t{1} << 30));
      // zlib's input pointer is not const, but zlib does not write to it.
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(step.data()));
      stream.avail_in = static_cast<uInt>(step.size());
      run(Z_NO_FLUSH);
      part = part.subspan(step.size());
    }
  }
  run(Z_FINISH);
  return packed;
}

}  // namespace

struct ZipReader::Inflater {
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
      throw OutOfMemory("[zip] out of memory for decompression; free memory");
    }
  }

  ~Inflater() { inflateEnd(&stream); }

  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  std::array<unsigned char, kBufferBytes> buffer{};
  bool is_finished = false;
};

ZipReader::ZipReader(const std::string& path) : path_(path), file_(path) {
  read_directory();
  for (ZipEntry& entry : entries_)
    find_data(entry);
  check_overlap();
}

ZipReader::~ZipReader() = default;

void ZipReader::fail(const std::string& why) const {
  throw BadFile(str("[zip] ", path_, " is not a valid zip archive: ", why,
                    "; write it again or restore a copy"));
}

void ZipReader::read_directory() {
  // The end record is last, apart from a comment of at most 65535 bytes.
  const auto tail_bytes =
      static_cast<size_t>(std::min<uint64_t>(file_.size(), kEndBytes + 65535 + kLocator64Bytes));
  std::vector<unsigned char> tail(tail_bytes);
  file_.read_at(file_.size() - tail_bytes, tail.data(), tail_bytes);
  size_t end = tail_bytes < kEndBytes ? 0 : tail_bytes - kEndBytes + 1;
  const auto is_end = [&](size_t at) {
    return number(&tail[at], 4) == kEndMagic &&
           number(&tail[at + 20], 2) == tail_bytes - at - kEndBytes;
  };
  while (end > 0 && !is_end(end - 1))
    --end;
  if (end-- == 0) fail("it has no end record");
  const unsigned char* record = &tail[end];
  uint64_t count = number(record + 10, 2), bytes = number(record + 12, 4);
  directory_ = number(record + 16, 4);
  uint64_t list_end = file_.size() - tail_bytes + end;
  if (end >= kLocator64Bytes && number(record - kLocator64Bytes, 4) == kLocator64Magic) {
    const uint64_t at = number(record - kLocator64Bytes + 8, 8);
    if (at > file_.size() || file_.size() - at < kEnd64Bytes)
      fail("the offset of its 64-bit end record is outside the file");
    std::array<unsigned char, kEnd64Bytes> end64{};
    file_.read_at(at, end64.data(), end64.size());
    if (number(end64.data(), 4) != kEnd64Magic) fail("its 64-bit end record is missing");
    count = number(&end64[32], 8);
    bytes = number(&end64[40], 8);
    directory_ = number(&end64[48], 8);
    list_end = at;
  }
  if (directory_ > list_end || bytes != list_end - directory_ || bytes > kMaxDirectoryBytes ||
      count > bytes / kEntryBytes) {
    fail(str("its list of ", count, " members, ", bytes, " bytes at ", directory_,
             ", does not end at ", list_end));
  }
  std::vector<unsigned char> list(static_cast<size_t>(bytes));
  file_.read_at(directory_, list.data(), list.size());
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (list.size() - at < kEntryBytes || number(&list[at], 4) != kEntryMagic) {
      fail(str("member ", i, " of its list is not a valid entry"));
    }
    const size_t name_bytes = number(&list[at + 28], 2), extra_bytes = number(&list[at + 30], 2);
    const size_t total = kEntryBytes + name_bytes + extra_bytes + number(&list[at + 32], 2);
    if (list.size() - at < total) fail(str("member ", i, " of its list is cut off"));
    const std::span<const unsigned char> rest(list.data() + at + kEntryBytes,
                                              name_bytes + extra_bytes);
    entries_.push_back(parse_entry(&list[at], rest.first(name_bytes), rest.subspan(name_bytes)));
    at += total;
  }
  if (at != list.size()) fail("its list is longer than its members");
}

ZipEntry ZipReader::parse_entry(const unsigned char* record, std::span<const unsigned char> name,
                                std::span<const unsigned char> extra) const {
  ZipEntry entry;
  entry.name.assign(name.begin(), name.end());
  if ((number(record + 8, 2) & 1) != 0) {
    throw Unsupported(
        str("[zip] ", path_, ": ", entry.name, " is encrypted; save it without encryption"));
  }
  const uint64_t method = number(record + 10, 2);
  if (method != kStored && method != kDeflated) {
    throw Unsupported(str("[zip] ", path_, ": ", entry.name,
                          " is compressed with the unsupported method ", method,
                          "; store or deflate it"));
  }
  entry.is_deflated = method == kDeflated;
  entry.checksum = static_cast<uint32_t>(number(record + 16, 4));
  entry.packed_bytes = number(record + 20, 4);
  entry.bytes = number(record + 24, 4);
  entry.offset = number(record + 42, 4);
  while (extra.size() >= 4) {
    const uint64_t id = number(extra.data(), 2);
    const size_t bytes = number(extra.data() + 2, 2);
    extra = extra.subspan(4);
    if (bytes > extra.size()) fail(str("an extra field of ", entry.name, " is cut off"));
    std::span<const unsigned char> field = extra.first(bytes);
    extra = extra.subspan(bytes);
    if (id != kExtra64) continue;
    for (uint64_t* value : {&entry.bytes, &entry.packed_bytes, &entry.offset}) {
      if (*value != kSee64) continue;
      if (field.size() < 8) fail(str("a 64-bit size of ", entry.name, " is missing"));
      *value = number(field.data(), 8);
      field = field.subspan(8);
    }
  }
  const uint64_t possible = entry.is_deflated
                                ? std::min(entry.packed_bytes, UINT64_MAX / kMaxRatio) * kMaxRatio
                                : entry.packed_bytes;
  if (entry.bytes > possible || (!entry.is_deflated && entry.bytes != entry.packed_bytes)) {
    fail(str(entry.name, " claims ", entry.bytes, " bytes, packed into ", entry.packed_bytes));
  }
  return entry;
}

// Finds the data behind the member's header, whose name and extra field may differ in length from
// those in the list.
void ZipReader::find_data(ZipEntry& entry) {
  std::array<unsigned char, kMemberBytes> header{};
  if (entry.offset > directory_ || directory_ - entry.offset < kMemberBytes) {
    fail(str("the header of ", entry.name, " is outside the file"));
  }
  file_.read_at(entry.offset, header.data(), header.size());
  if (number(header.data(), 4) != kMemberMagic) fail(str(entry.name, " has no header"));
  const uint64_t name_bytes = number(&header[26], 2);
  const uint64_t before = kMemberBytes + name_bytes + number(&header[28], 2);
  const uint64_t room = directory_ - entry.offset;
  if (before > room || entry.packed_bytes > room - before) {
    fail(str(entry.name, " does not end before the list of members"));
  }
  std::string name(static_cast<size_t>(name_bytes), '\0');
  file_.read(name.data(), name.size());
  if (name != entry.name) fail(str(entry.name, " has another name in its header"));
  entry.offset += before;
}

void ZipReader::check_overlap() const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries_)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    // Even an empty member is preceded by its header.
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->packed_bytes + kMemberBytes) {
      fail(str(order[i]->name, " overlaps ", order[i - 1]->name));
    }
  }
}

void ZipReader::open(const ZipEntry& entry) {
  open_ = &entry;
  left_ = entry.bytes;
  packed_left_ = entry.packed_bytes;
  checksum_ = 0;
  inflater_ = entry.is_deflated ? std::make_unique<Inflater>() : nullptr;
  file_.read_at(entry.offset, nullptr, 0);
}

void ZipReader::read(void* target, size_t bytes) {
  if (bytes > left_) fail(str(open_->name, " is ", bytes - left_, " bytes too short"));
  left_ -= bytes;
  if (inflater_ == nullptr) {
    file_.read(target, bytes);
    packed_left_ -= bytes;
  } else {
    z_stream& stream = inflater_->stream;
    auto* at = static_cast<Bytef*>(target);
    for (size_t wanted = bytes; wanted > 0;) {
      if (stream.avail_in == 0 && packed_left_ > 0) {
        const auto step = static_cast<size_t>(std::min<uint64_t>(packed_left_, kBufferBytes));
        file_.read(inflater_->buffer.data(), step);
        packed_left_ -= step;
        stream.next_in = inflater_->buffer.data();
        stream.avail_in = static_cast<uInt>(step);
      }
      const auto part = static_cast<uInt>(std::min<size_t>(wanted, size_t{1} << 30));
      stream.next_out = at;
      stream.avail_out = part;
      const int status = inflate(&stream, Z_NO_FLUSH);
      const size_t made = part - stream.avail_out;
      at += made;
      wanted -= made;
      inflater_->is_finished = status == Z_STREAM_END;
      if (status != Z_OK && !(inflater_->is_finished && wanted == 0)) {
        fail(str(open_->name, " cannot be unpacked",
                 stream.msg != nullptr ? str(" (", stream.msg, ")") : std::string()));
      }
    }
  }
  checksum_ = checksum_of(checksum_, target, bytes);
}

void ZipReader::close() {
  if (left_ != 0) fail(str(open_->name, " has ", left_, " bytes more than its array"));
  if (checksum_ != open_->checksum) fail(str("the checksum of ", open_->name, " is wrong"));
  inflater_.reset();
  open_ = nullptr;
}

void ZipWriter::write(const std::string& bytes) {
  file_.write(bytes.data(), bytes.size());
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts,
                    bool compressed) {
  if (name.size() > 65535) {
    throw InvalidArgument(
        str("[zip] a name is too long; received ", name.size(), " bytes; use at most 65535"));
  }
  ZipEntry entry{.name = name, .is_deflated = compressed, .offset = offset_};
  for (const auto& part : parts) {
    entry.bytes += part.size();
    entry.checksum = checksum_of(entry.checksum, part.data(), part.size());
  }
  const std::string packed = compressed ? deflated(parts) : std::string();
  entry.packed_bytes = compressed ? packed.size() : entry.bytes;

  std::string header;
  append(header, kMemberMagic, 4);
  append(header, kVersion64, 2);
  append(header, 1 << 11, 2);  // the name is UTF-8
  append(header, compressed ? kDeflated : kStored, 2);
  append(header, 0, 2);
  append(header, kFirstDay, 2);
  append(header, entry.checksum, 4);
  append(header, kSee64, 4);
  append(header, kSee64, 4);
  append(header, name.size(), 2);
  append(header, 20, 2);
  header += name;
  append(header, kExtra64, 2);
  append(header, 16, 2);
  append(header, entry.bytes, 8);
  append(header, entry.packed_bytes, 8);
  write(header);
  if (compressed) {
    write(packed);
  } else {
    for (const auto& part : parts)
      file_.write(part.data(), part.size());
    offset_ += entry.bytes;
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::commit() {
  const uint64_t directory = offset_;
  for (const ZipEntry& entry : entries_) {
    std::string record;
    append(record, kEntryMagic, 4);
    append(record, 3 << 8 | kVersion64, 2);  // made by a Unix
    append(record, kVersion64, 2);
    append(record, 1 << 11, 2);
    append(record, entry.is_deflated ? kDeflated : kStored, 2);
    append(record, 0, 2);
    append(record, kFirstDay, 2);
    append(record, entry.checksum, 4);
    append(record, kSee64, 4);
    append(record, kSee64, 4);
    append(record, entry.name.size(), 2);
    append(record, 28, 2);
    append(record, 0, 6);  // no comment, first disk, no text
    append(record, uint64_t{0100644} << 16, 4);
    append(record, kSee64, 4);
    record += entry.name;
    append(record, kExtra64, 2);
    append(record, 24, 2);
    append(record, entry.bytes, 8);
    append(record, entry.packed_bytes, 8);
    append(record, entry.offset, 8);
    write(record);
  }
  const uint64_t end64 = offset_;
  std::string end;
  // NumPy takes an archive without members only if it begins with the plain end record.
  if (entries_.size() >= 0xffff || end64 >= kSee64) {
    append(end, kEnd64Magic, 4);
    append(end, kEnd64Bytes - 12, 8);
    append(end, 3 << 8 | kVersion64, 2);
    append(end, kVersion64, 2);
    append(end, 0, 8);  // the first disk
    append(end, entries_.size(), 8);
    append(end, entries_.size(), 8);
    append(end, end64 - directory, 8);
    append(end, directory, 8);
    append(end, kLocator64Magic, 4);
    append(end, 0, 4);
    append(end, end64, 8);
    append(end, 1, 4);
  }
  append(end, kEndMagic, 4);
  append(end, 0, 4);
  append(end, std::min<uint64_t>(entries_.size(), 0xffff), 2);
  append(end, std::min<uint64_t>(entries_.size(), 0xffff), 2);
  append(end, std::min<uint64_t>(end64 - directory, kSee64), 4);
  append(end, std::min<uint64_t>(directory, kSee64), 4);
  append(end, 0, 2);
  write(end);
  file_.commit();
}

}  // namespace flow::nn

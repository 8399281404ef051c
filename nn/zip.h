// Zip archives that are read from front to back. Members are stored or deflated; sizes may have 64
// bits. Names are only names: nothing is unpacked to disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/file.h"

namespace flow::nn {

struct ZipEntry {
  std::string name;
  bool is_deflated = false;
  uint32_t checksum = 0;      // CRC-32 of the unpacked bytes
  uint64_t packed_bytes = 0;  // number of bytes in the archive
  uint64_t bytes = 0;         // unpacked
  uint64_t offset = 0;        // position of the packed bytes, from the start of the archive
};

// Reads an archive, which is not trusted: members must be inside the archive, must not overlap, and
// must not claim more bytes than deflate can produce from theirs. Throws IoError, naming the path
// and the reason; Unsupported for encrypted members and other methods of compression.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Opens a member; read() then returns its unpacked bytes from the start.
  void open(const ZipEntry& entry);
  void read(void* target, size_t bytes);
  // Throws IoError unless the member was read to its end and its checksum is right.
  void close();

 private:
  struct Inflater;

  [[noreturn]] void fail(const std::string& why) const;
  void read_directory();
  ZipEntry parse_entry(const unsigned char* record, std::span<const unsigned char> name,
                       std::span<const unsigned char> extra) const;
  void find_data(ZipEntry& entry);
  void check_overlap() const;

  std::string path_;
  InputFile file_;
  std::vector<ZipEntry> entries_;
  uint64_t directory_ = 0;  // start of the list of members
  const ZipEntry* open_ = nullptr;
  uint64_t left_ = 0;  // unpacked bytes of the open member that have not been read
  uint64_t packed_left_ = 0;
  uint32_t checksum_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

// Writes an archive to a temporary file, which commit() renames (see OutputFile). Times are fixed,
// so equal members give equal archives. The sizes of members are written with 64 bits.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(path) {}

  // Adds a member that consists of `parts`, one after another. Throws InvalidArgument for a name of
  // more than 65535 bytes.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts,
           bool compressed);
  void commit();

 private:
  void write(const std::string& bytes);

  OutputFile file_;
  uint64_t offset_ = 0;
  std::vector<ZipEntry> entries_;  // offset is that of the member's header
};

}  // namespace flow::nn

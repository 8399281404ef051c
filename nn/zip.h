// Zip archives of files that are read from front to back: stored or deflated members, with 64-bit
// sizes. Names are only names; nothing is unpacked to disk.
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
  uint64_t packed_bytes = 0;  // in the archive
  uint64_t bytes = 0;         // unpacked
  uint64_t offset = 0;        // of the packed bytes, from the start of the archive
};

// The archive is not trusted: members lie inside it, do not overlap, and claim no more bytes than
// deflate can make of theirs. IoError names path and reason.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Goes to the start of a member; read() then takes its unpacked bytes.
  void open(const ZipEntry& entry);
  void read(void* target, size_t bytes);
  // Throws unless the member was read to its end and its checksum is right.
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
  uint64_t directory_ = 0;  // where the list of members starts
  const ZipEntry* open_ = nullptr;
  uint64_t left_ = 0;  // of the open member, unpacked
  uint64_t packed_left_ = 0;
  uint32_t checksum_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

// Written beside its target and renamed at commit(), as OutputFile. Times are fixed, so that equal
// members give equal archives; sizes are written with 64 bits throughout, one way for all.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(path) {}

  // A member of the bytes of `parts`, one after the other.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts,
           bool compressed);
  void commit();

 private:
  void write(const std::string& bytes);

  OutputFile file_;
  uint64_t offset_ = 0;
  std::vector<ZipEntry> entries_;  // with the offset of the member's header
};

}  // namespace flow::nn

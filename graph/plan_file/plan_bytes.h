// The bytes of a saved plan: numbers and texts as bytes and back, and the checksum. A reader trusts
// nothing in its input.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace flow::graph {

class ByteWriter {
 public:
  // Seven bits a byte, the lowest first. Small numbers of either sign take one byte.
  void integer(int64_t value) {
    uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; rest >= 128; rest >>= 7)
      bytes_.push_back(static_cast<char>(rest | 128));
    bytes_.push_back(static_cast<char>(rest));
  }

  void real(double value) { fixed(std::bit_cast<uint64_t>(value)); }

  void fixed(uint64_t value) {
    for (int i = 0; i < 8; ++i)
      bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }

  void text(std::string_view value) {
    integer(static_cast<int64_t>(value.size()));
    bytes_ += value;
  }

  // Appends the bytes of another writer.
  void raw(std::string_view bytes) { bytes_ += bytes; }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every member throws BadFile if the bytes end or a number is out of range.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string_view name) : rest_(bytes), name_(name) {}

  int64_t integer();
  // Reads a number in [least, most].
  int64_t integer(int64_t least, int64_t most);

  // Reads the number of elements that follow, each of which takes at least one byte.
  size_t count() { return static_cast<size_t>(integer(0, static_cast<int64_t>(rest_.size()))); }

  // Reads an index into a table with this many entries, or -1 if `or_none`.
  int64_t index(size_t entries, bool or_none = false) {
    return integer(or_none ? -1 : 0, static_cast<int64_t>(entries) - 1);
  }

  bool flag() { return integer(0, 1) == 1; }

  double real() { return std::bit_cast<double>(fixed()); }

  uint64_t fixed();
  std::string_view text();

  bool at_end() const { return rest_.empty(); }

  std::string_view rest() const { return rest_; }

  [[noreturn]] void fail(std::string_view why) const;

 private:
  std::string_view take(size_t bytes);

  std::string_view rest_;
  std::string_view name_;
};

namespace internal {
inline constexpr std::string_view kPlanMagic = "flowplan";
inline constexpr int64_t kPlanVersion = 9;
// Between the magic word and the content is the checksum of the content.
uint64_t plan_checksum(std::string_view content);
}  // namespace internal

}  // namespace flow::graph

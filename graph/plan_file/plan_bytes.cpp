#include "graph/plan_file/plan_bytes.h"

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"

namespace flow::graph {

void ByteReader::fail(std::string_view why) const {
  throw BadFile(str("[plan] ", name_, ": ", why, "; compile the step again"));
}

std::string_view ByteReader::take(size_t bytes) {
  if (bytes > rest_.size()) fail("the file ends before its content does");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

int64_t ByteReader::integer() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  fail("a number has more bytes than 64 bits need");
}

int64_t ByteReader::integer(int64_t least, int64_t most) {
  const int64_t value = integer();
  if (value < least || value > most) {
    fail(str("a number is out of range; received ", value, ", expected ", least, " to ", most));
  }
  return value;
}

uint64_t ByteReader::fixed() {
  const std::string_view bytes = take(8);
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

std::string_view ByteReader::text() {
  return take(count());
}

uint64_t internal::plan_checksum(std::string_view content) {
  Hasher hasher(content.size());
  while (!content.empty()) {
    uint64_t word = 0;
    for (size_t i = 0; i < std::min(sizeof(word), content.size()); ++i)
      word |= static_cast<uint64_t>(static_cast<uint8_t>(content[i])) << (8 * i);
    hasher.add(word);
    content.remove_prefix(std::min(sizeof(word), content.size()));
  }
  return hasher.value();
}

}  // namespace flow::graph

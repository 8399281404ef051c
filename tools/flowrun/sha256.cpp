#include "tools/flowrun/sha256.h"

#include <algorithm>
#include <bit>

namespace flowrun {

namespace {

// The fractional parts of the cube roots of the first 64 primes, and of the square roots of the
// first 8 (FIPS 180-4, 4.2.2 and 5.3.3).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr std::array<uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr size_t kBlock = 64;

uint32_t read_word(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// FIPS 180-4, 6.2.2.
void add_block(std::array<uint32_t, 8>& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = read_word(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i)
    state[i] += sum[i];
}

}  // namespace

Sha256Digest sha256(std::string_view text) {
  std::array<uint32_t, 8> state = kStart;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const size_t whole = text.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock)
    add_block(state, bytes + at);
  // The rest, a one bit, and the length in bits at the end of the last block.
  std::array<unsigned char, 2 * kBlock> tail{};
  const size_t rest = text.size() - whole;
  std::copy_n(bytes + whole, rest, tail.begin());
  tail[rest] = 0x80;
  const size_t end = rest < kBlock - 8 ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i)
    tail[end - 1 - i] = static_cast<unsigned char>(uint64_t{text.size()} * 8 >> 8 * i);
  for (size_t at = 0; at < end; at += kBlock)
    add_block(state, tail.data() + at);
  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<char>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view text) {
  std::string block(kBlock, '\0');
  if (key.size() > kBlock) {
    const Sha256Digest short_key = sha256(key);
    std::copy(short_key.begin(), short_key.end(), block.begin());
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  const auto padded = [&](unsigned char pad) {
    std::string result = block;
    for (char& c : result)
      c = static_cast<char>(static_cast<unsigned char>(c) ^ pad);
    return result;
  };
  const Sha256Digest inner = sha256(padded(0x36).append(text));
  return sha256(padded(0x5c).append(inner.begin(), inner.end()));
}

bool is_same_digest(const Sha256Digest& digest, std::string_view received) {
  if (received.size() != digest.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < digest.size(); ++i)
    difference |= static_cast<unsigned char>(digest[i] ^ received[i]);
  return difference == 0;
}

}  // namespace flowrun

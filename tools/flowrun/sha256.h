// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), with which the nodes of a job prove to each other that
// they know its secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace flowrun {

using Sha256Digest = std::array<char, 32>;

Sha256Digest sha256(std::string_view text);
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);

// The time of the comparison does not depend on where the two differ.
bool is_same_digest(const Sha256Digest& digest, std::string_view received);

}  // namespace flowrun

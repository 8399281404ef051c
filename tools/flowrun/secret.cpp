#include "tools/flowrun/secret.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/flowrun/job_error.h"

namespace flowrun {

namespace {

constexpr const char* kVariable = "FLOW_JOB_SECRET";
constexpr size_t kShortest = 16;
constexpr size_t kLongest = 4096;

std::string read_private_file(const std::string& name) {
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  struct stat status {};

  if (file < 0 || fstat(file, &status) != 0) {
    throw JobError(kUsage, "cannot read --secret-file " + name + ": " + std::strerror(errno));
  }
  std::string text(kLongest, '\0');
  const ssize_t count = read(file, text.data(), text.size());
  close(file);
  if (!S_ISREG(status.st_mode) || count < 0) {
    throw JobError(kUsage, "--secret-file " + name + " is not a regular file that can be read");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw JobError(kUsage, "--secret-file " + name +
                               " can be accessed by other users; run: chmod 600 " + name);
  }
  text.resize(static_cast<size_t>(count));
  return text;
}

}  // namespace

void hide_secret() {
  unsetenv(kVariable);
}

std::string read_secret(const std::string& file) {
  std::string secret;
  if (file == "-") {
    std::getline(std::cin, secret);
  } else if (!file.empty()) {
    secret = read_private_file(file);
  } else if (const char* text = std::getenv(kVariable)) {
    secret = text;
  }
  hide_secret();
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r'))
    secret.pop_back();
  const bool is_given = !file.empty() || !secret.empty();
  if (is_given && secret.size() < kShortest) {
    throw JobError(kUsage, "the secret has " + std::to_string(secret.size()) +
                               " characters; it needs at least " + std::to_string(kShortest) +
                               "; make one with: openssl rand -hex 32");
  }
  return secret;
}

std::string make_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw JobError(kUsage, "the system returned no random numbers");
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace flowrun

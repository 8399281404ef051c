#include "process_mail.h"

#include <cstdio>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace cuda_emulator {

ProcessMail::ProcessMail(const std::string& communicator)
    : prefix_("/dev/shm/cuda-emulator-nccl-" + communicator + '-') {}

ProcessMail::~ProcessMail() {
  for (const std::string& path : put_)
    std::remove(path.c_str());
}

bool ProcessMail::put(const std::string& name, const Bytes& data) {
  std::erase_if(put_, [](const std::string& path) { return access(path.c_str(), F_OK) != 0; });
  const std::string unfinished = path(name) + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary);
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  file.close();
  if (file.fail() || std::rename(unfinished.c_str(), path(name).c_str()) != 0) {
    std::remove(unfinished.c_str());
    return false;
  }
  put_.push_back(path(name));
  return true;
}

std::optional<ProcessMail::Bytes> ProcessMail::take(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  if (!file) return {};
  const std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
  std::remove(path(name).c_str());
  const auto* const begin = reinterpret_cast<const std::byte*>(data.data());
  return Bytes(begin, begin + data.size());
}

bool ProcessMail::is_there(const std::string& name) const {
  return access(path(name).c_str(), F_OK) == 0;
}

std::string ProcessMail::path(const std::string& name) const {
  return prefix_ + name;
}

}  // namespace cuda_emulator

#include "boxing/ranks/own_descriptors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace flow::boxing {

namespace {

constexpr const char* kFolder = "/proc/self/fd";

bool is_event_queue(int descriptor) {
  std::array<char, 64> target{};
  const std::string name = std::string(kFolder) + '/' + std::to_string(descriptor);
  const ssize_t length = readlink(name.c_str(), target.data(), target.size());
  if (length <= 0) return false;
  return std::string_view(target.data(), static_cast<size_t>(length)) == "anon_inode:[eventpoll]";
}

}  // namespace

std::vector<int> OwnDescriptors::list_event_queues() {
  std::vector<int> queues;
  std::error_code error;  // without /proc nothing is watched
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    const std::string name = entry.path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (is_event_queue(descriptor)) queues.push_back(descriptor);
  }
  return queues;
}

OwnDescriptors::OwnDescriptors(const std::vector<int>& earlier)
    : descriptors_(list_event_queues()) {
  std::erase_if(descriptors_, [&](int descriptor) {
    return std::find(earlier.begin(), earlier.end(), descriptor) != earlier.end();
  });
}

std::optional<int> OwnDescriptors::find_closed() const {
  const auto closed = std::find_if_not(descriptors_.begin(), descriptors_.end(), is_event_queue);
  if (closed == descriptors_.end()) return std::nullopt;
  return *closed;
}

}  // namespace flow::boxing

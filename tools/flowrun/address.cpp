#include "tools/flowrun/address.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/flowrun/job_error.h"

namespace flowrun {

namespace {

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

sockaddr_in address_of(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ask(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

// The format of addresses in /proc/net/tcp.
std::string table_text(const sockaddr_in& address) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "%08X:%04X", address.sin_addr.s_addr,
                ntohs(address.sin_port));
  return text.data();
}

}  // namespace

sockaddr_in resolve(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (status != 0 || found == nullptr) {
    throw JobError(kUsage,
                   "cannot find an IPv4 address of '" + host + "': " + gai_strerror(status));
  }
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

bool is_loopback(const sockaddr_in& address) {
  return ntohl(address.sin_addr.s_addr) >> 24 == 127;
}

int listen_at(sockaddr_in& address) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  constexpr int kQueue = 64;
  if (bind(file, generic(address), sizeof(address)) != 0 || listen(file, kQueue) != 0) {
    const std::string why = std::strerror(errno);
    close(file);
    throw JobError(
        kUsage,
        "cannot listen at " + text_of(address) + ':' + std::to_string(ntohs(address.sin_port)) +
            ": " + why +
            "; --master-addr must be an address of this host, and --master-port must be free");
  }
  address = own_address(file);
  return file;
}

std::optional<int> connect_to(const sockaddr_in& address, std::chrono::milliseconds limit) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connect(file, generic(address), sizeof(address)) == 0) return file;
  if (errno == EINPROGRESS) {
    pollfd event{file, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof(error);
    if (poll(&event, 1, static_cast<int>(limit.count())) > 0 &&
        getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
      return file;
    }
  }
  close(file);
  return std::nullopt;
}

sockaddr_in own_address(int socket) {
  return address_of(socket, getsockname);
}

sockaddr_in address_towards(const sockaddr_in& other) {
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in target = other;
  target.sin_port = htons(9);  // any port, because nothing is sent
  const bool has_route = connect(file, generic(target), sizeof(target)) == 0;
  sockaddr_in own = own_address(file);
  close(file);
  if (!has_route) throw JobError(kUsage, "this host has no route to " + text_of(other));
  own.sin_port = 0;
  return own;
}

std::string network_of(const sockaddr_in& address) {
  ifaddrs* all = nullptr;
  std::string network = text_of(address) + "/32";
  if (getifaddrs(&all) != 0) return network;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    sockaddr_in mask{};
    std::memcpy(&own, one->ifa_addr, sizeof(own));
    if (one->ifa_netmask != nullptr) std::memcpy(&mask, one->ifa_netmask, sizeof(mask));
    const bool is_whole_loopback = is_loopback(address) && is_loopback(own);
    if (own.sin_addr.s_addr != address.sin_addr.s_addr && !is_whole_loopback) continue;
    own.sin_addr.s_addr &= mask.sin_addr.s_addr;
    network = text_of(own) + '/' + std::to_string(std::popcount(mask.sin_addr.s_addr));
    break;
  }
  freeifaddrs(all);
  return network;
}

bool is_peer_of_same_user(int socket) {
  const std::string local = table_text(address_of(socket, getpeername));
  const std::string remote = table_text(own_address(socket));
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    // Columns: sl local remote state queues timer retransmissions user ...
    std::istringstream words(line);
    std::string word, its_local, its_remote;
    long user = -1;
    words >> word >> its_local >> its_remote >> word >> word >> word >> word >> user;
    if (its_local == local && its_remote == remote) return user == static_cast<long>(geteuid());
  }
  return false;
}

}  // namespace flowrun

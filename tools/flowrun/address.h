// Names and addresses of the nodes of a job (IPv4, as Open MPI uses it here).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <netinet/in.h>

namespace flowrun {

// Of this host.
std::string host_name();
// Of a name or a number; throws JobError where there is none.
sockaddr_in resolve(const std::string& host, int port);
// "10.0.0.1".
std::string text_of(const sockaddr_in& address);
bool is_loopback(const sockaddr_in& address);

// A socket that listens there; its port where `address` names none. Throws JobError.
int listen_at(sockaddr_in& address);
// Nothing where nobody answers within `limit`.
std::optional<int> connect_to(const sockaddr_in& address, std::chrono::milliseconds limit);
// This side's address of a connection.
sockaddr_in own_address(int socket);
// This host's address towards another one.
sockaddr_in address_towards(const sockaddr_in& other);

// The network of one of this host's addresses, "10.0.0.0/24".
std::string network_of(const sockaddr_in& address);
// Whether the other end of a connection within this host belongs to this process' user.
bool is_peer_of_same_user(int socket);

}  // namespace flowrun

// Names and addresses of the nodes of a job. They are IPv4, because flowrun limits Open MPI to it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <netinet/in.h>

namespace flowrun {

// The name of this host.
std::string host_name();
// The address of a host name or a numeric address. Throws JobError if there is none.
sockaddr_in resolve(const std::string& host, int port);
// The address as text, such as "10.0.0.1".
std::string text_of(const sockaddr_in& address);
bool is_loopback(const sockaddr_in& address);

// Returns a socket that listens at `address`. If the port is 0, sets it to the port that the system
// chose. Throws JobError.
int listen_at(sockaddr_in& address);
// Returns nullopt if nobody answers within `limit`.
std::optional<int> connect_to(const sockaddr_in& address, std::chrono::milliseconds limit);
// This side's address of a connection.
sockaddr_in own_address(int socket);
// The address of this host on the route to `other`. Throws JobError if there is no route.
sockaddr_in address_towards(const sockaddr_in& other);

// The network of one of this host's addresses, such as "10.0.0.0/24".
std::string network_of(const sockaddr_in& address);
// True if the other end of a connection within this host belongs to the user of this process.
bool is_peer_of_same_user(int socket);

}  // namespace flowrun

// The other nodes of a job, seen from the head node (number 0, which runs mpirun). Each node is a
// flowrun that waits for commands and sends the files of its ranks to the head.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include "tools/flowrun/link.h"
#include "tools/flowrun/messages.h"
#include "tools/flowrun/options.h"

namespace flowrun {

// Confined to one thread.
class Nodes {
 public:
  // Listens at the job's address. Throws JobError if that fails, or if there is no secret and the
  // address is not a loopback address.
  Nodes(const Options& options, const std::string& secret);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  // The port to which the other nodes connect.
  int port() const { return port_; }

  // Waits until all nodes have joined. Throws a JobError that names the missing nodes after
  // Options::join_limit_s. If one of the processes `starters` ends, a node could not be started.
  void join(const std::vector<pid_t>& starters);
  // Starts the flowrun of a node, and returns the process that does so.
  using StartNode = std::function<pid_t(size_t number)>;
  // After an attempt: waits until the nodes that it lost have joined again. Calls `start` for them
  // once a second; if `start` is empty, the user starts them by hand. Returns the reason why a node
  // is missing, or an empty string.
  std::string rejoin(const StartNode& start);

  // Arguments for mpirun, such as "localhost:2,flow-node-1:2" and "10.0.0.0/24".
  std::string hosts() const;
  std::string networks() const;
  int64_t num_ranks() const;
  // [{"node": 0, "host": "a", "ranks": [0, 1]}, …]
  nlohmann::json describe() const;

  // Begins the next attempt at the job.
  void begin(const std::string& session);
  // Receives what has arrived, forwards commands to start daemons, and records lost nodes.
  void step();
  // Sends a signal to the ranks of all nodes.
  void send_signal(int number);

  // From now on the end of a node is not a failure, because flowrun is ending the job.
  void expect_end() { is_ending_ = true; }

  // Makes all nodes end the rest of the attempt and send their files.
  void finish();
  void tell_verdict(int exit_code, const std::string& summary);

 private:
  struct Node {
    std::unique_ptr<Link> link;
    std::string address;
    std::string host;
    std::string new_host;  // set if another node has the same name
    std::string network;
    int64_t num_ranks = 0;
    bool has_joined = false;
    bool is_finished = false;
    bool is_reported = false;  // as a lost node
  };

  struct Visitor {
    std::unique_ptr<Link> link;
    std::string address;
  };

  void open_door();
  void close_door();
  // Waits until all nodes have joined, and returns an empty string. Returns the reason if the join
  // limit passed or `check` returned one.
  std::string wait_for_nodes(const std::function<std::string()>& check);
  void accept_connections();
  void step_visitors();
  void admit(std::unique_ptr<Link> link, const std::string& address, const std::string& text);
  std::string reason_to_refuse(const Hello& hello) const;
  void welcome_all();
  std::string missing() const;
  void handle(size_t number, const Frame& frame);
  void take_file(const std::string& content) const;
  bool has_ended_well(size_t number) const;
  void report_lost(size_t number, const std::string& reason);

  const Options& options_;
  std::string secret_;
  sockaddr_in address_{};
  int listener_ = -1;
  int port_ = 0;
  int num_refused_ = 0;
  std::vector<Visitor> visitors_;  // connections that have not identified themselves yet
  std::vector<Node> nodes_;        // the first entry is the head
  std::string session_;
  std::set<long> launched_;
  bool is_ending_ = false;
  bool is_finishing_ = false;
};

}  // namespace flowrun

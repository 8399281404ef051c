// The other nodes of a job, as the head node (number 0, the one with mpirun) sees them. Each is a
// flowrun that waits for orders; what its ranks write down comes here.
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
#include "tools/flowrun/options.h"

namespace flowrun {

// Confined to one thread.
class Nodes {
 public:
  // Listens at the job's address. Throws JobError, also where there is no secret and the
  // address is not within this host.
  Nodes(const Options& options, const std::string& secret);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  // Where the others are to connect.
  int port() const { return port_; }

  // Until all nodes have come. Throws JobError naming those that are missing after
  // Options::join_limit_s. `starters`: processes whose end means that a node will not come.
  void join(const std::vector<pid_t>& starters);
  // Starts the flowrun of a node; the process that does.
  using StartNode = std::function<pid_t(size_t number)>;
  // After an attempt: waits until the nodes that it lost have come again. `start` is called for
  // them, once a second; without it they are started by hand. Empty, or why a node is missing.
  std::string rejoin(const StartNode& start);

  // What mpirun is told: "localhost:2,flow-node-1:2", "10.0.0.0/24".
  std::string hosts() const;
  std::string networks() const;
  int64_t num_ranks() const;
  // [{"node": 0, "host": "a", "ranks": [0, 1]}, …]
  nlohmann::json describe() const;

  // The next attempt at the job begins.
  void begin(const std::string& session);
  // Takes in what has come, passes on orders to start daemons, notes lost nodes.
  void step();
  // The ranks of all nodes are to get this signal.
  void send_signal(int number);

  // From now on nodes end because flowrun wants them to.
  void expect_end() { is_ending_ = true; }

  // All nodes end what is left of the attempt and hand in their files.
  void finish();
  void tell_verdict(int exit_code, const std::string& summary);

 private:
  struct Node {
    std::unique_ptr<Link> link;
    std::string address;
    std::string host;
    std::string new_host;  // where another node has the same name
    std::string network;
    int64_t num_ranks = 0;
    bool has_joined = false;
    bool is_finished = false;
    bool is_reported = false;  // as lost
  };

  struct Visitor {
    std::unique_ptr<Link> link;
    std::string address;
  };

  void open_door();
  void close_door();
  // Until all nodes are there: empty. Else why not: the join limit, or what `check` says.
  std::string wait_for_nodes(const std::function<std::string()>& check);
  void accept_connections();
  void step_visitors();
  void admit(std::unique_ptr<Link> link, const std::string& address, const std::string& hello);
  std::string reason_to_refuse(const nlohmann::json& hello) const;
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
  std::vector<Visitor> visitors_;  // not known yet
  std::vector<Node> nodes_;        // the head is the first
  std::string session_;
  std::set<long> launched_;
  bool is_ending_ = false;
  bool is_finishing_ = false;
};

}  // namespace flowrun

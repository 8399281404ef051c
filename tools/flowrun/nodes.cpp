#include "tools/flowrun/nodes.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/address.h"
#include "tools/flowrun/daemon.h"
#include "tools/flowrun/job_error.h"
#include "tools/flowrun/launch.h"
#include "tools/flowrun/node_files.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr size_t kMostVisitors = 64;

// Between attempts, signals stay pending until they are read here.
bool has_been_asked_to_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, number);
  const timespec now{};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

}  // namespace

Nodes::Nodes(const Options& options, const std::string& secret)
    : options_(options), secret_(secret), nodes_(static_cast<size_t>(options.num_nodes)) {
  address_ = resolve(options.master_address, options.master_port);
  if (secret_.empty() && !is_loopback(address_)) {
    throw JobError(
        kUsage,
        "nodes at " + text_of(address_) +
            " need a secret, because anyone who can connect there can run programs: give all nodes "
            "the same FLOW_JOB_SECRET or --secret-file FILE; make one with: openssl rand -hex 32");
  }
  open_door();
  port_ = ntohs(address_.sin_port);
  nodes_[0].address = text_of(address_);
  nodes_[0].host = host_name();
  nodes_[0].network = network_of(address_);
  nodes_[0].num_ranks = options.ranks;
  nodes_[0].has_joined = true;
}

Nodes::~Nodes() {
  close_door();
}

void Nodes::open_door() {
  listener_ = listen_at(address_);
}

void Nodes::close_door() {
  if (listener_ >= 0) close(listener_);
  listener_ = -1;
  visitors_.clear();
}

std::string Nodes::missing() const {
  std::string text;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    if (!nodes_[number].has_joined) text += (text.empty() ? "" : ", ") + std::to_string(number);
  }
  return (text.find(',') == std::string::npos ? "node " : "nodes ") + text;
}

void Nodes::join(const std::vector<pid_t>& starters) {
  const std::string failure = wait_for_nodes([&] {
    for (const pid_t starter : starters) {
      if (starter > 0 && waitpid(starter, nullptr, WNOHANG) == starter)
        return "a node could not be started; missing: " + missing();
    }
    return std::string();
  });
  if (!failure.empty()) {
    tell_verdict(kStoppedOrTimeout, failure);
    throw JobError(kStoppedOrTimeout, failure);
  }
  close_door();
  welcome_all();
}

std::string Nodes::rejoin(const StartNode& start) {
  bool is_one_missing = false;
  for (size_t number = 1; number < nodes_.size(); ++number) {
    Node& node = nodes_[number];
    // A node that has lost only its daemon still answers, and stays joined.
    const bool is_here = node.is_finished && node.link->state() == Link::State::kOpen;
    node.is_reported = false;
    if (!is_here) node = {};
    is_one_missing |= !is_here;
  }
  if (!is_one_missing) return {};
  open_door();
  std::vector<pid_t> starters(nodes_.size(), -1);
  Clock::time_point next_start{};
  std::string failure = wait_for_nodes([&]() -> std::string {
    if (has_been_asked_to_end()) return "flowrun was asked to end";
    if (!start || Clock::now() < next_start) return {};
    for (size_t number = 1; number < nodes_.size(); ++number) {
      pid_t& starter = starters[number];
      if (nodes_[number].has_joined || (starter > 0 && waitpid(starter, nullptr, WNOHANG) == 0))
        continue;
      starter = start(number);
      next_start = Clock::now() + std::chrono::seconds(1);
    }
    return {};
  });
  close_door();
  if (failure.empty()) welcome_all();
  return failure;
}

std::string Nodes::wait_for_nodes(const std::function<std::string()>& check) {
  constexpr milliseconds kQuiet(5000);
  const auto start = Clock::now();
  bool has_warned = false;
  for (;;) {
    const bool are_all_here =
        std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.has_joined; });
    if (are_all_here) return {};
    pollfd event{listener_, POLLIN, 0};
    poll(&event, 1, 20);
    accept_connections();
    step_visitors();
    for (Node& node : nodes_) {
      if (!node.link) continue;
      node.link->step();
      if (node.link->state() == Link::State::kLost) node = {};  // it may join again
    }
    const auto now = Clock::now();
    if (!has_warned && now > start + kQuiet) {
      has_warned = true;
      std::cerr << "flowrun: waiting for " << missing() << " at " << nodes_[0].address << ':'
                << port_ << '\n';
    }
    if (std::string failure = check(); !failure.empty()) return failure;
    if (now > start + std::chrono::seconds(options_.join_limit_s)) {
      return missing() + " did not connect to " + nodes_[0].address + ':' + std::to_string(port_) +
             " within " + std::to_string(options_.join_limit_s) +
             " s; start flowrun there with the same --master-addr and --master-port, or increase "
             "--join-timeout";
    }
  }
}

void Nodes::accept_connections() {
  for (;;) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    const int file = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return;
    const bool is_stranger = secret_.empty() && !is_peer_of_same_user(file);
    if (is_stranger || visitors_.size() >= kMostVisitors) {
      close(file);
    } else {
      visitors_.push_back(
          {std::make_unique<Link>(file, Link::Side::kHead, secret_), text_of(address)});
    }
  }
}

void Nodes::step_visitors() {
  constexpr int kMostComplaints = 20;
  for (auto& [link, address] : visitors_) {
    link->step();
    if (const auto frame = link->take()) {
      admit(std::move(link), address, frame->kind == Frame::Kind::kHello ? frame->content : "");
    } else if (link->state() == Link::State::kLost) {
      if (++num_refused_ <= kMostComplaints) {
        std::cerr << "flowrun: refused a connection from " << address << ": " << link->reason()
                  << '\n';
      }
      link.reset();
    }
  }
  std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.link == nullptr; });
}

// Returns an empty string if the node may take part.
std::string Nodes::reason_to_refuse(const Hello& hello) const {
  const int64_t number = hello.node;
  const auto num_nodes = static_cast<int64_t>(nodes_.size());
  if (hello.num_nodes != num_nodes) {
    return "node 0 was started with --nnodes " + std::to_string(num_nodes);
  }
  if (number < 1 || number >= num_nodes)
    return "its --node-rank must be at least 1 and less than --nnodes";
  if (nodes_[static_cast<size_t>(number)].has_joined) {
    return "node " + std::to_string(number) + " has already joined, from " +
           nodes_[static_cast<size_t>(number)].address;
  }
  if (hello.num_ranks < 1 || hello.num_ranks > kMostRanks)
    return "its number of ranks must be 1 to " + std::to_string(kMostRanks);
  if (hello.command != options_.command) {
    return "node 0 was started with another program or other arguments";
  }
  if (hello.flowrun != own_path()) {
    return "flowrun is " + own_path() + " on node 0; install it at the same path on all nodes";
  }
  for (const Node& node : nodes_) {
    if (node.has_joined && node.host == hello.host && !hello.may_rename) {
      return "the node at " + node.address + " has the same host name, " + node.host +
             "; give each host a different name";
    }
  }
  return {};
}

void Nodes::admit(std::unique_ptr<Link> link, const std::string& address, const std::string& text) {
  const std::optional<Hello> hello = parse_hello(text);
  const std::string refusal =
      hello ? reason_to_refuse(*hello) : "its first message does not identify it as a node";
  if (!refusal.empty()) {
    std::cerr << "flowrun: refused a node at " << address << ": " << refusal << '\n';
    link->send(Frame::Kind::kRefused, refusal);
    return link->flush(milliseconds(500));
  }
  const auto number = static_cast<size_t>(hello->node);
  const std::string& host = hello->host;
  const bool is_taken = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.has_joined && node.host == host;
  });
  nodes_[number] = {.link = std::move(link),
                    .address = address,
                    .host = host,
                    .new_host = is_taken ? host + "-node" + std::to_string(number) : "",
                    .network = hello->network,
                    .num_ranks = hello->num_ranks,
                    .has_joined = true};
}

void Nodes::welcome_all() {
  for (Node& node : nodes_) {
    if (node.link) node.link->send(Frame::Kind::kWelcome, node.new_host);
  }
}

std::string Nodes::hosts() const {
  std::string text = "localhost:" + std::to_string(nodes_[0].num_ranks);
  for (size_t number = 1; number < nodes_.size(); ++number) {
    text +=
        ',' + node_name(static_cast<long>(number)) + ':' + std::to_string(nodes_[number].num_ranks);
  }
  return text;
}

std::string Nodes::networks() const {
  std::set<std::string> networks;
  for (const Node& node : nodes_)
    networks.insert(node.network);
  std::string text;
  for (const std::string& network : networks)
    text += (text.empty() ? "" : ",") + network;
  return text;
}

int64_t Nodes::num_ranks() const {
  int64_t sum = 0;
  for (const Node& node : nodes_)
    sum += node.num_ranks;
  return sum;
}

Json Nodes::describe() const {
  Json all = Json::array();
  int64_t rank = 0;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    const Node& node = nodes_[number];
    Json ranks = Json::array();
    for (int64_t i = 0; i < node.num_ranks; ++i)
      ranks.push_back(rank++);
    all.push_back(
        {{"node", number}, {"host", node.host}, {"address", node.address}, {"ranks", ranks}});
  }
  return all;
}

void Nodes::begin(const std::string& session) {
  session_ = session;
  launched_.clear();
  is_ending_ = false;
  is_finishing_ = false;
  for (Node& node : nodes_)
    node.is_finished = false;
}

void Nodes::step() {
  for (const auto& [number, words] : read_records(session_, "launch")) {
    if (!launched_.insert(number).second) continue;
    const auto index = static_cast<size_t>(number);
    if (number >= 1 && index < nodes_.size()) {
      nodes_[index].link->send(Frame::Kind::kLaunch, words);
    }
  }
  for (size_t number = 1; number < nodes_.size(); ++number) {
    Link& link = *nodes_[number].link;
    link.step();
    while (const auto frame = link.take())
      handle(number, *frame);
    if (link.state() == Link::State::kLost) report_lost(number, link.reason());
  }
}

void Nodes::handle(size_t number, const Frame& frame) {
  Node& node = nodes_[number];
  switch (frame.kind) {
    case Frame::Kind::kFile:
      return take_file(frame.content);
    case Frame::Kind::kDaemonEnd: {
      const int status = static_cast<int>(std::strtol(frame.content.c_str(), nullptr, 10));
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kRankLost;
      write_record(session_, "daemon", static_cast<long>(number), std::to_string(code));
      // A daemon also ends with the job, and with any exit code if mpirun is lost.
      if (is_ending_ || has_failure(session_) || has_ended_well(number)) return;
      if (is_finishing_ && WIFEXITED(status)) return;
      return report_lost(number,
                         WIFSIGNALED(status)
                             ? "its daemon was ended by signal " + std::to_string(WTERMSIG(status))
                             : "its daemon ended with exit code " + std::to_string(code));
    }
    case Frame::Kind::kFinished:
      node.is_finished = true;
      return;
    case Frame::Kind::kHeartbeat:
    case Frame::Kind::kHello:
    case Frame::Kind::kRefused:
    case Frame::Kind::kWelcome:
    case Frame::Kind::kLaunch:
    case Frame::Kind::kSignal:
    case Frame::Kind::kFinish:
    case Frame::Kind::kVerdict:
      return;
  }
}

void Nodes::take_file(const std::string& content) const {
  const size_t end = content.find('\0');
  if (end == std::string::npos || !is_file_of_ranks(content.substr(0, end))) return;
  const std::filesystem::path path = std::filesystem::path(session_) / content.substr(0, end);
  const std::string scratch = path.string() + ".new";
  std::ofstream(scratch, std::ios::binary) << content.substr(end + 1);
  std::error_code error;  // if this fails, the report lacks the file
  std::filesystem::rename(scratch, path, error);
}

// True if the keepers have recorded the end of every rank of the node.
bool Nodes::has_ended_well(size_t number) const {
  int64_t first = 0;
  for (size_t i = 0; i < number; ++i)
    first += nodes_[i].num_ranks;
  const auto over = read_records(session_, "exit");
  return std::count_if(over.begin(), over.end(), [&](const auto& record) {
           return record.first >= first && record.first < first + nodes_[number].num_ranks;
         }) == nodes_[number].num_ranks;
}

void Nodes::report_lost(size_t number, const std::string& reason) {
  Node& node = nodes_[number];
  if (node.is_reported || session_.empty()) return;
  node.is_reported = true;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  write_record(session_, "node", static_cast<long>(number),
               Json{{"cause", "node_lost"},
                    {"node", number},
                    {"message", "node " + std::to_string(number) + " (" + node.host + ", " +
                                    node.address + ") is lost: " + reason},
                    {"exit_code", kRankLost},
                    {"time", std::chrono::duration<double>(now).count()}}
                   .dump());
  // Nothing must wait for this daemon any longer.
  write_record(session_, "daemon", static_cast<long>(number), std::to_string(kRankLost));
}

void Nodes::send_signal(int number) {
  for (Node& node : nodes_) {
    if (node.link) node.link->send(Frame::Kind::kSignal, std::to_string(number));
  }
}

void Nodes::finish() {
  constexpr milliseconds kLimit(3000);
  is_finishing_ = true;
  for (Node& node : nodes_) {
    if (node.link) node.link->send(Frame::Kind::kFinish);
  }
  const auto until = Clock::now() + kLimit;
  const auto is_over = [](const Node& node) {
    return !node.link || node.is_finished || node.link->state() == Link::State::kLost;
  };
  while (!std::all_of(nodes_.begin(), nodes_.end(), is_over) && Clock::now() < until) {
    step();
    usleep(2000);
  }
  step();
  for (size_t number = 1; number < nodes_.size(); ++number) {
    if (!is_over(nodes_[number])) report_lost(number, "it does not answer");
  }
}

void Nodes::tell_verdict(int exit_code, const std::string& summary) {
  const std::string text = to_text(Ending{.exit_code = exit_code, .summary = summary});
  for (Node& node : nodes_) {
    if (!node.link) continue;
    node.link->send(Frame::Kind::kVerdict, text);
    node.link->flush(milliseconds(500));
  }
}

}  // namespace flowrun

#include "tools/flowrun/node.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/address.h"
#include "tools/flowrun/daemon.h"
#include "tools/flowrun/job_error.h"
#include "tools/flowrun/launch.h"
#include "tools/flowrun/link.h"
#include "tools/flowrun/messages.h"
#include "tools/flowrun/node_files.h"
#include "tools/flowrun/process.h"
#include "tools/flowrun/report.h"
#include "tools/flowrun/session.h"
#include "tools/flowrun/signals.h"

namespace flowrun {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;

// The state of one attempt at the job on this node.
struct Attempt {
  Session session;
  FileSender files{session.path()};
  pid_t daemon = -1;
};

class Node {
 public:
  Node(const Options& options, std::string secret)
      : options_(options),
        secret_(std::move(secret)),
        head_(resolve(options.master_address, options.master_port)) {
    if (secret_.empty() && !is_loopback(head_)) {
      throw JobError(kUsage,
                     "the node at " + text_of(head_) +
                         " is on another host, which needs a secret: give all nodes the same "
                         "FLOW_JOB_SECRET or --secret-file FILE; make one with: openssl rand "
                         "-hex 32");
    }
  }

  int run() {
    int64_t restarts_left = options_.max_restarts;
    remove_report(report_file());
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // gets what keepers leave behind that are killed
    connect();
    say_hello();
    signals_ = receive_signals(forwarded_signals());
    while (!exit_code_) {
      std::array<pollfd, 2> events = {pollfd{link_->socket(), POLLIN, 0},
                                      pollfd{signals_, POLLIN, 0}};
      poll(events.data(), events.size(), 20);
      link_->step();
      take_frames();
      take_signals();
      if (attempt_) watch();
      if (exit_code_ || link_->state() != Link::State::kLost) continue;
      if (restarts_left-- > 0) {
        join_again();
      } else {
        lose_head();
      }
    }
    end_attempt();
    return *exit_code_;
  }

 private:
  std::string head_text() const {
    return text_of(head_) + ':' + std::to_string(options_.master_port);
  }

  // Retries, because the head may start later than this node.
  void connect() {
    constexpr milliseconds kPause(200), kQuiet(5000), kAnswer(2000);
    const auto start = Clock::now();
    bool has_warned = false;
    for (;;) {
      if (signals_ >= 0) take_signals();
      if (exit_code_) return;
      if (const auto file = connect_to(head_, kAnswer)) {
        if (secret_.empty() && !is_peer_of_same_user(*file)) {
          close(*file);
          throw JobError(
              kUsage,
              "a process of another user listens at " + head_text() +
                  "; choose another --master_port, or give all nodes the same FLOW_JOB_SECRET");
        }
        link_ = std::make_unique<Link>(*file, Link::Side::kNode, secret_);
        while (link_->state() == Link::State::kGreeting) {
          link_->step();
          usleep(1000);
        }
        if (link_->state() == Link::State::kOpen) return;
        // A head that is ending closes the connection. Any other reason would not go away.
        if (link_->reason() != "it closed the connection") {
          throw JobError(kUsage,
                         "the node at " + head_text() + " cannot be joined: " + link_->reason());
        }
      }
      const auto now = Clock::now();
      if (now > start + std::chrono::seconds(options_.join_limit_s)) {
        throw JobError(kStoppedOrTimeout, "node 0 did not answer at " + head_text() + " within " +
                                              std::to_string(options_.join_limit_s) +
                                              " s; start flowrun with --node-rank 0 there");
      }
      if (!has_warned && now > start + kQuiet) {
        has_warned = true;
        std::cerr << "flowrun: waiting for node 0 at " << head_text() << '\n';
      }
      usleep(static_cast<useconds_t>(std::chrono::microseconds(kPause).count()));
    }
  }

  // Connects again. Node 0 starts its next attempt when all nodes are back.
  void join_again() {
    std::cerr << "flowrun: node 0 (" << text_of(head_) << ") is lost: " << link_->reason()
              << "; waiting for it\n";
    end_attempt();
    connect();
    if (!exit_code_) say_hello();
  }

  void say_hello() {
    link_->send(Frame::Kind::kHello,
                to_text(Hello{.node = options_.node_rank,
                              .num_nodes = options_.num_nodes,
                              .num_ranks = options_.ranks,
                              .command = options_.command,
                              .flowrun = own_path(),
                              .host = host_name(),
                              .network = network_of(own_address(link_->socket())),
                              .may_rename = may_rename_host()}));
  }

  void take_frames() {
    while (const auto frame = link_->take()) {
      switch (frame->kind) {
        case Frame::Kind::kRefused:
          std::cerr << "flowrun: node 0 refuses this node: " << frame->content << '\n';
          exit_code_ = kUsage;
          return;
        case Frame::Kind::kWelcome:
          host_name_ = frame->content;
          break;
        case Frame::Kind::kLaunch:
          launch(frame->content);
          break;
        case Frame::Kind::kSignal:
          if (attempt_) pass_on(static_cast<int>(std::strtol(frame->content.c_str(), nullptr, 10)));
          break;
        case Frame::Kind::kFinish:
          end_attempt();
          link_->send(Frame::Kind::kFinished);
          break;
        case Frame::Kind::kVerdict:
          conclude(frame->content);
          return;
        case Frame::Kind::kHeartbeat:
        case Frame::Kind::kHello:
        case Frame::Kind::kFile:
        case Frame::Kind::kDaemonEnd:
        case Frame::Kind::kFinished:
          break;
      }
    }
  }

  void launch(const std::string& text) {
    if (attempt_) return;
    try {
      attempt_ = std::make_unique<Attempt>();
      const std::string& session = attempt_->session.path();
      std::ofstream(session + "/directory") << std::filesystem::current_path().string();
      const auto words = Json::parse(text).get<std::vector<std::string>>();
      attempt_->daemon = start_process(check_daemon_words(words, session),
                                       {.environment = environment_of(options_, session),
                                        .signal_of_parent = SIGKILL,
                                        .host_name = host_name_});
    } catch (const std::exception& error) {
      std::cerr << "flowrun: " << error.what() << '\n';
      attempt_.reset();
      link_->send(Frame::Kind::kDaemonEnd, std::to_string(kUsage << 8));
    }
  }

  void watch() {
    int status = 0;
    const bool is_over =
        attempt_->daemon > 0 && waitpid(attempt_->daemon, &status, WNOHANG) == attempt_->daemon;
    attempt_->files.send(*link_, false);
    if (!is_over) return;
    attempt_->daemon = -1;
    link_->send(Frame::Kind::kDaemonEnd, std::to_string(status));
  }

  void pass_on(int number) const {
    for (const int allowed : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      if (number == allowed) signal_ranks(attempt_->session.path(), number);
    }
  }

  void take_signals() {
    signalfd_siginfo event;
    while (read(signals_, &event, sizeof(event)) == sizeof(event)) {
      const auto number = static_cast<int>(event.ssi_signo);
      const bool asks_to_end = number == SIGINT || number == SIGTERM;
      const bool is_idle = !attempt_;
      if ((asks_to_end && was_asked_) || (is_idle && (asks_to_end || number == SIGHUP))) {
        std::cerr << "flowrun: ended by signal " << number << '\n';
        exit_code_ = kRankLost;
      }
      was_asked_ |= asks_to_end;
      if (attempt_) pass_on(number);
    }
  }

  // Ends all processes of the attempt. A daemon whose mpirun has ended ends by itself.
  void end_attempt() {
    if (!attempt_) return;
    const std::string& session = attempt_->session.path();
    const bool is_asked_by_head = link_->state() == Link::State::kOpen && !exit_code_;
    constexpr int kPatience = 100;
    std::optional<int> status;
    for (int i = 0; is_asked_by_head && attempt_->daemon > 0 && i < kPatience; ++i) {
      if (i > 0) usleep(5000);
      int ending = 0;
      if (waitpid(attempt_->daemon, &ending, WNOHANG) != attempt_->daemon) continue;
      attempt_->daemon = -1;
      status = ending;
    }
    for (int i = 0; i < 200 && signal_ranks(session, SIGKILL) > 0; ++i)
      usleep(5000);
    if (attempt_->daemon > 0) {
      kill(-attempt_->daemon, SIGKILL);
      waitpid(attempt_->daemon, nullptr, 0);
    }
    kill_children({});
    attempt_->files.send(*link_, true);
    if (status) link_->send(Frame::Kind::kDaemonEnd, std::to_string(*status));
    attempt_.reset();
  }

  void conclude(const std::string& text) {
    const std::optional<Ending> ending = parse_ending(text);
    exit_code_ = ending ? ending->exit_code : kRankLost;
    if (ending && *exit_code_ != 0) {
      std::cerr << "flowrun: " << ending->summary << "\nflowrun: exit code " << *exit_code_
                << "; node 0 has the report\n";
    }
  }

  // The name of this node's report, which differs between nodes that share a folder.
  std::string report_file() const {
    std::filesystem::path path = options_.report;
    const std::string extension = path.extension().string();
    return path.replace_extension(".node" + std::to_string(options_.node_rank) + extension)
        .string();
  }

  void lose_head() {
    const std::string message = "node 0 (" + text_of(head_) + ") is lost: " + link_->reason();
    exit_code_ = kRankLost;
    const Json report = {
        {"cause", "node_lost"}, {"node", 0}, {"message", message}, {"exit_code", *exit_code_}};
    const std::string failure = write_report(report_file(), report.dump(2) + '\n');
    std::cerr << "flowrun: " << message << "\nflowrun: exit code " << *exit_code_ << "; "
              << report_note(report_file(), failure) << '\n';
  }

  const Options& options_;
  std::string secret_;
  sockaddr_in head_;
  std::unique_ptr<Link> link_;
  int signals_ = -1;
  bool was_asked_ = false;
  std::string host_name_;
  std::unique_ptr<Attempt> attempt_;
  std::optional<int> exit_code_;
};

}  // namespace

int run_node(const Options& options, const std::string& secret) {
  return Node(options, secret).run();
}

}  // namespace flowrun

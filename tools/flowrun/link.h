// The connection between two nodes of a job. Both sides prove that they know the secret of the job
// before anything else is read; every frame after that is signed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "tools/flowrun/sha256.h"

namespace flowrun {

struct Frame {
  enum class Kind : uint8_t {
    kHeartbeat,
    kHello,      // node to head: who it is, what it was started with
    kRefused,    // head to node: why it cannot take part
    kWelcome,    // head to node
    kLaunch,     // head to node: the words of a daemon's command line
    kFile,       // node to head: name, zero byte, content
    kDaemonEnd,  // node to head: wait status of the daemon
    kSignal,     // head to node: for its ranks
    kFinish,     // head to node: the launcher has ended
    kFinished,   // node to head: everything has ended, all files were sent
    kVerdict,    // head to node: how the job ended
  };

  Kind kind = Kind::kHeartbeat;
  std::string content;
};

// What one side says at the start: each side challenges the other with a number that is used
// once, so that nothing recorded can be played back.
//
//   head: word, number a
//   node: word, number b, HMAC(secret, "node" a b)
//   head: HMAC(secret, "head" a b)
//
// Frames are: length of the content, kind, content, HMAC(HMAC(secret, "frames" a b), side, count of
// frames so far, length, kind, content). Nothing is encrypted. Confined to one thread.
class Link {
 public:
  enum class Side : char { kHead = 'h', kNode = 'n' };
  enum class State { kGreeting, kOpen, kLost };

  static constexpr std::chrono::milliseconds kGreetingLimit{5000};
  static constexpr std::chrono::milliseconds kHeartbeat{500};
  // A host that is busy delays a heartbeat by less.
  static constexpr std::chrono::milliseconds kSilence{5000};
  static constexpr size_t kLongestContent = size_t{1} << 20;

  // Owns the connected socket.
  Link(int socket, Side side, std::string secret);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Takes in what has come, hands on what waits, keeps up heartbeats. Never waits.
  void step();

  State state() const { return state_; }

  // Why it was lost, as "it ...".
  const std::string& reason() const { return reason_; }

  int socket() const { return socket_; }

  // Nothing happens on a lost link.
  void send(Frame::Kind kind, std::string_view content = {});
  // What has come, heartbeats aside; also after the loss.
  std::optional<Frame> take();
  // Hands on what waits, for at most `limit`.
  void flush(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  void lose(std::string reason);
  void read_all();
  void write_some();
  void take_greeting();
  void take_frames();
  Sha256Digest sign(Side side, uint64_t number, std::string_view head_and_content) const;

  int socket_;
  Side side_;
  std::string secret_;
  State state_ = State::kGreeting;
  std::string reason_;
  std::string own_number_;
  std::string other_number_;
  std::string key_;  // of frames
  std::string incoming_;
  std::string outgoing_;
  uint64_t num_sent_ = 0;
  uint64_t num_received_ = 0;
  Clock::time_point heard_at_;
  Clock::time_point said_at_;
  std::deque<Frame> frames_;
};

}  // namespace flowrun

// The connection between two nodes of a job. Both sides first prove that they know the secret of
// the job. Every later frame is signed.
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
    kHello,      // node to head: its number, host and command line
    kRefused,    // head to node: the reason why the node cannot take part
    kWelcome,    // head to node: the host name that the node must use, or nothing
    kLaunch,     // head to node: the words of a daemon's command line
    kFile,       // node to head: name, zero byte, content
    kDaemonEnd,  // node to head: wait status of the daemon
    kSignal,     // head to node: a signal for its ranks
    kFinish,     // head to node: the launcher has ended
    kFinished,   // node to head: its ranks have ended, and all files were sent
    kVerdict,    // head to node: how the job ended
  };

  Kind kind = Kind::kHeartbeat;
  std::string content;
};

// One end of a connection. At the start each side challenges the other with a random number that is
// used only once, so that a recorded connection cannot be replayed:
//
//   head: word, number a
//   node: word, number b, HMAC(secret, "node" a b)
//   head: HMAC(secret, "head" a b)
//
// A frame consists of the length of the content, the kind, the content, and HMAC(HMAC(secret,
// "frames" a b), side, number of earlier frames, length, kind, content). Nothing is encrypted.
// Confined to one thread.
class Link {
 public:
  enum class Side : char { kHead = 'h', kNode = 'n' };
  enum class State { kGreeting, kOpen, kLost };

  static constexpr std::chrono::milliseconds kGreetingLimit{5000};
  static constexpr std::chrono::milliseconds kHeartbeat{500};
  // A busy host delays a heartbeat by less than this.
  static constexpr std::chrono::milliseconds kSilence{30'000};
  static constexpr size_t kLongestContent = size_t{1} << 20;

  // Takes ownership of the connected socket.
  Link(int socket, Side side, std::string secret);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Receives what has arrived, sends what is queued, and sends heartbeats. Never blocks.
  void step();

  State state() const { return state_; }

  // Why the link was lost. The text begins with "it" or "the connection".
  const std::string& reason() const { return reason_; }

  int socket() const { return socket_; }

  // Does nothing if the link is lost.
  void send(Frame::Kind kind, std::string_view content = {});
  // The next frame that has arrived, except heartbeats. Also works after the link was lost.
  std::optional<Frame> take();
  // Sends what is queued, for at most `limit`.
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
  std::string key_;  // signs frames
  std::string incoming_;
  std::string outgoing_;
  uint64_t num_sent_ = 0;
  uint64_t num_received_ = 0;
  Clock::time_point heard_at_;
  Clock::time_point said_at_;
  std::deque<Frame> frames_;
};

}  // namespace flowrun

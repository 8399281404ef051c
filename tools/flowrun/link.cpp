#include "tools/flowrun/link.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace flowrun {

namespace {

constexpr std::string_view kWord = "flowrun1";
constexpr size_t kNumberBytes = 32;
constexpr size_t kDigestBytes = std::tuple_size_v<Sha256Digest>;
constexpr size_t kHeadBytes = 5;  // length, kind
constexpr size_t kLongestQueue = size_t{64} << 20;

std::string text_of(const Sha256Digest& digest) {
  return {digest.begin(), digest.end()};
}

std::string number_used_once() {
  std::string number(kNumberBytes, '\0');
  if (getrandom(number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    throw std::runtime_error("the system returned no random numbers");
  }
  return number;
}

template <class T>
std::string bytes_of(T number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(number >> 8 * i);
  return bytes;
}

}  // namespace

Link::Link(int socket, Side side, std::string secret)
    : socket_(socket),
      side_(side),
      secret_(std::move(secret)),
      own_number_(number_used_once()),
      heard_at_(Clock::now()),
      said_at_(heard_at_) {
  fcntl(socket_, F_SETFL, O_NONBLOCK);
  fcntl(socket_, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (side_ == Side::kHead) outgoing_ = std::string(kWord) + own_number_;
}

Link::~Link() {
  if (socket_ >= 0) close(socket_);
}

void Link::lose(std::string reason) {
  if (state_ == State::kLost) return;
  state_ = State::kLost;
  reason_ = std::move(reason);
  close(socket_);
  socket_ = -1;
}

Sha256Digest Link::sign(Side side, uint64_t number, std::string_view head_and_content) const {
  std::string text(1, static_cast<char>(side));
  text += bytes_of(number);
  return hmac_sha256(key_, text.append(head_and_content));
}

void Link::send(Frame::Kind kind, std::string_view content) {
  if (state_ != State::kOpen) return;
  if (content.size() > kLongestContent) content = {};  // no file of a job is this long
  std::string frame = bytes_of(static_cast<uint32_t>(content.size()));
  frame += static_cast<char>(kind);
  frame += content;
  frame += text_of(sign(side_, num_sent_++, frame));
  outgoing_ += frame;
  said_at_ = Clock::now();
  write_some();
}

std::optional<Frame> Link::take() {
  if (frames_.empty()) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

void Link::step() {
  if (state_ == State::kLost) return;
  read_all();
  if (state_ == State::kLost) return;
  const auto now = Clock::now();
  if (state_ == State::kOpen && now > said_at_ + kHeartbeat) send(Frame::Kind::kHeartbeat);
  write_some();
  if (state_ == State::kGreeting && now > heard_at_ + kGreetingLimit) {
    return lose("it does not use flowrun's protocol");
  }
  if (state_ == State::kOpen && now > heard_at_ + kSilence) {
    lose("it sent nothing for " + std::to_string(kSilence.count() / 1000) + " s");
  }
}

void Link::read_all() {
  std::array<char, 65536> buffer;
  while (state_ != State::kLost) {
    const ssize_t count = recv(socket_, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      if (state_ == State::kGreeting && side_ == Side::kNode && !key_.empty()) {
        return lose("it does not accept the secret of this node");
      }
      return lose(count == 0 ? "it closed the connection"
                             : std::string("the connection failed: ") + std::strerror(errno));
    }
    if (state_ == State::kOpen) heard_at_ = Clock::now();
    incoming_.append(buffer.data(), static_cast<size_t>(count));
    if (state_ == State::kGreeting) take_greeting();
    if (state_ == State::kOpen) take_frames();
  }
}

void Link::write_some() {
  while (state_ != State::kLost && !outgoing_.empty()) {
    const ssize_t count = ::send(socket_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count < 0) {
      // The last words of the other side explain more than the failure to write.
      const std::string failure = std::string("the connection failed: ") + std::strerror(errno);
      read_all();
      return lose(failure);
    }
    outgoing_.erase(0, static_cast<size_t>(count));
  }
  if (outgoing_.size() > kLongestQueue) lose("it does not read the data that was sent to it");
}

void Link::flush(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  for (write_some(); state_ != State::kLost && !outgoing_.empty(); write_some()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd file{socket_, POLLOUT, 0};
    if (left.count() <= 0 || poll(&file, 1, static_cast<int>(left.count())) <= 0) return;
  }
}

void Link::take_greeting() {
  const auto cut = [&](size_t count) {
    std::string text = incoming_.substr(0, count);
    incoming_.erase(0, count);
    return text;
  };
  const auto numbers = [&] {
    return side_ == Side::kHead ? own_number_ + other_number_ : other_number_ + own_number_;
  };
  if (!incoming_.starts_with(kWord.substr(0, incoming_.size())) && other_number_.empty()) {
    return lose("it does not use flowrun's protocol");
  }
  if (side_ == Side::kHead) {
    if (incoming_.size() < kWord.size() + kNumberBytes + kDigestBytes) return;
    cut(kWord.size());
    other_number_ = cut(kNumberBytes);
    if (!is_same_digest(hmac_sha256(secret_, "node" + numbers()), cut(kDigestBytes))) {
      return lose("it does not know the secret of the job");
    }
    outgoing_ += text_of(hmac_sha256(secret_, "head" + numbers()));
  } else if (other_number_.empty()) {
    if (incoming_.size() < kWord.size() + kNumberBytes) return;
    cut(kWord.size());
    other_number_ = cut(kNumberBytes);
    outgoing_ +=
        std::string(kWord) + own_number_ + text_of(hmac_sha256(secret_, "node" + numbers()));
    key_ = text_of(hmac_sha256(secret_, "frames" + numbers()));
    write_some();
    return take_greeting();
  } else {
    if (incoming_.size() < kDigestBytes) return;
    if (!is_same_digest(hmac_sha256(secret_, "head" + numbers()), cut(kDigestBytes))) {
      return lose("it does not know the secret of the job");
    }
  }
  key_ = text_of(hmac_sha256(secret_, "frames" + numbers()));
  heard_at_ = Clock::now();
  state_ = State::kOpen;
}

void Link::take_frames() {
  const Side other = side_ == Side::kHead ? Side::kNode : Side::kHead;
  size_t at = 0;
  while (incoming_.size() - at >= kHeadBytes) {
    const std::string_view rest = std::string_view(incoming_).substr(at);
    size_t length = 0;
    for (size_t i = 4; i-- > 0;)
      length = length << 8 | static_cast<unsigned char>(rest[i]);
    if (length > kLongestContent) return lose("it sent a frame that is too long");
    if (rest.size() < kHeadBytes + length + kDigestBytes) break;
    const std::string_view frame = rest.substr(0, kHeadBytes + length);
    if (!is_same_digest(sign(other, num_received_++, frame),
                        rest.substr(frame.size(), kDigestBytes))) {
      return lose("it sent a frame with a wrong signature");
    }
    const auto kind = static_cast<Frame::Kind>(frame[4]);
    if (kind != Frame::Kind::kHeartbeat) {
      frames_.push_back({kind, std::string(frame.substr(kHeadBytes))});
    }
    at += frame.size() + kDigestBytes;
  }
  incoming_.erase(0, at);
}

}  // namespace flowrun

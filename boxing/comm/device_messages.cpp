#include "boxing/comm/device_messages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include "boxing/comm/failure.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/log.h"

namespace flow::boxing {

namespace {

// What a clearance asks for.
constexpr int64_t kThroughHost = 0;
constexpr int64_t kByNccl = 1;
constexpr int64_t kByIpc = 2;

// The body of such a clearance.
struct IpcClearance {
  IpcTarget target;
  int64_t num_taken;  // how many ends of earlier messages the receiver has taken
};

// The body of the answer.
struct IpcSent {
  bool is_queued;  // false: CUDA does not open the handles
  IpcHandle done;
};

template <class T>
std::span<const std::byte> bytes_of(const T& body) {
  return std::as_bytes(std::span(&body, 1));
}

template <class T>
T body_of(const ControlMessage& message) {
  T body;
  std::memcpy(&body, message.body().data(), sizeof(body));
  return body;
}

}  // namespace

DeviceMessages::DeviceMessages(ProcessWorld& world, RankContext* context, uint64_t group,
                               std::vector<int64_t> ranks)
    : world_(world),
      context_(context),
      group_(group),
      ranks_(std::move(ranks)),
      peers_(ranks_.size()) {}

// The connections end before the memory that they read, and at both ends in the same order, because
// NCCL may wait for the other end.
DeviceMessages::~DeviceMessages() {
  const int64_t own = world_.identity().rank;
  for (size_t member = 0; member < peers_.size(); ++member) {
    Peer& other = peers_[member];
    if (own < ranks_[member]) {
      other.out.reset();
      other.in.reset();
    } else {
      other.in.reset();
      other.out.reset();
    }
  }
}

IpcMessages& DeviceMessages::ipc() {
  if (ipc_ == nullptr) ipc_ = make_ipc_messages(*context_);
  return *ipc_;
}

void DeviceMessages::fail(const std::string& reason) {
  const int64_t own = world_.identity().rank;
  world_.fail_locked(
      {.rank = own, .message = str("[communicator] a message of rank ", own, ": ", reason)});
}

template <class Work>
bool DeviceMessages::guarded(const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    fail(error.what());
    return false;
  }
}

void DeviceMessages::tell(int64_t member, ControlHead::Kind kind, int64_t number, int64_t bytes,
                          std::span<const std::byte> body) {
  const ControlHead head{
      .kind = kind, .group = group_, .step = static_cast<uint64_t>(number), .bytes = bytes};
  world_.post(rank_of(member), head, body);
}

// ---------------------------------------------------------------- sends

std::shared_ptr<DeviceSend> DeviceMessages::prepare(const void* source, int64_t bytes) {
  auto send = std::make_shared<DeviceSend>();
  send->bytes = bytes;
  bool is_buffered = false;
  if (bytes <= Communicator::kBufferedBytes) {
    const auto lock = world_.lock();
    std::erase_if(landing_, [](const auto& one) { return is_reached(*one.second); });
    while (!leaving_.empty() && is_reached(*leaving_.front().second)) {
      buffered_bytes_ -= leaving_.front().first->bytes();
      leaving_.pop_front();
    }
    is_buffered = buffered_bytes_ + bytes <= Communicator::kMostBufferedBytes;
    if (is_buffered) buffered_bytes_ += bytes;
  }
  auto* data = static_cast<std::byte*>(const_cast<void*>(source));
  if (is_buffered) {
    const auto size = static_cast<size_t>(bytes);
    send->buffer = allocate_storage(*context_, DeviceType::kCuda, size);
    copy_bytes(*context_, send->buffer->data(), DeviceType::kCuda, data, DeviceType::kCuda, size);
    data = send->buffer->data();
  }
  send->data = {data, queued_work(*context_)};
  return send;
}

DeviceOffer DeviceMessages::announce(int64_t member, const Outgoing& send) {
  Peer& other = peer(member);
  send->number = ++other.num_announced;
  send->bulk_tag = world_.next_bulk_tag();
  other.announced.emplace(send->number, send);
  world_.keep_advancing(group_);
  return {nccl_offer(*context_), ipc_offer(*context_)};
}

void DeviceMessages::forget(int64_t member, const DeviceSend& send) {
  if (send.downloaded != nullptr) landing_.emplace_back(send.host, send.downloaded);
  Peer& other = peer(member);
  if (other.announced.erase(send.number) == 0) return;
  const bool is_queued = other.is_sending && other.cleared.front().get() == &send;
  if (is_queued) return fail("it was dropped while it was sent");
  std::erase_if(other.cleared, [&](const Outgoing& one) { return one.get() == &send; });
}

void DeviceMessages::begin_through_host(DeviceSend& send) {
  send.host = allocate_staging(*context_, static_cast<size_t>(send.bytes));
  send.downloaded = begin_download(*context_, send.host->data(), send.data, send.bytes);
}

bool DeviceMessages::advance_through_host(int64_t member, DeviceSend& send) {
  if (send.downloaded == nullptr || !is_reached(*send.downloaded)) return false;
  send.downloaded.reset();
  send.bulk = world_.send(rank_of(member), send.bulk_tag, send.host->data(), send.bytes);
  return true;
}

void DeviceMessages::send_by_ipc(int64_t member, DeviceSend& send, const ControlMessage& clear) {
  Peer& other = peer(member);
  const auto [target, num_taken] = body_of<IpcClearance>(clear);
  for (; other.num_reused < num_taken; ++other.num_reused) {
    ipc().reuse(other.copied.front());
    other.copied.pop_front();
  }
  const std::optional<IpcCopy> copy = ipc().copy(send.data, send.bytes, target);
  IpcSent answer{copy.has_value(), {}};
  if (copy) answer.done = copy->done;
  tell(member, ControlHead::Kind::kSent, send.number, send.bytes, bytes_of(answer));
  if (!copy) return;  // the receiver asks for it through host memory
  other.copied.push_back(copy->done);
  send.end = copy->end;
  send.is_done = true;
  if (send.buffer) leaving_.emplace_back(send.buffer, send.end);
  other.announced.erase(send.number);
}

bool DeviceMessages::advance_sends(int64_t member) {
  Peer& other = peer(member);
  bool has_moved = false;
  for (auto it = other.announced.begin(); it != other.announced.end();) {
    DeviceSend& send = *it->second;
    has_moved |= advance_through_host(member, send);
    const bool is_over = send.bulk != nullptr && send.bulk->is_done();
    if (is_over) {
      send.bulk.reset();
      send.is_done = true;
      if (send.buffer) buffered_bytes_ -= send.bytes;
    }
    it = is_over ? other.announced.erase(it) : std::next(it);
    has_moved |= is_over;
  }
  if (other.cleared.empty() && other.out != nullptr && other.out->is_refused()) {
    tell(member, ControlHead::Kind::kLink, 0, 0);
    other.out.reset();
    has_moved = true;
  }
  while (!other.cleared.empty() && other.out != nullptr && other.out->is_idle()) {
    DeviceSend& send = *other.cleared.front();
    has_moved = true;
    if (!std::exchange(other.is_sending, true)) {
      other.out->send(send.data.data, send.bytes, *send.data.ready);
      continue;
    }
    other.is_sending = false;
    send.end = other.out->end();
    send.is_done = true;
    if (send.buffer) leaving_.emplace_back(send.buffer, send.end);
    tell(member, ControlHead::Kind::kSent, send.number, send.bytes);
    other.announced.erase(send.number);
    other.cleared.pop_front();
  }
  return has_moved;
}

// ---------------------------------------------------------------- receives

bool DeviceMessages::receive(int64_t member, int64_t number, const DeviceOffer& offer,
                             DeviceReceive& receive) {
  return receive_by_ipc(member, number, offer.ipc, receive) ||
         receive_by_nccl(member, number, offer.nccl, receive);
}

bool DeviceMessages::receive_by_ipc(int64_t member, int64_t number, const IpcOffer& offer,
                                    DeviceReceive& receive) {
  Peer& other = peer(member);
  if (other.is_unshared) return false;
  return guarded([&] {
    if (!may_share(offer, ipc_offer(*context_))) return false;
    const std::optional<IpcTarget> target = ipc().show(receive.data);
    if (!target) return false;
    receive.shown = target->ready;
    other.queued[number] = &receive;
    tell(member, ControlHead::Kind::kClear, number, kByIpc,
         bytes_of(IpcClearance{*target, other.num_taken}));
    return true;
  });
}

void DeviceMessages::end_receive(int64_t member, int64_t number, const ControlMessage& sent) {
  Peer& other = peer(member);
  const auto found = other.queued.extract(number);
  if (found.empty()) return;
  DeviceReceive& receive = *found.mapped();
  if (sent.body().empty()) {
    receive.is_sent = true;
    return;
  }
  const auto answer = body_of<IpcSent>(sent);
  ipc().reuse(receive.shown);
  if (answer.is_queued) {
    receive.end = ipc().end_of(answer.done);
    receive.is_sent = true;
    ++other.num_taken;
    return;
  }
  other.is_unshared = true;
  receive.receive_from_host();
}

bool DeviceMessages::receive_by_nccl(int64_t member, int64_t number, const NcclOffer& offer,
                                     DeviceReceive& receive) {
  Peer& other = peer(member);
  if (other.in == nullptr && !other.is_refused) {
    guarded([&] {
      const std::optional<NcclInvitation> invitation =
          can_connect(offer, nccl_offer(*context_)) ? invite() : std::nullopt;
      other.is_refused = !invitation;
      if (!invitation) return false;
      other.in = make_nccl_link(*context_, rank_of(member), *invitation, false);
      tell(member, ControlHead::Kind::kLink, 0, 0, bytes_of(*invitation));
      return true;
    });
  }
  if (other.in == nullptr) return false;
  other.matched.emplace_back(number, &receive);
  world_.keep_advancing(group_);
  guarded([&] { return advance_receives(member); });
  return true;
}

void DeviceMessages::ask_for_host(int64_t member, int64_t number) {
  tell(member, ControlHead::Kind::kClear, number, kThroughHost);
}

void DeviceMessages::forget(int64_t member, const DeviceReceive& receive) {
  Peer& other = peer(member);
  const bool is_queued = other.is_receiving && other.matched.front().second == &receive;
  const bool is_unsent =
      std::erase_if(other.queued, [&](const auto& one) { return one.second == &receive; }) > 0;
  if (is_queued || is_unsent) return fail("its receive was dropped before it ended");
  std::erase_if(other.matched, [&](const Incoming& one) { return one.second == &receive; });
}

// NCCL has refused the connection on the sender's side, and the receiver's may wait for it.
void DeviceMessages::end_link(int64_t member) {
  Peer& other = peer(member);
  if (other.in == nullptr) return;
  if (other.is_receiving || other.in->is_idle()) {
    throw DistributedError(str("NCCL failed: rank ", rank_of(member),
                               " has refused a connection that this rank has; NCCL_DEBUG=WARN "
                               "prints more"));
  }
  give_up_link(member);
}

void DeviceMessages::give_up_link(int64_t member) {
  log_info(str("[nccl] NCCL could not connect rank ", world_.identity().rank, " with rank ",
               rank_of(member), "; messages between the two go through host memory"));
  Peer& other = peer(member);
  other.in.reset();
  other.is_refused = true;
  for (const auto& [number, receive] : std::exchange(other.matched, {}))
    receive->receive_from_host();
}

// A receive is told of when it is queued, not when NCCL has taken it: the first one of a direction
// ends together with the first send.
bool DeviceMessages::advance_receives(int64_t member) {
  Peer& other = peer(member);
  bool has_moved = false;
  if (!other.matched.empty() && other.in->is_refused()) {
    give_up_link(member);
    return true;
  }
  while (!other.matched.empty() && other.in->is_idle()) {
    const auto [number, receive] = other.matched.front();
    has_moved = true;
    if (!std::exchange(other.is_receiving, true)) {
      other.in->receive(receive->data.data, receive->bytes, *receive->data.ready);
      other.queued[number] = receive;
      tell(member, ControlHead::Kind::kClear, number, kByNccl);
      continue;
    }
    other.is_receiving = false;
    receive->end = other.in->end();
    other.matched.pop_front();
  }
  return has_moved;
}

// ---------------------------------------------------------------- messages of the protocol

void DeviceMessages::handle(int64_t member, const ControlMessage& message) {
  Peer& other = peer(member);
  const auto number = static_cast<int64_t>(message.head.step);
  guarded([&] {
    if (message.head.kind == ControlHead::Kind::kLink && message.body().empty()) {
      end_link(member);
    } else if (message.head.kind == ControlHead::Kind::kLink) {
      other.out =
          make_nccl_link(*context_, rank_of(member), body_of<NcclInvitation>(message), true);
    } else if (message.head.kind == ControlHead::Kind::kSent) {
      end_receive(member, number, message);
    } else {
      const auto found = other.announced.find(number);
      if (found == other.announced.end()) return false;  // the caller got an error
      if (message.head.bytes == kByNccl) {
        other.cleared.push_back(found->second);
      } else if (message.head.bytes == kByIpc) {
        send_by_ipc(member, *Outgoing(found->second), message);
      } else {
        begin_through_host(*found->second);
      }
    }
    return advance_sends(member);
  });
}

bool DeviceMessages::advance() {
  bool has_moved = false;
  for (int64_t member = 0; member < static_cast<int64_t>(peers_.size()); ++member) {
    has_moved |= guarded([&] {
      const bool has_sent = advance_sends(member);
      return advance_receives(member) || has_sent;
    });
  }
  return has_moved;
}

}  // namespace flow::boxing

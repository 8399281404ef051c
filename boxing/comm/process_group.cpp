#include "boxing/comm/process_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "boxing/comm/device_copy.h"
#include "boxing/comm/failure.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/hash.h"

namespace flow::boxing {

// A receive that waits for its message.
struct ProcessGroup::Expected {
  int64_t tag = 0;
  int64_t bytes = 0;
  std::byte* target = nullptr;  // in host memory, or null
  Fingerprint what;
  std::unique_ptr<Bulk> bulk;
  bool is_received = false;
  // On a device: where it comes from host memory if it does not come by NCCL or IPC.
  DeviceReceive on_device;
  Ref<Storage> host;

  bool is_on_device() const { return on_device.data.ready != nullptr; }

  bool is_for(const ControlHead& message) const {
    return tag == message.tag && what.is_in_step() == (message.hash != 0);
  }

  bool is_done() const {
    return is_received || on_device.is_done() || (bulk != nullptr && bulk->is_done());
  }
};

// A message that this rank sends.
struct ProcessGroup::Sending {
  Outgoing message;
  Fingerprint what;
  bool is_posted = false;  // the member was told of the message
  std::unique_ptr<Bulk> bulk = {};
  // The message's own copy of the data, if it was dropped before it was posted.
  std::shared_ptr<const std::vector<std::byte>> copy = {};

  bool is_done() const {
    if (message.on_device != nullptr) return message.on_device->is_done;
    return is_posted && (bulk == nullptr || bulk->is_done());
  }
};

struct ProcessGroup::PendingSend final : TransferState {
  PendingSend(ProcessGroup& of, std::shared_ptr<Sending> one)
      : group(of), sending(std::move(one)) {}

  // Ensures that the send's buffer is no longer read; on a device, by what comes before later work.
  ~PendingSend() override {
    const auto lock = group.world_.lock();
    Outgoing& message = sending->message;
    if (!sending->is_posted && memory != nullptr && message.on_device == nullptr) {
      const auto* data = static_cast<const std::byte*>(message.source);
      sending->copy = std::make_shared<const std::vector<std::byte>>(data, data + message.bytes);
      message.source = sending->copy->data();
      return;
    }
    std::erase(group.peer(message.peer).deferred, sending);
    group.world_.drop(std::move(sending->bulk), std::move(memory));
    if (message.on_device == nullptr) return;
    order_after_transfer(group.devices_.context(), message.on_device->end);
    group.devices_.forget(message.peer, *message.on_device);
  }

  ProcessGroup& group;
  std::shared_ptr<Sending> sending;
};

struct ProcessGroup::PendingReceive final : TransferState {
  // Ensures that the receive's buffer is no longer written; on a device, by what comes before later
  // work.
  ~PendingReceive() override {
    const auto lock = group->world_.lock();
    std::erase(group->peer(peer).expected, &expected);
    if (expected.host) memory = std::make_shared<const Ref<Storage>>(std::move(expected.host));
    group->world_.drop(std::move(expected.bulk), std::move(memory));
    if (!expected.is_on_device()) return;
    order_after_transfer(group->devices_.context(), expected.on_device.end);
    group->devices_.forget(peer, expected.on_device);
  }

  ProcessGroup* group = nullptr;
  int64_t peer = 0;
  Expected expected;
};

namespace {

uint64_t group_id(const std::vector<int64_t>& ranks, Channel channel) {
  Hasher hasher;
  for (const int64_t rank : ranks)
    hasher.add(static_cast<uint64_t>(rank));
  hasher.add(ranks.size());
  hasher.add(static_cast<uint64_t>(channel));
  return hasher.value();
}

bool is_on_device(const ControlMessage& message) {
  return message.head.bulk_tag < 0;
}

// The call that a message tells of; that of a device follows what its sender offers.
std::string text_of(const ControlMessage& message) {
  const auto body = message.body().subspan(is_on_device(message) ? sizeof(DeviceOffer) : 0);
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

}  // namespace

ProcessGroup::ProcessGroup(ProcessWorld& world, std::vector<int64_t> ranks, int64_t position,
                           Channel channel, RankContext* context)
    : world_(world),
      ranks_(std::move(ranks)),
      position_(position),
      id_(group_id(ranks_, channel)),
      num_spins_(world_.num_spins(channel)),
      peers_(ranks_.size()),
      devices_(world_, context, id_, ranks_) {
  const Transport& transport = world_.transport();
  const auto shares = [&](int64_t rank) { return transport.shares_with(rank); };
  if (transport.segment() != nullptr && std::all_of(ranks_.begin(), ranks_.end(), shares)) {
    const auto number_bytes = static_cast<int64_t>(sizeof(int64_t)) * size();
    board_ = SharedBoard::make(*transport.segment(), id_, size(), position_,
                               kInlineBytes + number_bytes);
    stage_ = SharedStage::make(*transport.segment(), ~id_, size(), position_);
  }
  world_.attach(id_, *this);
}

// Other members may already be ahead, in a group of the same ranks that this rank will create
// later; messages for it are kept.
ProcessGroup::~ProcessGroup() {
  const auto lock = world_.lock();
  bulks_.clear();
  ProcessWorld::Early unused;
  for (int64_t member = 0; member < size(); ++member) {
    for (auto* messages : {&peer(member).arrivals, &peer(member).sent}) {
      for (ControlMessage& message : *messages)
        unused.emplace_back(rank_of(member), std::move(message));
    }
  }
  world_.detach(id_, std::move(unused));
}

void ProcessGroup::receive(int64_t from, ControlMessage message) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), from);
  FLOW_ASSERT(found != ranks_.end(), "rank ", from,
              " sent a message to a group of which it is not a member");
  const int64_t member = found - ranks_.begin();
  Peer& sender = peer(member);
  switch (message.head.kind) {
    case ControlHead::Kind::kArrival:
      sender.arrivals.push_back(std::move(message));
      return;
    case ControlHead::Kind::kDescription:
      sender.description = text_of(message);
      return;
    case ControlHead::Kind::kMessage: {
      const auto match =
          std::find_if(sender.expected.begin(), sender.expected.end(),
                       [&](const Expected* one) { return one->is_for(message.head); });
      if (match == sender.expected.end()) {
        sender.sent.push_back(std::move(message));
        return;
      }
      Expected& expected = **match;
      sender.expected.erase(match);
      deliver(member, message, expected);
      return;
    }
    case ControlHead::Kind::kCredit:
      sender.credit =
          std::min(sender.credit + message.head.bytes, Communicator::kMostBufferedBytes);
      post_deferred(member);
      return;
    case ControlHead::Kind::kLink:
    case ControlHead::Kind::kClear:
    case ControlHead::Kind::kSent:
      devices_.handle(member, message);
      return;
    case ControlHead::Kind::kFailure:
    case ControlHead::Kind::kEnd:
    case ControlHead::Kind::kHeartbeat:
      break;
  }
  FLOW_ASSERT(false, "a group received a message of a kind that is not for groups");
}

// ---------------------------------------------------------------- collectives

bool ProcessGroup::has_arrived(int64_t member) {
  if (board_) return board_->has_arrived(member);
  Peer& other = peer(member);
  if (!other.current && !other.arrivals.empty()) {
    other.current = std::move(other.arrivals.front());
    other.arrivals.pop_front();
  }
  return other.current.has_value();
}

int64_t ProcessGroup::find_disagreeing() {
  for (int64_t member = 0; member < size(); ++member) {
    if (member == position_ || !has_arrived(member)) continue;
    const uint64_t hash = board_ ? board_->hash(member) : peer(member).current->head.hash;
    if (hash != hash_) return member;
  }
  return -1;
}

int32_t ProcessGroup::bulk_tag_of(int64_t member) {
  return board_ ? board_->tag(member) : peer(member).current->head.bulk_tag;
}

void ProcessGroup::meet(const Fingerprint& what, std::span<const std::byte> data) {
  world_.check(what.site);
  hash_ = what.hash();
  bulk_tag_ = world_.next_bulk_tag();
  ++step_;
  if (board_) {
    board_->arrive(hash_, bulk_tag_, data);
  } else {
    post_arrivals(data);
  }
  int64_t disagreeing = -1;
  const auto is_over = [&] {
    bool all = true;
    for (int64_t member = 0; member < size(); ++member)
      all &= member == position_ || has_arrived(member);
    disagreeing = find_disagreeing();
    return all || disagreeing >= 0;
  };
  const auto is_ready = [&](int64_t member) { return has_arrived(member); };
  wait(is_over, is_ready, what);
  if (disagreeing >= 0) throw_mismatch(what, disagreeing);
}

void ProcessGroup::post_arrivals(std::span<const std::byte> data) {
  const auto lock = world_.lock();
  const ControlHead head{.kind = ControlHead::Kind::kArrival,
                         .bulk_tag = bulk_tag_,
                         .group = id_,
                         .step = step_,
                         .hash = hash_};
  for (int64_t member = 0; member < size(); ++member) {
    peer(member).current.reset();
    if (member != position_) world_.post(rank_of(member), head, data);
  }
}

// Both sides have found the mismatch, or will find it when they arrive. Each side tells the others
// which call it makes.
void ProcessGroup::throw_mismatch(const Fingerprint& what, int64_t other) {
  const std::string call = describe_call(what);
  {
    const auto lock = world_.lock();
    const ControlHead head{
        .kind = ControlHead::Kind::kDescription, .group = id_, .step = step_, .hash = hash_};
    for (int64_t member = 0; member < size(); ++member) {
      if (member != position_) {
        world_.post(rank_of(member), head, std::as_bytes(std::span(call)));
      }
    }
  }
  constexpr std::chrono::milliseconds kPatience(1000);
  world_.wait_for([&] { return !peer(other).description.empty() || world_.has_failed(); },
                  kPatience);
  world_.check(what.site);
  const std::string other_call =
      peer(other).description.empty() ? "\nsomething else" : peer(other).description;
  world_.fail(mismatch_failure(rank_of(position_), what, rank_of(other), other_call, step_));
  world_.check(what.site);
  FLOW_ASSERT(false, "a rank continued after its world had failed");
}

std::span<const std::byte> ProcessGroup::data_of(int64_t member) const {
  return board_ ? board_->data(member) : peers_[static_cast<size_t>(member)].current->body();
}

void ProcessGroup::exchange(std::span<const Part> sends, std::span<const Part> receives,
                            const Fingerprint& what) {
  std::vector<int64_t> members;
  {
    const auto lock = world_.lock();
    bulks_.clear();
    for (int64_t step = 1; step < size(); ++step) {
      const int64_t member = (position_ + size() - step) % size();
      const Part part = receives[static_cast<size_t>(member)];
      if (part.bytes == 0) continue;
      bulks_.push_back(world_.receive(rank_of(member), bulk_tag_of(member), part.data, part.bytes));
      members.push_back(member);
    }
    for (int64_t step = 1; step < size(); ++step) {
      const int64_t member = (position_ + step) % size();
      const Part part = sends[static_cast<size_t>(member)];
      if (part.bytes == 0) continue;
      bulks_.push_back(world_.send(rank_of(member), bulk_tag_, part.data, part.bytes));
      members.push_back(member);
    }
  }
  const auto is_done = [&] {
    bool all = true;
    for (auto& bulk : bulks_) {
      if (bulk && bulk->is_done()) bulk.reset();
      all &= bulk == nullptr;
    }
    return all;
  };
  const auto missing = [&] {
    std::vector<int64_t> ranks;
    for (size_t i = 0; i < bulks_.size(); ++i) {
      if (bulks_[i]) ranks.push_back(rank_of(members[i]));
    }
    return ranks;
  };
  if (bulks_.empty()) return;
  try {
    world_.wait(is_done, missing, what, num_spins_);
  } catch (...) {  // nobody may read or write the caller's memory any more
    const auto lock = world_.lock();
    bulks_.clear();
    throw;
  }
}

// ---------------------------------------------------------------- messages

Transfer ProcessGroup::isend(const void* source, int64_t bytes, int64_t peer_member, int64_t tag,
                             const Fingerprint& what) {
  world_.check(what.site);
  Outgoing message{peer_member, source, bytes, tag};
  if (what.device != DeviceType::kCpu && bytes > 0)
    message.on_device = devices_.prepare(source, bytes);
  const auto lock = world_.lock();
  auto& deferred = peer(peer_member).deferred;
  std::unique_ptr<Bulk> bulk;
  const bool is_posted = deferred.empty() && try_to_post(message, what, bulk);
  const bool is_awaited = message.on_device != nullptr && !message.on_device->buffer;
  if (is_posted && bulk == nullptr && !is_awaited) return nullptr;
  auto sending = std::make_shared<Sending>(Sending{message, what, is_posted, std::move(bulk)});
  if (!is_posted) deferred.push_back(sending);  // messages of one tag keep their order
  return std::make_unique<PendingSend>(*this, std::move(sending));
}

bool ProcessGroup::try_to_post(const Outgoing& message, const Fingerprint& what,
                               std::unique_ptr<Bulk>& bulk) {
  const int64_t to = rank_of(message.peer);
  ControlHead head{.kind = ControlHead::Kind::kMessage,
                   .group = id_,
                   .hash = what.step_hash(),
                   .tag = message.tag,
                   .bytes = message.bytes};
  if (message.on_device != nullptr) {
    const DeviceOffer offer = devices_.announce(message.peer, message.on_device);
    const std::string call = describe_call(what);
    head.step = static_cast<uint64_t>(message.on_device->number);
    head.bulk_tag = -message.on_device->bulk_tag;
    std::vector<std::byte> body(sizeof(offer) + call.size());
    std::memcpy(body.data(), &offer, sizeof(offer));
    std::memcpy(body.data() + sizeof(offer), call.data(), call.size());
    world_.post(to, head, body);
    return true;
  }
  if (message.bytes <= Communicator::kBufferedBytes) {
    int64_t& credit = peer(message.peer).credit;
    const int64_t cost = Communicator::buffered_cost(message.bytes);
    if (credit < cost) return false;
    credit -= cost;
    world_.post(
        to, head,
        {static_cast<const std::byte*>(message.source), static_cast<size_t>(message.bytes)});
    return true;
  }
  head.bulk_tag = world_.next_bulk_tag();
  const std::string call = describe_call(what);
  world_.post(to, head, std::as_bytes(std::span(call)));
  bulk = world_.send(to, head.bulk_tag, message.source, message.bytes);
  return true;
}

void ProcessGroup::post_deferred(int64_t member) {
  auto& deferred = peer(member).deferred;
  while (!deferred.empty() && !world_.has_failed()) {
    Sending& next = *deferred.front();
    if (!try_to_post(next.message, next.what, next.bulk)) return;
    next.is_posted = true;
    if (next.copy) world_.drop(std::move(next.bulk), std::move(next.copy));
    deferred.pop_front();
  }
}

// Few credits are sent, each for a large part of the limit.
void ProcessGroup::give_credit(int64_t member, int64_t bytes) {
  int64_t& taken = peer(member).taken;
  taken += Communicator::buffered_cost(bytes);
  if (taken < Communicator::kMostBufferedBytes / 4 || world_.has_ended(rank_of(member))) return;
  world_.post(rank_of(member),
              {.kind = ControlHead::Kind::kCredit, .group = id_, .bytes = std::exchange(taken, 0)},
              {});
}

Transfer ProcessGroup::irecv(void* target, int64_t bytes, int64_t peer_member, int64_t tag,
                             const Fingerprint& what) {
  world_.check(what.site);
  auto pending = std::make_unique<PendingReceive>();
  pending->group = this;
  pending->peer = peer_member;
  Expected& expected = pending->expected;
  expected.tag = tag;
  expected.bytes = bytes;
  expected.what = what;
  if (what.device != DeviceType::kCpu) {
    expected.on_device = {
        .data = {static_cast<std::byte*>(target), queued_work(devices_.context())}, .bytes = bytes};
  } else {
    expected.target = static_cast<std::byte*>(target);
  }
  const auto lock = world_.lock();
  auto& sent = peer(peer_member).sent;
  const auto match = std::find_if(sent.begin(), sent.end(), [&](const ControlMessage& message) {
    return expected.is_for(message.head);
  });
  if (match == sent.end()) {
    peer(peer_member).expected.push_back(&expected);
  } else {
    deliver(peer_member, *match, expected);
    sent.erase(match);
  }
  return pending;
}

// A message of the wrong size or step fails the world; the rank that waits for the message then
// gets the error.
void ProcessGroup::deliver(int64_t member, const ControlMessage& sent, Expected& expected) {
  const int64_t bytes = sent.head.bytes;
  const bool is_inline = sent.head.bulk_tag == 0;
  const auto call_text = [&] {
    return is_inline ? str("\na send of rank ", rank_of(member)) : text_of(sent);
  };
  if (sent.head.hash != expected.what.step_hash()) {
    world_.fail_locked(
        step_failure(rank_of(position_), expected.what, rank_of(member), call_text()));
    return;
  }
  if (bytes != expected.bytes) {
    const std::string call = call_text();
    world_.fail_locked(message_failure(rank_of(position_), expected.bytes, expected.what,
                                       rank_of(member), bytes, call, expected.tag));
    return;
  }
  if (is_on_device(sent)) return deliver_from_device(member, sent, expected);
  if (is_inline) {
    if (bytes > 0)
      std::memcpy(host_target(expected), sent.body().data(), static_cast<size_t>(bytes));
    expected.is_received = true;
    give_credit(member, bytes);
  } else {
    expected.bulk =
        world_.receive(rank_of(member), sent.head.bulk_tag, host_target(expected), bytes);
  }
}

void ProcessGroup::deliver_from_device(int64_t member, const ControlMessage& sent,
                                       Expected& expected) {
  const auto number = static_cast<int64_t>(sent.head.step);
  DeviceOffer offer;
  std::memcpy(&offer, sent.body().data(), sizeof(offer));
  const auto receive_from_host = [this, member, number, tag = -sent.head.bulk_tag, &expected] {
    expected.bulk = world_.receive(rank_of(member), tag, host_target(expected), expected.bytes);
    devices_.ask_for_host(member, number);
  };
  if (!expected.is_on_device()) return receive_from_host();
  expected.on_device.receive_from_host = receive_from_host;
  if (!devices_.receive(member, number, offer, expected.on_device)) receive_from_host();
}

std::byte* ProcessGroup::host_target(Expected& expected) const {
  if (!expected.is_on_device()) return expected.target;
  expected.host = allocate_staging(devices_.context(), static_cast<size_t>(expected.bytes));
  return expected.host->data();
}

void ProcessGroup::wait(Transfer transfer) {
  if (!transfer) return;
  if (const auto* pending = dynamic_cast<PendingSend*>(transfer.get())) {
    const Sending& sending = *pending->sending;
    world_.wait([&] { return sending.is_done(); },
                [&] { return std::vector<int64_t>{rank_of(sending.message.peer)}; }, sending.what,
                num_spins_);
    return;
  }
  auto& receiving = static_cast<PendingReceive&>(*transfer);
  Expected& expected = receiving.expected;
  world_.wait([&] { return expected.is_done(); },
              [&] { return std::vector<int64_t>{rank_of(receiving.peer)}; }, expected.what,
              num_spins_);
  if (!expected.host) return;
  copy_bytes(devices_.context(), expected.on_device.data.data, DeviceType::kCuda,
             expected.host->data(), DeviceType::kCpu, static_cast<size_t>(expected.bytes));
}

}  // namespace flow::boxing

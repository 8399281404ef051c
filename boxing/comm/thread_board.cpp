#include "boxing/comm/thread_board.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "boxing/comm/failure.h"
#include "core/error.h"

namespace flow::boxing {

ThreadBoard::ThreadBoard(ThreadWorld& world, std::vector<int64_t> ranks)
    : world_(world),
      ranks_(std::move(ranks)),
      size_(static_cast<int64_t>(ranks_.size())),
      places_(std::make_unique<Place[]>(ranks_.size())),
      mailboxes_(std::make_unique<Mailbox[]>(ranks_.size() * ranks_.size())),
      released_(world) {}

ThreadBoard::~ThreadBoard() = default;

void ThreadBoard::meet(int64_t member, const Fingerprint& what, const Shown& shown, int64_t bytes) {
  if (world_.has_failed()) [[unlikely]]
    leave(member, what.site);
  Place& place = places_[static_cast<size_t>(member)];
  const size_t side = ++place.step & 1;
  Shown& mine = place.shown[side];
  mine = shown;
  mine.must_stay = shown.target != nullptr || shown.counts != nullptr;
  if (bytes > kCopiedBytes) {
    mine.must_stay = true;
  } else if (!mine.must_stay && bytes > 0) {
    std::memcpy(place.copies[side].data(), shown.source, static_cast<size_t>(bytes));
    mine.source = place.copies[side].data();
  }
  place.marks[side] = what;
  place.hashes[side] = what.hash();
  arrive(member);
  compare(member, place.hashes[side]);
  wait_for_all(member, what);
}

void ThreadBoard::meet_again(int64_t member, const Fingerprint& what) {
  arrive(member);
  try {
    wait_for_all(member, what);
  } catch (const DistributedError&) {
    stay_while_read(member);
    throw;
  }
}

void ThreadBoard::arrive(int64_t member) {
  Place& place = places_[static_cast<size_t>(member)];
  place.generation = generation_.load(std::memory_order_relaxed);
  place.arrivals.store(place.arrivals.load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
}

void ThreadBoard::wait_for_all(int64_t member, const Fingerprint& what) {
  const Place& place = places_[static_cast<size_t>(member)];
  const uint64_t arrival = place.arrivals.load(std::memory_order_relaxed);
  const uint32_t generation = place.generation;
  // The sum cannot equal size_ once the step is broken.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    agreed_hash_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1);
    released_.notify();
    return;
  }
  const auto missing = [&] {
    std::vector<int64_t> ranks;
    for (int64_t peer = 0; peer < size_; ++peer) {
      const auto& other = places_[static_cast<size_t>(peer)];
      if (other.arrivals.load() < arrival) ranks.push_back(ranks_[static_cast<size_t>(peer)]);
    }
    return ranks;
  };
  try {
    released_.wait([&] { return generation_.load() != generation; }, missing, what);
  } catch (const DistributedError&) {
    if (withdraw(generation)) throw;
    // In the meantime all members arrived, and the others read what this member publishes. It
    // continues to the end of the collective or to the next one, which throws the failure.
  }
}

bool ThreadBoard::withdraw(uint32_t generation) {
  for (;;) {
    uint32_t arrived = arrived_.load(std::memory_order_acquire);
    if (generation_.load(std::memory_order_acquire) != generation) return false;
    if ((arrived & kBroken) != 0) return true;
    // This member is counted. The step is complete, or the count has restarted at 0, so its release
    // is under way.
    if (arrived == 0 || arrived == static_cast<uint32_t>(size_)) {
      std::this_thread::yield();
      continue;
    }
    if (arrived_.compare_exchange_weak(arrived, arrived | kBroken, std::memory_order_acq_rel)) {
      // An equal number of members may have arrived at the next step in the meantime; that step is
      // then broken.
      return generation_.load(std::memory_order_acquire) == generation;
    }
  }
}

// The others finish reading within microseconds and then arrive, or have left. A member whose own
// program threw an exception announces that at its next collective, or ends.
void ThreadBoard::stay_while_read(int64_t member) {
  const uint64_t arrival = places_[static_cast<size_t>(member)].arrivals.load();
  const auto patience = std::chrono::steady_clock::now() + world_.timeout();
  for (int64_t peer = 0; peer < size_; ++peer) {
    const Place& other = places_[static_cast<size_t>(peer)];
    const auto may_read = [&] {
      return other.arrivals.load() < arrival && !other.has_left.load() &&
             !world_.has_ended(ranks_[static_cast<size_t>(peer)]);
    };
    while (may_read() && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void ThreadBoard::leave(int64_t member, Site site) {
  places_[static_cast<size_t>(member)].has_left.store(true);
  world_.throw_failure(site);
}

// The first arrival of a step stores its hash. A member that arrives with a different hash fails
// the world before any member is released.
void ThreadBoard::compare(int64_t member, uint64_t hash) {
  uint64_t agreed = 0;
  if (agreed_hash_.compare_exchange_strong(agreed, hash, std::memory_order_acq_rel) ||
      agreed == hash) {
    return;
  }
  const Place& place = places_[static_cast<size_t>(member)];
  const size_t side = place.step & 1;
  const uint64_t arrival = place.arrivals.load();
  for (int64_t peer = 0; peer < size_; ++peer) {
    const Place& other = places_[static_cast<size_t>(peer)];
    if (other.arrivals.load(std::memory_order_acquire) != arrival || other.hashes[side] == hash)
      continue;
    world_.fail(mismatch_failure(ranks_[static_cast<size_t>(member)], place.marks[side],
                                 ranks_[static_cast<size_t>(peer)],
                                 describe_call(other.marks[side]), place.step));
    break;
  }
  world_.throw_failure(place.marks[side].site);
}

const Shown& ThreadBoard::shown(int64_t member, int64_t peer) const {
  return places_[static_cast<size_t>(peer)].shown[places_[static_cast<size_t>(member)].step & 1];
}

bool ThreadBoard::anybody_must_stay(int64_t member) const {
  for (int64_t peer = 0; peer < size_; ++peer) {
    if (shown(member, peer).must_stay) return true;
  }
  return false;
}

}  // namespace flow::boxing

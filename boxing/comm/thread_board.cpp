#include "boxing/comm/thread_board.h"

#include <cstring>

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
    world_.throw_failure(what.site);
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
  arrive_and_wait(member, what, place.hashes[side]);
}

void ThreadBoard::meet_again(int64_t member, const Fingerprint& what) {
  arrive_and_wait(member, what, 0);
}

void ThreadBoard::arrive_and_wait(int64_t member, const Fingerprint& what, uint64_t hash) {
  Place& place = places_[static_cast<size_t>(member)];
  const uint64_t arrival = place.arrivals.load(std::memory_order_relaxed) + 1;
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  place.arrivals.store(arrival, std::memory_order_release);
  if (hash != 0) compare(member, hash);
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
  released_.wait([&] { return generation_.load() != generation; }, missing, what);
}

// The first arrival of a step leaves its hash; whoever brings another one ends the world before
// anybody is released.
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

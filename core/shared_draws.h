// Random draws that are the same on every rank.
#pragma once

namespace flow {

// While it exists, local random tensors of this thread do not depend on the rank: they are those of
// rank 0, and so those of a single process. Global draws never depend on it.
class [[nodiscard]] SharedDraws {
 public:
  SharedDraws();
  ~SharedDraws();
  SharedDraws(const SharedDraws&) = delete;
  SharedDraws& operator=(const SharedDraws&) = delete;

  static bool are_on();

 private:
  bool outer_;
};

}  // namespace flow

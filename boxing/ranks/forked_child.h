// Keeps a child that a rank makes with fork() away from the job. Only the rank itself belongs to
// the job: two processes that use one connection would corrupt the messages of both.
#pragma once

namespace flow::boxing {

// From this call on, flow calls of a forked child throw InvalidArgument, its exit code tells nobody
// anything, and it does not inherit the connection. A child that calls exec is not affected.
void forbid_forked_children();

// The same while the object lives, for thread ranks.
class ForkedChildrenForbidden {
 public:
  ForkedChildrenForbidden();
  ~ForkedChildrenForbidden();
  ForkedChildrenForbidden(const ForkedChildrenForbidden&) = delete;
  ForkedChildrenForbidden& operator=(const ForkedChildrenForbidden&) = delete;
};

// True in a child that a rank has forked.
bool is_forked_child();

}  // namespace flow::boxing

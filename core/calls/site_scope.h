// The line of the user's program for which a function of the library runs.
#pragma once

#include "core/site.h"

namespace flow {

// While an instance lives, errors and ops of this thread whose own line is in the library have this
// one. Public functions and constructors that check arguments in several places make one from their
// parameter `Site site = Site::here()`. A line of the library changes nothing: the scope of the
// caller stays.
class [[nodiscard]] SiteScope {
 public:
  explicit SiteScope(Site site);
  ~SiteScope();
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;

  // The line of the innermost scope or module call of this thread; not known outside of them.
  static Site current();

 private:
  Site* scope_;
  Site outer_;
};

}  // namespace flow

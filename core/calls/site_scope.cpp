#include "core/calls/site_scope.h"

#include "core/context.h"

namespace flow {

namespace {
// Of a thread that belongs to no rank, or not yet.
constinit thread_local Site unattached_scope = Site::none();
}  // namespace

SiteScope::SiteScope(Site site)
    : scope_(internal::current_thread_state == nullptr
                 ? &unattached_scope
                 : &internal::current_thread_state->scope_site),
      outer_(*scope_) {
  if (site.is_known() && !site.is_inside_library()) *scope_ = site;
}

SiteScope::~SiteScope() {
  *scope_ = outer_;
}

Site SiteScope::current() {
  const ThreadState* state = internal::current_thread_state;
  return state != nullptr && state->scope_site.is_known() ? state->scope_site : unattached_scope;
}

}  // namespace flow

#include "eager/timeline_observer.h"

#include "core/context.h"

namespace flow::eager {

void TimelineObserver::begin(const Call& call, const Decision& decision) {
  const ThreadState& state = thread_state();
  const Site site = user_site(call.site);
  int64_t bytes = 0;
  for (const MetaPtr meta : decision.outputs)
    bytes += meta->is_held ? static_cast<int64_t>(meta->local_bytes()) : 0;
  open_.push_back(
      log_.begin({.bytes = bytes,
                  .name = log_.static_text(call.op.name),
                  .file = site.is_known() ? log_.static_text(site.file()) : 0,
                  .module = state.module_path == nullptr ? 0 : log_.text(*state.module_path),
                  .line = site.line(),
                  .kind = timeline::EventKind::kOp}));
}

void TimelineObserver::begin_scope(std::string_view name, Site site) {
  const Site line = user_site(site);
  open_.push_back(log_.begin({.name = log_.text(name),
                              .file = line.is_known() ? log_.static_text(line.file()) : 0,
                              .line = line.line(),
                              .kind = timeline::EventKind::kScope}));
}

void TimelineObserver::end_scope() {
  log_.end(open_.back(), false);
  open_.pop_back();
}

void TimelineObserver::end(const Decision& /*decision*/, bool has_failed) {
  log_.end(open_.back(), has_failed);
  open_.pop_back();
}

}  // namespace flow::eager

#include "nn/job/module.h"

#include "nn/job/rank_job.h"

namespace flow::job {

std::shared_ptr<void> internal::module_named(std::string_view name, const std::type_info& type,
                                             const std::function<MadeModule()>& make,
                                             const ModuleOptions& options, Site site) {
  return RankJob::in_function("get_module", site).module(name, type, make, options, site);
}

}  // namespace flow::job

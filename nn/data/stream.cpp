#include "nn/data/stream.h"

#include "core/error.h"

namespace flow::data::internal {

const DataLoaderOptions& check_stream_options(const DataLoaderOptions& options, Site site) {
  const SiteScope scope(site);
  if (options.shuffle || options.sampler || options.batch_sampler) {
    throw InvalidArgument(
        "[DataLoader] a stream has no positions, so shuffle, sampler and batch_sampler cannot "
        "choose among its samples; shuffle where the stream is made");
  }
  if (options.num_workers > 1) {
    throw InvalidArgument(str("[DataLoader] one thread reads a stream; received num_workers ",
                              options.num_workers, "; give 0 or 1"));
  }
  return options;
}

void refuse_stream_state(Site site) {
  throw Unsupported(
      "[DataLoader] a stream has no position at which a pass could go on, so its loader has no "
      "state; store what the stream needs with the training",
      site);
}

}  // namespace flow::data::internal

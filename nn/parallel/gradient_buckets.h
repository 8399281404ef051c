// Averages the gradients of a data-parallel module over all ranks, in buckets, while backward runs.
// In a trace, the means are nodes of the traced step, and the compiler makes the buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "nn/module.h"

namespace flow::nn::parallel {

// Confined to one thread of its rank. All ranks of the world construct and use it in the same
// order.
class GradientBuckets : public std::enable_shared_from_this<GradientBuckets> {
 public:
  // Groups the parameters that require gradients into buckets of about bucket_mb. The last
  // parameters, whose gradients backward computes first, are in the first bucket. Throws
  // InvalidArgument for a global tensor and unless bucket_mb is positive.
  static std::shared_ptr<GradientBuckets> make(const NamedTensors& parameters, double bucket_mb,
                                               Site site);
  explicit GradientBuckets(double bucket_mb);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Takes in those parameters of the module that require gradients and are not in a bucket yet, on
  // all ranks the same ones. A parameter that was frozen since then stays: it counts as unused.
  void follow(const NamedTensors& parameters);

  // From pause() to resume(), which may be nested, backward leaves gradients unaveraged.
  void pause();
  void resume();

  // Returns false between pause() and resume(). A trace depends on the answer. Throws Unsupported
  // if pause() was called before the running trace began.
  bool is_synchronising() const;

  // The number of parameters in each bucket, in the order in which buckets are reduced.
  std::vector<size_t> bucket_sizes() const;

 private:
  struct Bucket;
  struct Place;

  enum class Where { kBackground, kHere };

  // Adds a hook. The parameter still needs a bucket.
  void add(const std::string& name, const Tensor& parameter);
  void fill();
  // False if set_data(), which Module::to() calls, has given a parameter another dtype or size.
  bool fits() const;
  void note_gradient(size_t parameter);
  void check_not_averaged(size_t parameter) const;
  void begin_backward();
  Where where_of(size_t bucket) const;
  void launch_ready();
  void launch(Bucket& bucket, Where where);
  void finish();
  // Finds which parameters have a gradient on any rank, if a bucket is on a device. Collective.
  void find_used();
  void trace_mean(size_t parameter);
  void finish_trace();

  double bucket_mb_;
  std::map<const TensorImpl*, size_t> numbers_;  // of the parameters
  std::vector<size_t> order_;                    // their numbers in the order of the module
  std::vector<std::string> names_;               // by parameter
  std::vector<Tensor> parameters_;
  std::vector<int64_t> hooks_;
  std::vector<Place> places_;  // by parameter
  std::vector<Bucket> buckets_;
  std::vector<const void*> paused_in_;  // by call of pause(): the trace that ran, or null
  // The number of the running backward, and its progress.
  uint64_t backward_ = 0;
  std::vector<bool> has_gradient_;
  size_t num_launched_ = 0;
  std::vector<int32_t> is_used_;  // by parameter
  std::vector<Tensor> means_;     // in a trace, by parameter
};

}  // namespace flow::nn::parallel

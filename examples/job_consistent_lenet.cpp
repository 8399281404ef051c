// A job function in consistent view: one LeNet trains on whole batches, which two devices share.
#include "support/job_digits.h"
#include "support/job_lenet.h"

namespace job = flow::job;

namespace {
job::Blob lenet(const job::Blob& data, bool train) {
  auto init = job::truncated_normal(0.1);
  auto flat = examples::lenet_features(data);
  auto hidden = job::layers::dense(
      flat, 512, {.activation = flow::relu, .kernel_initializer = init, .name = "hidden"});
  if (train) hidden = job::dropout(hidden, {.rate = 0.5});
  return job::layers::dense(hidden, 10, {.kernel_initializer = init, .name = "outlayer"});
}
}  // namespace

int main(int argc, char** argv) {
  const examples::Arguments arguments(argc, argv, "Trains LeNet on digits, in consistent view.");
  constexpr int64_t kBatch = examples::kJobBatch;
  auto train_job = job::global_function(
      {.type = "train"}, job::Placeholder({kBatch, 1, 28, 28}, flow::float32),
      job::Placeholder({kBatch}, flow::int32), [](job::Blob images, job::Blob labels) {
        auto loss = job::sparse_softmax_cross_entropy_with_logits(labels, lenet(images, true));
        job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {0.1}), .momentum = 0})
            .minimize(loss);
        return loss;
      });
  return examples::run_job(arguments, 160, 0.1, [&](const examples::JobBatch& batch) {
    return train_job({batch.images, {kBatch, 1, 28, 28}}, {batch.labels, {kBatch}})
        .to_vector<float>();
  });
}

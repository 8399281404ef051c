// Mixed parallelism: the hidden layer is data parallel, the output layer model parallel.
#include "support/job_digits.h"

namespace job = flow::job;

namespace {
job::Blob mlp(const job::Blob& data) {
  auto init = job::truncated_normal(0.1);
  auto hidden =
      job::layers::dense(flow::reshape(data, {data.size(0), -1}), 512,
                         {.activation = flow::relu, .kernel_initializer = init, .name = "dense1"});
  return job::layers::dense(hidden, 10,
                            {.kernel_initializer = init,
                             .model_distribute = job::distribute::split(0),  // output columns
                             .name = "dense2"});
}
}  // namespace

int main(int argc, char** argv) {
  const examples::Arguments arguments(
      argc, argv, "Trains an MLP on digits, its last layer split over devices.");
  constexpr int64_t kBatch = examples::kJobBatch;
  auto train_job = job::global_function(
      {.type = "train"}, job::Placeholder({kBatch, 1, 28, 28}, flow::float32),
      job::Placeholder({kBatch}, flow::int32), [](job::Blob images, job::Blob labels) {
        auto loss = job::sparse_softmax_cross_entropy_with_logits(labels, mlp(images));
        job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {0.1}), .momentum = 0})
            .minimize(loss);
        return loss;
      });
  return examples::run_job(arguments, 160, 0.1, [&](const examples::JobBatch& batch) {
    return train_job({batch.images, {kBatch, 1, 28, 28}}, {batch.labels, {kBatch}})
        .to_vector<float>();
  });
}

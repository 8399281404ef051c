// A job function in mirrored view: each of two devices trains an MLP on half of every batch, and
// gradients are averaged.
#include "support/job_digits.h"

namespace job = flow::job;

namespace {
constexpr int64_t kPerDevice = examples::kJobBatch / 2;

// The half of a batch that goes to one device.
template <class T>
flow::Array half(const std::vector<T>& values, size_t device, const flow::Shape& shape) {
  const size_t size = values.size() / 2;
  const auto begin = values.begin() + static_cast<ptrdiff_t>(device * size);
  return {std::vector<T>(begin, begin + static_cast<ptrdiff_t>(size)), shape};
}
}  // namespace

int main(int argc, char** argv) {
  const examples::Arguments arguments(argc, argv, "Trains an MLP on digits, in mirrored view.");
  auto train_job = job::global_function(
      {.type = "train", .default_logical_view = job::mirrored_view()},
      job::ListPlaceholder({kPerDevice, 1, 28, 28}, flow::float32),
      job::ListPlaceholder({kPerDevice}, flow::int32), [](job::Blob images, job::Blob labels) {
        auto init = job::truncated_normal(0.1);
        auto hidden = job::layers::dense(
            flow::reshape(images, {images.size(0), -1}), 512,
            {.activation = flow::relu, .kernel_initializer = init, .name = "dense1"});
        auto logits =
            job::layers::dense(hidden, 10, {.kernel_initializer = init, .name = "dense2"});
        auto loss = job::sparse_softmax_cross_entropy_with_logits(labels, logits);
        job::optimizer::SGD({.lr_scheduler = job::PiecewiseConstant({}, {0.1}), .momentum = 0})
            .minimize(loss);
        return loss;
      });
  return examples::run_job(arguments, 160, 0.1, [&](const examples::JobBatch& batch) {
    const flow::Shape images{kPerDevice, 1, 28, 28}, labels{kPerDevice};
    const std::vector<flow::Array> losses =
        train_job({half(batch.images, 0, images), half(batch.images, 1, images)},
                  {half(batch.labels, 0, labels), half(batch.labels, 1, labels)});
    std::vector<float> all;
    for (const flow::Array& loss : losses) {
      const auto values = loss.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  });
}

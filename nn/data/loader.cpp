#include "nn/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/tensor_meta.h"
#include "ops/creation/creation.h"

namespace flow::data::internal {

BatchPlan::BatchPlan(const DataLoaderOptions& options, int64_t dataset_size, Site site)
    : options_(options), dataset_size_(dataset_size), site_(site) {
  const SiteScope scope(site);
  if (options.batch_size <= 0 || options.num_workers < 0 || options.prefetch_factor <= 0) {
    throw InvalidArgument(
        str("[DataLoader] batch_size and prefetch_factor must be positive and "
            "num_workers must not be negative; received ",
            options.batch_size, ", ", options.prefetch_factor, " and ", options.num_workers));
  }
  if (options.sampler && options.shuffle) {
    throw InvalidArgument(
        "[DataLoader] sampler and shuffle exclude each other: the sampler decides the order; leave "
        "out shuffle");
  }
  if (options.batch_sampler &&
      (options.batch_size != 1 || options.sampler || options.shuffle || options.drop_last)) {
    throw InvalidArgument(
        "[DataLoader] batch_sampler excludes batch_size, sampler, shuffle and drop_last: it "
        "decides "
        "which samples are in each batch; leave the others out");
  }
  if (options.placement.defined() != !options.sbp.empty()) {
    throw InvalidArgument(str("[DataLoader] received placement ", options.placement, " and sbp ",
                              options.sbp, "; give both, or neither"));
  }
}

int64_t BatchPlan::num_batches() const {
  if (options_.batch_sampler) return options_.batch_sampler->size();
  const int64_t size = options_.sampler ? options_.sampler->size() : dataset_size_;
  return options_.drop_last ? size / options_.batch_size
                            : (size + options_.batch_size - 1) / options_.batch_size;
}

bool BatchPlan::reads_own_rows() const {
  return std::all_of(options_.sbp.begin(), options_.sbp.end(),
                     [](Sbp entry) { return entry == sbp::broadcast || entry == sbp::split(0); });
}

std::vector<int64_t> BatchPlan::own_samples(const std::vector<int64_t>& order,
                                            int64_t number) const {
  int64_t first = number * options_.batch_size;
  int64_t size = std::min(options_.batch_size, static_cast<int64_t>(order.size()) - first);
  if (options_.batch_sampler) {
    first = number == 0 ? 0 : ends_[static_cast<size_t>(number - 1)];
    size = ends_[static_cast<size_t>(number)] - first;
  }
  const auto [own_first, own_size] = own_rows(size);
  const auto begin = order.begin() + first + own_first;
  return {begin, begin + own_size};
}

std::pair<int64_t, int64_t> BatchPlan::own_rows(int64_t size) const {
  if (!options_.placement.defined() || !reads_own_rows()) return {0, size};
  const int64_t position = options_.placement.position(env::rank());
  if (position < 0) return {0, 0};  // to_global ignores the values of ranks outside the placement
  const Box box = box_of(Shape{size}, options_.placement, options_.sbp, position);
  return {box.begin[0], box.size[0]};
}

Tensor BatchPlan::placed(const Tensor& batch) const {
  const ToGlobalOptions wanted{.placement = options_.placement, .sbp = options_.sbp};
  if (reads_own_rows()) return batch.to_global(wanted);
  return batch
      .to_global(
          {.placement = options_.placement, .sbp = NdSbp::broadcast(options_.placement.num_axes())})
      .to_global(wanted);
}

std::vector<int64_t> BatchPlan::begin_pass() {
  if (!resumes_ || next_batch_ >= num_batches()) {
    next_batch_ = 0;
    ++epoch_;
    RankContext& context = *thread_state().context;
    const bool draws = options_.shuffle || options_.sampler || options_.batch_sampler;
    random_ =
        draws ? context.generator().next() : RandomStream{.seed = context.generator().state().seed};
    if (!options_.placement.defined()) random_.rank = static_cast<uint64_t>(context.rank());
  }
  resumes_ = false;
  has_pass_ = true;
  return draw_order();
}

std::vector<int64_t> BatchPlan::draw_order() {
  if (options_.batch_sampler) {
    std::vector<int64_t> order;
    ends_.clear();
    for (const std::vector<int64_t>& batch : options_.batch_sampler->batches(random_)) {
      if (batch.empty()) {
        throw InvalidArgument(str("[DataLoader] batch ", ends_.size(),
                                  " of the batch_sampler is empty; leave it out"));
      }
      order.insert(order.end(), batch.begin(), batch.end());
      ends_.push_back(static_cast<int64_t>(order.size()));
    }
    if (const int64_t size = num_batches(); static_cast<int64_t>(ends_.size()) != size) {
      throw InvalidArgument(str("[DataLoader] the batch_sampler contradicts itself: size() is ",
                                size, ", but batches() returned ", ends_.size(),
                                " batches; make them agree"));
    }
    return order;
  }
  if (!options_.sampler) return sample_order(dataset_size_, options_.shuffle, random_);
  std::vector<int64_t> order = options_.sampler->order(random_);
  if (const int64_t size = options_.sampler->size(); static_cast<int64_t>(order.size()) != size) {
    throw InvalidArgument(str("[DataLoader] the sampler contradicts itself: size() is ", size,
                              ", but order() returned ", order.size(),
                              " samples; make them agree"));
  }
  return order;
}

nn::StateDict BatchPlan::state_dict() const {
  const std::vector<int64_t> pass{has_pass_ || resumes_ ? 1 : 0,
                                  static_cast<int64_t>(random_.seed),
                                  static_cast<int64_t>(random_.stream),
                                  static_cast<int64_t>(random_.rank),
                                  next_batch_,
                                  epoch_};
  return {{"pass", tensor(pass, {6}, {.dtype = int64})}};
}

void BatchPlan::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  const auto found = state.find("pass");
  if (state.size() != 1 || found == state.end() || !(found->second.shape() == Shape{6})) {
    throw InvalidArgument(
        "[DataLoader] the state must have one name, 'pass', with six numbers; nothing "
        "was loaded; use a state that a DataLoader has written");
  }
  const auto pass = found->second.to_vector<int64_t>();
  if (pass[0] < 0 || pass[0] > 1 || pass[4] < 0 || pass[5] < -1) {
    throw InvalidArgument(str("[DataLoader] the state is invalid: it resumes at batch ", pass[4],
                              " of pass ", pass[5],
                              "; nothing was loaded; use the state of the same loader"));
  }
  random_ = {static_cast<uint64_t>(pass[1]), static_cast<uint64_t>(pass[2]),
             static_cast<uint64_t>(pass[3])};
  // A checkpoint has the state of rank 0, and with local batches each rank has an order of its own.
  if (!options_.placement.defined()) random_.rank = static_cast<uint64_t>(env::rank());
  next_batch_ = pass[4];
  epoch_ = pass[5];
  resumes_ = pass[0] == 1;
}

Tensor checked_sample(const Tensor& sample) {
  if (!sample.is_global()) return sample;
  throw InvalidArgument(
      str("[DataLoader] the tensors of a dataset must be local, because each rank reads its own "
          "samples; received ",
          sample.meta(), "; give local tensors, and placement and sbp in the loader's options"));
}

struct Prefetcher::Shared {
  Make make;
  int64_t last, depth;
  RankIdentity identity;
  DType default_dtype;

  std::mutex mutex;
  std::condition_variable changed;
  int64_t next_to_make, next_to_give;              // guarded by mutex
  std::map<int64_t, std::shared_ptr<void>> made;   // guarded by mutex
  std::map<int64_t, std::exception_ptr> failures;  // guarded by mutex
  bool stops = false;                              // guarded by mutex
  std::vector<std::jthread> threads;

  // Runs also if the system could not start one of the threads. The threads are joined after this.
  ~Shared() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
  }

  void work() {
    // Each worker has a separate context with one thread, because the rank's thread pool runs one
    // loop at a time.
    RankContext context(identity, 1);
    const RankScope scope(context);
    set_default_dtype(default_dtype);
    const NoGradGuard no_grad;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] {
        return stops || next_to_make >= last || next_to_make < next_to_give + depth;
      });
      if (stops || next_to_make >= last) return;
      const int64_t number = next_to_make++;
      lock.unlock();
      std::shared_ptr<void> thing;
      std::exception_ptr failure;
      try {
        thing = make(number);
      } catch (...) {
        failure = std::current_exception();  // rethrown by next()
      }
      lock.lock();
      if (failure) {
        failures.emplace(number, failure);
      } else {
        made.emplace(number, std::move(thing));
      }
      changed.notify_all();
    }
  }
};

Prefetcher::Prefetcher(int64_t first, int64_t last, const DataLoaderOptions& options, Make make)
    : shared_(std::make_unique<Shared>()) {
  shared_->make = std::move(make);
  shared_->last = last;
  shared_->depth = options.num_workers * options.prefetch_factor;
  shared_->identity = thread_state().context->identity();
  shared_->default_dtype = flow::default_dtype();
  shared_->next_to_make = shared_->next_to_give = first;
  for (int64_t i = 0; i < options.num_workers; ++i)
    shared_->threads.emplace_back([shared = shared_.get()] { shared->work(); });
}

Prefetcher::~Prefetcher() = default;

std::shared_ptr<void> Prefetcher::next() {
  std::unique_lock lock(shared_->mutex);
  const int64_t number = shared_->next_to_give;
  shared_->changed.wait(
      lock, [&] { return shared_->made.contains(number) || shared_->failures.contains(number); });
  if (const auto failure = shared_->failures.find(number); failure != shared_->failures.end()) {
    std::rethrow_exception(failure->second);  // later calls rethrow it as well
  }
  ++shared_->next_to_give;
  shared_->changed.notify_all();
  const auto found = shared_->made.find(number);
  std::shared_ptr<void> thing = std::move(found->second);
  shared_->made.erase(found);
  return thing;
}

}  // namespace flow::data::internal

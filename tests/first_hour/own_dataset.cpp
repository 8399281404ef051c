// A dataset of the user's own, behind a loader with threads.
#include "tests/first_hour/expect.h"

// Sample i is (i, i^2), and its label says whether i is even.
struct Squares {
  using Sample = std::pair<flow::Tensor, flow::Tensor>;

  int64_t size() const { return 10; }

  Sample operator[](int64_t i) const {
    const float x = static_cast<float>(i);
    return {flow::tensor({x, x * x}), flow::tensor(i % 2 == 0 ? 1 : 0)};
  }
};

int main() {
  flow::data::DataLoader in_order(Squares(), {.batch_size = 4, .num_workers = 2});
  std::vector<flow::Shape> shapes;
  for (const auto& [x, label] : in_order) {
    shapes.push_back(x.shape());
    expect(label.shape() == flow::Shape{x.size(0)}, "one label for each row");
  }
  expect(shapes == std::vector<flow::Shape>({{4, 2}, {4, 2}, {2, 2}}), "the last batch is smaller");

  // A shuffled pass has every sample once, and its order depends on the seed alone.
  const auto order = [](int64_t num_workers) {
    flow::manual_seed(5);
    flow::data::DataLoader loader(Squares(),
                                  {.batch_size = 3, .shuffle = true, .num_workers = num_workers});
    std::vector<float> seen;
    for (const auto& [x, label] : loader)
      for (const float value : x.select(1, 0).to_vector<float>())
        seen.push_back(value);
    return seen;
  };
  std::vector<float> seen = order(0);
  expect(seen == order(3), "the number of workers does not change the order");
  std::sort(seen.begin(), seen.end());
  expect(seen == std::vector<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "each sample is there once");

  const auto parts = flow::data::random_split(Squares(), {0.8, 0.2});
  expect(parts[0].size() == 8 && parts[1].size() == 2, "the parts have 8 and 2 samples");
}

// Trains a multi-layer perceptron on MNIST, or on generated digits without --data.
#include "nn/models/mlp.h"
#include "support/digits_training.h"

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Trains a perceptron on digits.");
    flow::manual_seed(arguments.seed);
    examples::train_on_digits(flow::models::Mlp({784, 512, 512, 10}), arguments, 1250, 0.05);
  });
}

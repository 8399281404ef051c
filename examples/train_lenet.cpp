// Trains LeNet on MNIST, or on generated digits without --data.
#include "nn/models/lenet.h"
#include "support/digits_training.h"

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Trains LeNet on digits.");
    flow::manual_seed(arguments.seed);
    examples::train_on_digits(flow::models::Lenet(), arguments, 1000, 0.02);
  });
}

// Images of digits, and a generator of such images.
#pragma once

#include <cstdint>
#include <vector>

namespace flow::data {

// `count` grey images of height × width bytes, row-major, and a label for each.
struct Digits {
  int64_t count = 0;
  int64_t height = 28;
  int64_t width = 28;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;  // 0 … 9
};

// Draws digits as strokes with random rotation, shear, scale, thickness, blur, noise and
// distracting strokes. The same arguments give the same images. They are harder for a linear model
// than those of MNIST.
Digits generate_digits(int64_t count, uint64_t seed);

}  // namespace flow::data

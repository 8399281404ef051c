// Pictures of digits: what MNIST files hold and what the generator draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flow::data {

// `count` grey images of height × width bytes, row-major, and a label each.
struct Digits {
  int64_t count = 0;
  int64_t height = 28;
  int64_t width = 28;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;  // 0 … 9
};

// Draws digits as strokes under random rotation, shear, scale, thickness and blur with noise and
// distracting strokes: the same for the same arguments. Harder for a linear model than MNIST's.
Digits generate_digits(int64_t count, uint64_t seed);

// Reads a pair of idx files, plain or gzip (LeCun and Cortes 1998). Sizes are checked against the
// header before memory is taken. Throws IoError naming file and defect.
Digits read_idx(const std::string& images_path, const std::string& labels_path);
// Writes them plain; each file appears whole or not at all.
void write_idx(const Digits& digits, const std::string& images_path,
               const std::string& labels_path);

}  // namespace flow::data

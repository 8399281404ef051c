// Images of digits: the contents of MNIST files, and the output of the generator.
#pragma once

#include <cstdint>
#include <string>
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

// Reads a pair of idx files, plain or gzip (LeCun and Cortes 1998). Sizes are checked against the
// header before memory is allocated. Throws IoError, naming the file and the defect.
Digits read_idx(const std::string& images_path, const std::string& labels_path);
// Writes plain idx files. Each file appears complete or not at all. Throws IoError.
void write_idx(const Digits& digits, const std::string& images_path,
               const std::string& labels_path);

}  // namespace flow::data

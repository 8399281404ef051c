// The idx file format of MNIST: a big-endian header (magic number, sizes) followed by bytes.
#pragma once

#include <string>

#include "core/site.h"
#include "nn/data/digits.h"

namespace flow::data {

// Reads a pair of idx files, plain or gzip (LeCun and Cortes 1998). Sizes are checked against the
// header before memory is allocated. Throws IoError, naming the file and the defect.
Digits read_idx(const std::string& images_path, const std::string& labels_path,
                Site site = Site::here());
// Writes plain idx files. Each file appears complete or not at all. Throws IoError.
void write_idx(const Digits& digits, const std::string& images_path, const std::string& labels_path,
               Site site = Site::here());

}  // namespace flow::data

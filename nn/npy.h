// NumPy's files, interchangeable with Python's: .npy holds one array, .npz a zip archive of them.
#pragma once

#include <string>

#include "nn/module.h"

namespace flow::nn {

// Writes a local or global (gathered) tensor as numpy.save does. NumPy has no bfloat16:
// Unsupported. The file appears whole or not at all, as with save_safetensors.
//   save_npy("x.npy", x);   // numpy.load("x.npy")
void save_npy(const std::string& path, const Tensor& x);

// Reads a local CPU tensor: formats 1.0, 2.0 and 3.0, either byte order, C or Fortran order (the
// result is contiguous). The file is not trusted: sizes are checked before memory is allocated and
// nothing in it is evaluated. IoError names path and what is wrong; Unsupported an element type
// that the library lacks (16-bit integers, wide unsigned ones, complex, text, objects).
Tensor load_npy(const std::string& path);

struct NpzOptions {
  bool compressed = false;  // as numpy.savez_compressed
};

// Equal tensors give equal bytes.
void save_npz(const std::string& path, const StateDict& tensors, const NpzOptions& options = {});

// Names come without ".npy". Stored and deflated members of plain and 64-bit archives; checksums
// are compared. Members that overlap or claim more than they can hold are refused.
StateDict load_npz(const std::string& path);

}  // namespace flow::nn

// NumPy's file formats, compatible with Python: an .npy file holds one array, an .npz file is a zip
// archive of .npy files.
#pragma once

#include <string>

#include "nn/module.h"

namespace flow::nn {

// Writes a tensor, local or global (gathered; the call is then collective), in the format of
// numpy.save. A bfloat16 tensor is Unsupported, because NumPy has no such type. The file appears
// complete or not at all. Throws IoError.
//   save_npy("x.npy", x);   // numpy.load("x.npy")
void save_npy(const std::string& path, const Tensor& x, Site site = Site::here());

// Reads an array as a local CPU tensor. Supports formats 1.0, 2.0 and 3.0, both byte orders, and C
// and Fortran order (the result is contiguous). The file is not trusted: sizes are checked before
// memory is allocated, and nothing in it is evaluated. Throws IoError, naming the path and the
// defect; Unsupported for an element type that the library does not have (unsigned integers of 16
// bits and more, wide unsigned integers, complex numbers, text, objects).
Tensor load_npy(const std::string& path, Site site = Site::here());

struct NpzOptions {
  bool compressed = false;  // compress the members, as numpy.savez_compressed does
};

// Writes each tensor as the member NAME.npy. Equal tensors give equal bytes. Throws as save_npy.
void save_npz(const std::string& path, const StateDict& tensors, const NpzOptions& options = {},
              Site site = Site::here());

// Reads all members; names in the result lack ".npy". Members may be stored or deflated, in plain
// or 64-bit archives. Checksums are verified. Members that overlap, or claim more bytes than they
// can contain, are refused. Throws as load_npy.
StateDict load_npz(const std::string& path, Site site = Site::here());

}  // namespace flow::nn

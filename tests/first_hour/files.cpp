// Tensors from and to files that Python reads and writes.
#include <fstream>

#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

int main() {
  // What numpy.save writes for [[1, 2, 3], [4, 5, 6]] in float32.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + '\n';
  std::ofstream npy("array.npy", std::ios::binary);
  npy << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header;
  for (const float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f})
    npy.write(reinterpret_cast<const char*>(&value), sizeof value);
  npy.close();
  expect_near(nn::load_npy("array.npy"), {1, 2, 3, 4, 5, 6}, "the array of numpy");

  const flow::Tensor x = flow::arange(4, {.dtype = flow::int64}).reshape({2, 2});
  nn::save_npy("x.npy", x);
  expect(flow::equal(nn::load_npy("x.npy"), x), "npy gives back what was saved");
  nn::save_npz("both.npz", {{"x", x}, {"y", flow::ones({3})}}, {.compressed = true});
  expect(nn::load_npz("both.npz").at("x").dtype() == flow::int64, "npz keeps names and dtypes");

  // What safetensors.torch.save_file writes for {"w": [0.5, -1]}.
  const std::string json = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::ofstream file("w.safetensors", std::ios::binary);
  const uint64_t size = json.size();
  const float values[] = {0.5f, -1.f};
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << json;
  file.write(reinterpret_cast<const char*>(values), sizeof values);
  file.close();
  expect_near(nn::load_safetensors("w.safetensors").at("w"), {0.5, -1}, "the weights of Python");

  nn::Sequential model(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  nn::save_safetensors("model.safetensors", model.state_dict());
  nn::Sequential other(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  other.load_state_dict(nn::load_safetensors("model.safetensors"));
  const flow::Tensor in = flow::ones({1, 3});
  expect(flow::equal(model(in), other(in)), "the loaded model is the saved one");

  try {
    nn::load_safetensors("missing.safetensors");
    throw std::runtime_error("no error");
  } catch (const flow::IoError& error) {
    expect(std::string(error.what()).find("missing.safetensors") != std::string::npos,
           "the error names the file");
  }
}

#include "nn/npy.h"

#include <array>
#include <cstddef>
#include <span>

#include "core/error.h"
#include "core/strided_twin.h"
#include "nn/file.h"
#include "nn/npy_format.h"
#include "nn/zip.h"

namespace flow::nn {

namespace {

constexpr std::string_view kSuffix = ".npy";

// The logical tensor as a local one in host memory, row-major.
Tensor whole_of(const Tensor& x) {
  const Tensor local = x.is_global() ? x.full() : x;
  return strided_form(local.detach().to("cpu")).contiguous();
}

std::span<const std::byte> elements_of(const Tensor& whole) {
  const size_t bytes = whole.meta().local_bytes();
  if (bytes == 0) return {};
  return {whole.impl().data(), bytes};
}

}  // namespace

void save_npy(const std::string& path, const Tensor& x, Site site) {
  const SiteScope scope(site);
  const std::string header = npy_header(x.dtype(), x.shape());
  const Tensor whole = whole_of(x);
  const std::span<const std::byte> elements = elements_of(whole);
  OutputFile file(path);
  file.write(header.data(), header.size());
  file.write(elements.data(), elements.size());
  file.commit();
}

Tensor load_npy(const std::string& path, Site site) {
  const SiteScope scope(site);
  InputFile file(path);
  return read_npy([&](void* target, size_t bytes) { file.read(target, bytes); }, file.size(), path);
}

void save_npz(const std::string& path, const StateDict& tensors, const NpzOptions& options,
              Site site) {
  const SiteScope scope(site);
  for (const auto& [name, tensor] : tensors)
    npy_header(tensor.dtype(), tensor.shape());  // throws before anything is written
  ZipWriter archive(path);
  for (const auto& [name, tensor] : tensors) {
    const std::string header = npy_header(tensor.dtype(), tensor.shape());
    const Tensor whole = whole_of(tensor);
    const std::array parts{std::as_bytes(std::span(header)), elements_of(whole)};
    archive.add(name + std::string(kSuffix), parts, options.compressed);
  }
  archive.commit();
}

StateDict load_npz(const std::string& path, Site site) {
  const SiteScope scope(site);
  ZipReader archive(path);
  StateDict tensors;
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) {
      throw BadFile(str("[npz] ", path, " contains ", entry.name,
                        ", which is not an .npy array; remove it from the archive"));
    }
    archive.open(entry);
    const Tensor tensor = read_npy([&](void* target, size_t bytes) { archive.read(target, bytes); },
                                   entry.bytes, str(path, "(", entry.name, ")"));
    archive.close();
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!tensors.emplace(name, tensor).second) {
      throw BadFile(str("[npz] ", path, " has two arrays named ", name,
                        "; write it again with distinct names"));
    }
  }
  return tensors;
}

}  // namespace flow::nn

#include "nn/safetensors.h"

#include "core/context.h"
#include "core/strided_twin.h"
#include "nn/safetensors_index.h"

namespace flow::nn {

void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata,
                      Site site) {
  const SiteScope scope(site);
  std::vector<Tensor> whole;
  std::vector<SafetensorsData> entries;
  for (const auto& [name, tensor] : tensors) {
    const Tensor local = tensor.is_global() ? tensor.full() : tensor;
    whole.push_back(strided_form(local.detach().to("cpu")).contiguous());
    entries.push_back({name, tensor.dtype(), tensor.shape(), whole.back().impl().data()});
  }
  write_safetensors(path, entries, metadata);
}

StateDict load_safetensors(const std::string& path, Metadata* metadata, Site site) {
  const SiteScope scope(site);
  InputFile file(path);
  StateDict tensors;
  for (const SafetensorsEntry& entry : read_safetensors_index(file, path, metadata)) {
    const MetaPtr meta = local_meta(entry.shape, entry.dtype, DeviceType::kCpu);
    Ref<Storage> storage =
        Storage::allocate(thread_state().context->allocator(), meta->local_bytes());
    file.read_at(entry.begin, storage->data(), meta->local_bytes());
    tensors.emplace(entry.name, Tensor::make(meta, std::move(storage)));
  }
  return tensors;
}

}  // namespace flow::nn

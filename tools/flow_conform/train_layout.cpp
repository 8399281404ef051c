#include "tools/flow_conform/train_layout.h"

#include <charconv>
#include <numeric>
#include <sstream>

#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/tensor_meta.h"
#include "ops/slice.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

namespace {

// N of "dpN", after the letters of `kind`.
int64_t count_in(const std::string& word, std::string_view kind) {
  int64_t count = 0;
  const char* end = word.data() + word.size();
  const auto [stop, status] = std::from_chars(word.data() + kind.size(), end, count);
  if (status != std::errc() || stop != end || count < 1) throw NotSupported("layout " + word);
  return count;
}

bool has_part(const std::string& name, const std::string& part) {
  return name.find(part) != std::string::npos;
}

// The dim a parameter is split along over tensor-parallel ranks; -1: whole everywhere. Columns
// follow rows, so that what lies between them stays split.
int64_t split_dim(const std::string& name) {
  const bool is_weight = name.ends_with(".weight");
  for (const char* rows :
       {"fc1.", "fc3.", "fc5.", "hidden.", ".c_q.", ".c_k.", ".c_v.", ".c_fc."}) {
    if (has_part(name, rows)) return 0;
  }
  for (const char* columns : {"fc2.", "fc4.", "fc6.", "outlayer.", ".c_proj.", "classifier."}) {
    if (has_part(name, columns)) return is_weight ? 1 : -1;
  }
  return -1;
}

}  // namespace

TrainLayout::TrainLayout(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, '+');) {
    if (word.starts_with("dp")) {
      data_ = count_in(word, "dp");
    } else if (word.starts_with("ddp")) {
      data_ = count_in(word, "ddp");
      has_replicas_ = true;
    } else if (word.starts_with("tp")) {
      tensor_ = count_in(word, "tp");
    } else if (word == "zero1") {
      shards_state_ = true;
    } else {
      throw NotSupported("layout " + word);
    }
  }
  if (text.empty()) return;
  if (has_replicas_ && text.find('+') != std::string::npos) {
    throw NotSupported("layout " + text + ", as ddp trains local tensors");
  }
  if (data_ * tensor_ != env::world_size()) {
    throw BadSpec(
        str("layout ", text, " takes ", data_ * tensor_, " ranks; there are ", env::world_size()));
  }
  if (has_replicas_) return;
  Shape shape;
  if (data_ > 1 || tensor_ == 1) shape.push_back(data_);
  if (tensor_ > 1) shape.push_back(tensor_);
  std::vector<int64_t> ranks(static_cast<size_t>(data_ * tensor_));
  std::iota(ranks.begin(), ranks.end(), 0);
  placement_ = Placement(DeviceType::kCpu, shape, ranks);
}

NdSbp TrainLayout::nd_sbp(Sbp data, Sbp tensor) const {
  NdSbp nd_sbp;
  if (data_ > 1 || tensor_ == 1) nd_sbp.push_back(data);
  if (tensor_ > 1) nd_sbp.push_back(tensor);
  return nd_sbp;
}

void TrainLayout::lay_out(nn::ModuleBase& model) const {
  if (!is_global()) return;
  nn::SbpPatterns patterns;
  for (const auto& [name, value] : model.named_parameters()) {
    const int64_t dim = split_dim(name);
    const Sbp tensor = dim < 0 ? sbp::broadcast : sbp::split(dim);
    patterns.emplace_back(name, nd_sbp(sbp::broadcast, tensor));
  }
  for (const auto& [name, value] : model.named_buffers())
    patterns.emplace_back(name, nd_sbp(sbp::broadcast, sbp::broadcast));
  model.to_global(placement_, patterns);
}

Tensor TrainLayout::rows(const Tensor& batch) const {
  if (has_replicas_) {
    const Range own = balanced_part(batch.size(0), data_, env::rank());
    return slice(batch, 0, own.begin, own.begin + own.size);
  }
  if (!is_global()) return batch;
  return batch.to_global({.placement = placement_, .sbp = nd_sbp(sbp::broadcast, sbp::broadcast)})
      .to_global({.sbp = nd_sbp(sbp::split(0), sbp::broadcast)});
}

}  // namespace flow::conform

// Modules on many ranks: to_global and the table of layouts.
#include <algorithm>
#include <iomanip>
#include <sstream>

#include <fnmatch.h>

#include "boxing/layout.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/layout.h"
#include "nn/module.h"

namespace flow::nn {

namespace {

struct LaidOut {
  std::string name;
  Tensor tensor;
  NdSbp sbp;
};

NamedTensors all_tensors(const ModuleBase& module) {
  NamedTensors all = module.named_parameters();
  const NamedTensors buffers = module.named_buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

void check(const LaidOut& item, const Placement& placement, Site site) {
  try {
    boxing::check_layout({placement, item.sbp}, item.tensor.shape(), env::world_size(),
                         "to_global");
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(str(error.message(), "; this is the layout of ", item.name), site);
  }
  if (std::any_of(item.sbp.begin(), item.sbp.end(), [](Sbp entry) { return entry.is_partial(); })) {
    throw InvalidArgument(str("[to_global] ", item.name, " cannot have the layout ", item.sbp,
                              "; use split or broadcast for parameters and buffers"),
                          site);
  }
}

void lay_out(const std::vector<LaidOut>& items, const Placement& placement, Site site) {
  for (const LaidOut& item : items)
    check(item, placement, site);
  const NoGradGuard no_grad;
  for (const LaidOut& item : items) {
    const Tensor grad = item.tensor.grad();
    item.tensor.set_data(laid_out(item.tensor.detach(), placement, item.sbp, site));
    if (grad.defined()) item.tensor.set_grad(laid_out(grad, placement, item.sbp, site));
  }
}

}  // namespace

void ModuleBase::to_global(const ToGlobalOptions& options, Site site) {
  if (!options.grad_sbp.empty()) {
    throw InvalidArgument(
        str("[to_global] a gradient always has the layout of its parameter; received grad_sbp ",
            options.grad_sbp, "; leave it out"),
        site);
  }
  std::vector<LaidOut> items;
  Placement placement = options.placement;
  for (const auto& [name, tensor] : all_tensors(*this)) {
    if (!tensor.is_global() && (!options.placement.defined() || options.sbp.empty())) {
      throw InvalidArgument(str("[to_global] ", name,
                                " is local, so a placement and an sbp are required; call "
                                "to_global({.placement, .sbp})"),
                            site);
    }
    if (!placement.defined()) placement = tensor.placement();
    if (!options.placement.defined() && tensor.placement() != placement) {
      throw InvalidArgument(
          str("[to_global] the tensors of the module are on different placements: ", name,
              " is on ", tensor.placement(), ", others are on ", placement, "; give a placement"),
          site);
    }
    items.push_back({name, tensor, options.sbp.empty() ? tensor.sbp() : options.sbp});
  }
  lay_out(items, placement, site);
}

void ModuleBase::to_global(const Placement& placement, const NdSbp& sbp, Site site) {
  to_global({.placement = placement, .sbp = sbp}, site);
}

void ModuleBase::to_global(const Placement& placement, const SbpPatterns& patterns, Site site) {
  std::vector<LaidOut> items;
  std::vector<bool> has_matched(patterns.size(), false);
  for (const auto& [name, tensor] : all_tensors(*this)) {
    const NdSbp* layout = nullptr;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (fnmatch(patterns[i].first.c_str(), name.c_str(), 0) != 0) continue;
      has_matched[i] = true;
      if (layout == nullptr) layout = &patterns[i].second;
    }
    if (layout == nullptr) {
      throw InvalidArgument(str("[to_global] no pattern matches ", name,
                                "; add {\"*\", sbp::broadcast} at the end of the list"),
                            site);
    }
    items.push_back({name, tensor, *layout});
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (has_matched[i]) continue;
    std::string names;
    for (const LaidOut& item : items)
      names += str("\n  ", item.name);
    throw InvalidArgument(str("[to_global] the pattern ", patterns[i].first,
                              " matches no parameter or buffer; the names are:", names),
                          site);
  }
  lay_out(items, placement, site);
}

std::string ModuleBase::layout_table() const {
  const NamedTensors all = all_tensors(*this);
  size_t width = 0;
  for (const auto& [name, tensor] : all)
    width = std::max(width, name.size());
  std::ostringstream out;
  int64_t elements = 0;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : all) {
    const TensorMeta& meta = tensor.meta();
    const auto held = meta.is_held ? static_cast<int64_t>(meta.local_bytes()) : 0;
    elements += tensor.numel();
    bytes += held;
    out << std::left << std::setw(static_cast<int>(width)) << name << "  " << meta.dtype << ' '
        << meta.shape << "  ";
    if (meta.is_global()) {
      out << meta.nd_sbp << " on " << meta.placement;
    } else {
      out << "local";
    }
    out << "  " << held << " bytes\n";
  }
  out << elements << " elements, " << bytes << " bytes on rank " << env::rank() << '\n';
  return out.str();
}

}  // namespace flow::nn

// Sampling of classes. Each part draws only for its classes, so ranks share the work.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "ops/kernel/box_copy.h"
#include "ops/loss/partial_fc_op.h"
#include "ops/random/draw_runs.h"

#include "ops/kernel/isa_begin.h"

void register_partial_fc_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// The parts whose classes are in `held`: the first, and one past the last.
Range parts_inside(const SampledParts& attrs, const Range& held) {
  Range parts{0, 0};
  for (int64_t p = 0; p < attrs.num_parts; ++p) {
    const Range classes = balanced_part(attrs.num_rows, attrs.num_parts, p);
    if (classes.begin < held.begin) ++parts.begin;
    const bool is_inside =
        classes.begin >= held.begin && classes.begin + classes.size <= held.begin + held.size;
    if (is_inside) ++parts.size;
  }
  return parts;
}

Range sample_range(const SampledParts& attrs, const Range& parts) {
  if (parts.size == 0) return {};
  const Range first = balanced_part(attrs.num_sample, attrs.num_parts, parts.begin);
  const Range last = balanced_part(attrs.num_sample, attrs.num_parts, parts.begin + parts.size - 1);
  return {first.begin, last.begin + last.size - first.begin};
}

std::vector<int64_t> read_labels(const TensorView& label, int64_t num_classes) {
  std::vector<int64_t> labels(static_cast<size_t>(label.numel()));
  for (int64_t i = 0; i < label.numel(); ++i) {
    const int64_t at = i * label.strides()[0];
    const int64_t value =
        label.meta->dtype == DType::kInt64 ? label.as<int64_t>()[at] : label.as<int32_t>()[at];
    if (value < 0 || value >= num_classes) {
      throw InvalidArgument(str("[distributed_partial_fc_sample] label ", value, " is none of the ",
                                num_classes, " classes; received labels ", *label.meta,
                                "; count them from 0"));
    }
    labels[static_cast<size_t>(i)] = value;
  }
  return labels;
}

// The draws of classes [begin, begin + size).
std::vector<uint32_t> draw_classes(const RandomStream& random, const Range& classes) {
  std::vector<uint32_t> draws(static_cast<size_t>(classes.size));
  std::array<uint32_t, kDrawLanes> lanes;
  constexpr auto kLanes = static_cast<int64_t>(kDrawLanes);
  for (int64_t group = classes.begin / kLanes; group * kLanes < classes.begin + classes.size;
       ++group) {
    philox_group(random, static_cast<uint64_t>(group * kDrawBlocks), lanes.data());
    const int64_t begin = std::max(classes.begin, group * kLanes);
    const int64_t end = std::min(classes.begin + classes.size, (group + 1) * kLanes);
    std::copy(lanes.begin() + (begin - group * kLanes), lanes.begin() + (end - group * kLanes),
              draws.begin() + (begin - classes.begin));
  }
  return draws;
}

// Encodes class `offset` of a part as a number by which classes are taken in ascending order:
// classes that occur first, then by draw, then by class.
constexpr int kOffsetBits = 31;

uint64_t rank_of(bool occurs, uint32_t draw, int64_t offset) {
  const uint64_t order = occurs ? 0 : uint64_t{draw} + 1;
  return order << kOffsetBits | static_cast<uint64_t>(offset);
}

// The `count` classes taken from a part, ascending.
std::vector<int64_t> sample_part(const RandomStream& random, const Range& classes, int64_t count,
                                 const std::vector<int64_t>& labels) {
  std::vector<bool> occurs(static_cast<size_t>(classes.size));
  for (const int64_t label : labels) {
    if (label >= classes.begin && label < classes.begin + classes.size)
      occurs[static_cast<size_t>(label - classes.begin)] = true;
  }
  const auto wanted = std::count(occurs.begin(), occurs.end(), true);
  if (wanted > count) {
    throw InvalidArgument(str("[distributed_partial_fc_sample] ", wanted, " of the classes ",
                              classes.begin, " to ", classes.begin + classes.size - 1,
                              " occur in the labels, but their share of the sample is ", count,
                              "; raise num_sample"));
  }
  const std::vector<uint32_t> draws = draw_classes(random, classes);
  std::vector<uint64_t> ranks(draws.size());
  for (size_t c = 0; c < draws.size(); ++c)
    ranks[c] = rank_of(occurs[c], draws[c], static_cast<int64_t>(c));
  std::nth_element(ranks.begin(), ranks.begin() + (count - 1), ranks.end());
  std::vector<int64_t> sample(static_cast<size_t>(count));
  constexpr uint64_t kOffsets = (uint64_t{1} << kOffsetBits) - 1;
  for (size_t i = 0; i < sample.size(); ++i)
    sample[i] = classes.begin + static_cast<int64_t>(ranks[i] & kOffsets);
  std::sort(sample.begin(), sample.end());
  return sample;
}

template <class T>
void write(const TensorView& target, const std::vector<int64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    target.as<T>()[i] = static_cast<T>(values[i]);
}

void sample(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SampledParts>();
  const std::vector<int64_t> labels = read_labels(ctx.in(1), attrs.num_rows);
  const Range parts = parts_inside(attrs, local_range(*ctx.in(0).meta, 0));
  const int64_t first = sample_range(attrs, parts).begin;
  std::vector<int64_t> sampled;
  for (int64_t p = parts.begin; p < parts.begin + parts.size; ++p) {
    const std::vector<int64_t> own =
        sample_part(ctx.random, balanced_part(attrs.num_rows, attrs.num_parts, p),
                    balanced_part(attrs.num_sample, attrs.num_parts, p).size, labels);
    sampled.insert(sampled.end(), own.begin(), own.end());
  }
  std::vector<int64_t> mapped(labels.size(), 0);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto found = std::lower_bound(sampled.begin(), sampled.end(), labels[i]);
    if (found != sampled.end() && *found == labels[i])
      mapped[i] = first + (found - sampled.begin());
  }
  const bool is_wide = ctx.out(0).meta->dtype == DType::kInt64;
  is_wide ? write<int64_t>(ctx.out(0), mapped) : write<int32_t>(ctx.out(0), mapped);
  is_wide ? write<int64_t>(ctx.out(1), sampled) : write<int32_t>(ctx.out(1), sampled);
}

// Accepts parts of one rank that belong together: whole parts of the classes, their sample, and all
// labels.
KernelChoice select_sample(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<SampledParts>();
  if (attrs.num_rows / attrs.num_parts >= int64_t{1} << kOffsetBits) return {};
  const Range held = local_range(query.input(0), 0);
  const Range parts = parts_inside(attrs, held);
  int64_t classes = 0;
  for (int64_t p = parts.begin; p < parts.begin + parts.size; ++p)
    classes += balanced_part(attrs.num_rows, attrs.num_parts, p).size;
  const Range own = local_range(query.output(1), 0);
  const bool fits = classes == held.size && own.size == sample_range(attrs, parts).size &&
                    (own.size == 0 || own.begin == sample_range(attrs, parts).begin) &&
                    query.input(1).local_numel == query.input(1).numel &&
                    query.output(0).local_numel == query.output(0).numel;
  return fits ? KernelChoice{sample} : KernelChoice{};
}

}  // namespace

void register_partial_fc_cpu(KernelTable& table) {
  table.add(kPartialFcSample, DeviceType::kCpu, {"reference", select_sample});
}

#else

void register_partial_fc_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"

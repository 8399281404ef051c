#include "graph/program/positional_parts.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "graph/ir/place.h"

namespace flow::graph {

namespace {

// One of `parts` balanced parts into which time divides a rank's shard.
struct TimeShard {
  int64_t parts = 1;
  std::vector<int64_t> index = {};  // of the part, by micro-batch
};

class PositionalNode {
 public:
  PositionalNode(ProgramBuilder& builder, PartBuffers& buffers, const Node& node,
                 const std::vector<Sbp>& input_sbp, const std::vector<BufferId>& inputs, int64_t m)
      : builder_(builder),
        buffers_(buffers),
        node_(node),
        input_sbp_(input_sbp),
        inputs_(inputs),
        micro_batch_(m),
        results_(node.outputs.size(), kNoBuffer) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (input_sbp[i].is_split()) split_.push_back({node.inputs[i], input_sbp[i].dim()});
    }
    for (const ValueId id : node.outputs) {
      const Sbp& sbp = buffers.sbp_of(id);
      if (sbp.is_split()) split_.push_back({id, sbp.dim()});
    }
    for (const auto& [id, dim] : split_)
      num_units_ = std::gcd(num_units_, held(id, dim));
  }

  std::vector<BufferId> add() {
    const std::vector<TimedPiece> pieces = even_pieces();
    for (const TimedPiece& piece : pieces)
      add_piece(piece, pieces.size() == 1);
    if (pieces.empty()) add_empty();
    return std::move(results_);
  }

 private:
  struct SplitValue {
    ValueId id;
    int64_t dim;
  };

  // Units of the micro-batch that are one of equal parts of the rank's shard.
  struct TimedPiece {
    int64_t in_part = 0;
    TimeShard shard;
  };

  [[noreturn]] void refuse(const std::string& reason) const {
    throw_at<Unsupported>(node_,
                          str("[micro-batch] ", node_.op->name, " at ", node_.file, ":", node_.line,
                              " depends on the positions of samples in the batch, ", reason));
  }

  // The elements of the value that this rank has of all micro-batches, along the dim.
  int64_t held(ValueId id, int64_t dim) const { return buffers_.whole_meta(id)->local_shape[dim]; }

  // All values consist of the same number of units. Each unit belongs to one micro-batch.
  int64_t rows_of_unit(ValueId id, int64_t dim) const {
    return num_units_ == 0 ? 0 : held(id, dim) / num_units_;
  }

  // The units of a micro-batch.
  std::vector<Piece> pieces(int64_t micro_batch) const {
    std::vector<Piece> common;
    for (size_t i = 0; i < split_.size(); ++i) {
      const auto& [id, dim] = split_[i];
      const int64_t rows = rows_of_unit(id, dim);
      std::vector<Piece> own = buffers_.pieces(id, sbp::split(dim), micro_batch);
      bool is_known = true;
      for (Piece& piece : own) {
        is_known &= piece.in_whole % rows == 0 && piece.size % rows == 0;
        piece = {piece.in_whole / rows, piece.in_part / rows, piece.size / rows};
      }
      if (i == 0) common = own;
      if (!is_known || own != common) {
        refuse("and its tensors have different samples on a rank; give all of them one layout");
      }
    }
    return common;
  }

  // The same, cut so that each piece is one of equal parts of the rank's shard in every micro-batch
  // of this size.
  std::vector<TimedPiece> even_pieces() const {
    std::vector<TimedPiece> even;
    const std::vector<Piece> own = pieces(micro_batch_);
    for (size_t k = 0; k < own.size(); ++k) {
      const std::vector<int64_t> begins =
          buffers_.by_micro_batch(micro_batch_, [&](int64_t i) { return pieces(i)[k].in_whole; });
      int64_t size = std::gcd(num_units_, own[k].size);
      for (const int64_t begin : begins)
        size = std::gcd(size, begin);
      for (int64_t at = 0; at < own[k].size; at += size) {
        const auto index = [&](int64_t i) { return (begins[static_cast<size_t>(i)] + at) / size; };
        even.push_back({own[k].in_part + at,
                        {num_units_ / size, buffers_.by_micro_batch(micro_batch_, index)}});
      }
    }
    return even;
  }

  // The meta of the elements of a value that this rank has and, of those, the shard in time has.
  MetaPtr timed_meta(ValueId id, const Sbp& sbp, const TimeShard& shard) const {
    const Value& value = buffers_.value(id);
    std::vector<int64_t> ranks(1, buffers_.rank());
    Shape arrangement{1};
    NdSbp nd_sbp = sbp::broadcast;
    if (value.placement.defined()) {
      ranks = value.placement.ranks();
      arrangement = value.placement.shape();
      nd_sbp = value.nd_sbp;
    }
    if (nd_sbp.size() == NdSbp::kMaxAxes) {
      refuse(
          str("which a placement of ", nd_sbp.size(), " axes does not support; use one axis less"));
    }
    std::vector<int64_t> in_time;
    for (const int64_t of_space : ranks) {
      for (int64_t t = 0; t < shard.parts; ++t)
        in_time.push_back(of_space * shard.parts + t);
    }
    arrangement.push_back(shard.parts);
    nd_sbp.push_back(sbp);
    return global_meta(value.shape, value.dtype, Placement(value.device, arrangement, in_time),
                       nd_sbp, holder_in(shard, micro_batch_));
  }

  int64_t holder_in(const TimeShard& shard, int64_t micro_batch) const {
    return buffers_.rank() * shard.parts + shard.index[static_cast<size_t>(micro_batch)];
  }

  // The table of the ranks, in time, that hold the shard; none if all micro-batches of this size
  // have one.
  TableId holders_of(const TimeShard& shard) {
    std::vector<int64_t> holders =
        buffers_.by_micro_batch(micro_batch_, [&](int64_t i) { return holder_in(shard, i); });
    const auto first = static_cast<size_t>(micro_batch_);
    const bool is_alone =
        first + 1 == holders.size() || holder_in(shard, micro_batch_ + 1) == holders[first];
    return is_alone ? kNoTable : builder_.add_table(std::move(holders));
  }

  // The whole buffer under another meta of the same local shape.
  BufferId view_of(BufferId buffer, MetaPtr meta) {
    const BufferId plain = builder_.strided(buffer);
    return builder_.add_view(plain, with_strides(meta, builder_.buffer(plain).meta->strides), 0);
  }

  std::vector<BufferId> add_kernel(int64_t in_part, const TimeShard& shard) {
    const TableId holders = holders_of(shard);
    std::vector<BufferId> parts;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == kNoBuffer) {
        parts.push_back(kNoBuffer);
        continue;
      }
      const ValueId id = node_.inputs[i];
      const Sbp& sbp = input_sbp_[i];
      const MetaPtr meta = timed_meta(id, sbp, shard);
      parts.push_back(sbp.is_split() ? buffers_.rows(inputs_[i], meta, sbp.dim(),
                                                     in_part * rows_of_unit(id, sbp.dim()))
                                     : view_of(inputs_[i], meta));
      builder_.set_holders(parts.back(), holders);
    }
    std::vector<MetaPtr> metas;
    for (const ValueId id : node_.outputs)
      metas.push_back(timed_meta(id, buffers_.sbp_of(id), shard));
    const bool draws_globally = buffers_.value(node_.outputs[0]).placement.defined();
    std::vector<BufferId> outputs = builder_.add_node(node_, parts, metas, draws_globally);
    for (const BufferId output : outputs)
      builder_.set_holders(output, holders);
    return outputs;
  }

  void add_piece(const TimedPiece& piece, bool is_only) {
    const std::vector<BufferId> outputs = add_kernel(piece.in_part, piece.shard);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId id = node_.outputs[i];
      const Sbp& sbp = buffers_.sbp_of(id);
      BufferId& result = results_[i];
      if (is_only || (sbp.is_partial() && result == kNoBuffer)) {
        result = view_of(outputs[i], buffers_.part_meta(id, micro_batch_));
      } else if (sbp.is_partial()) {
        builder_.add_sum(outputs[i], result);
      } else {
        if (result == kNoBuffer) result = builder_.add_buffer(buffers_.part_meta(id, micro_batch_));
        const MetaPtr plain = local_part(builder_.buffer(outputs[i]).meta);
        builder_.add_copy(outputs[i], buffers_.rows(result, plain, sbp.dim(),
                                                    piece.in_part * rows_of_unit(id, sbp.dim())));
      }
    }
  }

  // This rank has no samples of the micro-batch: sums still need an addend, which the kernel makes
  // of a part without elements.
  void add_empty() {
    const auto is_sum = [&](ValueId id) { return buffers_.sbp_of(id).is_partial(); };
    if (std::any_of(node_.outputs.begin(), node_.outputs.end(), is_sum)) {
      TimeShard last;
      for (const auto& [id, dim] : split_)
        last.parts = std::max(last.parts, held(id, dim) + 1);
      last.index = buffers_.by_micro_batch(micro_batch_, [&](int64_t) { return last.parts - 1; });
      add_piece({0, last}, true);
      return;
    }
    for (size_t i = 0; i < results_.size(); ++i)
      results_[i] = builder_.add_buffer(buffers_.part_meta(node_.outputs[i], micro_batch_));
  }

  ProgramBuilder& builder_;
  PartBuffers& buffers_;
  const Node& node_;
  const std::vector<Sbp>& input_sbp_;
  const std::vector<BufferId>& inputs_;
  int64_t micro_batch_;
  std::vector<SplitValue> split_;  // inputs and outputs of which a micro-batch has a part
  int64_t num_units_ = 0;
  std::vector<BufferId> results_;
};

}  // namespace

std::vector<BufferId> add_positional(ProgramBuilder& builder, PartBuffers& buffers,
                                     const Node& node, const std::vector<Sbp>& input_sbp,
                                     const std::vector<BufferId>& inputs, int64_t m) {
  return PositionalNode(builder, buffers, node, input_sbp, inputs, m).add();
}

}  // namespace flow::graph

// Layout of a saved plan: the magic word, the checksum of what follows, the version and the facts
// of its key. Then follow tables of texts, placements, values and routes, which the graph and the
// programs refer to by number, then the graph, the passes, the programs and the certificate.
#include "graph/plan_file/plan_writer.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "graph/plan_file/plan_bytes.h"

namespace flow::graph {

namespace {

void write(ByteWriter& out, const Shape& shape) {
  out.integer(shape.size());
  for (const int64_t size : shape)
    out.integer(size);
}

void write(ByteWriter& out, const NdSbp& nd_sbp) {
  out.integer(nd_sbp.size());
  for (const Sbp& sbp : nd_sbp) {
    out.integer(static_cast<int64_t>(sbp.kind()));
    out.integer(sbp.dim());
  }
}

void write(ByteWriter& out, const std::vector<int32_t>& ids) {
  out.integer(static_cast<int64_t>(ids.size()));
  for (const int32_t id : ids)
    out.integer(id);
}

class PlanWriter {
 public:
  std::string write(const CompiledArtifact& step, const PlanKey& key) {
    write_graph(step.graph);
    body_.integer(static_cast<int64_t>(step.passes.size()));
    for (const PassResult& pass : step.passes) {
      body_.integer(text(pass.name));
      body_.integer(pass.changes);
    }
    write_programs(step.programs);
    body_.integer(step.certificate.rank_kind.num_threads);
    body_.integer(step.certificate.rank_kind.shares_memory ? 1 : 0);
    for (const RankCertificate& rank : step.certificate.ranks)
      write_rank(rank);

    ByteWriter content;
    content.integer(internal::kPlanVersion);
    content.integer(static_cast<int64_t>(key.facts.size()));
    for (const auto& [name, value] : key.facts) {
      content.text(name);
      content.text(value);
    }
    write_tables(content);
    std::string bytes = content.bytes() + body_.bytes();
    ByteWriter head;
    head.fixed(internal::plan_checksum(bytes));
    return std::string(internal::kPlanMagic) + head.bytes() + bytes;
  }

 private:
  // ---- tables

  int64_t text(std::string_view value) {
    const auto [found, is_new] =
        texts_.try_emplace(std::string(value), static_cast<int64_t>(text_list_.size()));
    if (is_new) text_list_.push_back(&found->first);
    return found->second;
  }

  int64_t placement(const Placement& value) {
    if (!value.defined()) return -1;
    const auto [found, is_new] =
        placements_.try_emplace(value.id(), static_cast<int64_t>(placement_list_.size()));
    if (is_new) placement_list_.push_back(value);
    return found->second;
  }

  // A value as the meta that belongs to no particular rank.
  int64_t value(const Value& value) {
    ByteWriter out;
    graph::write(out, value.shape);
    out.integer(static_cast<int64_t>(value.dtype));
    out.integer(static_cast<int64_t>(value.device));
    out.integer(placement(value.placement));
    graph::write(out, value.nd_sbp);
    return entry(values_, out.bytes());
  }

  int64_t route(const boxing::Route& plan) {
    ByteWriter out;
    const auto layout = [&](const boxing::Layout& it) {
      out.integer(placement(it.placement));
      graph::write(out, it.nd_sbp);
    };
    graph::write(out, plan.shape);
    out.integer(static_cast<int64_t>(plan.dtype));
    layout(plan.from);
    layout(plan.to);
    out.integer(static_cast<int64_t>(plan.steps.size()));
    for (const boxing::RouteStep& step : plan.steps) {
      out.integer(static_cast<int64_t>(step.kind));
      layout(step.from);
      layout(step.to);
      out.integer(step.axes);
      out.integer(step.takes_first ? 1 : 0);
      out.integer(step.is_mean ? 1 : 0);
      out.real(step.bytes);
      out.real(step.time_us);
    }
    return entry(routes_, out.bytes());
  }

  struct Table {
    std::map<std::string, int64_t> entries = {};
    std::vector<const std::string*> list = {};
  };

  static int64_t entry(Table& table, const std::string& bytes) {
    const auto [found, is_new] =
        table.entries.try_emplace(bytes, static_cast<int64_t>(table.list.size()));
    if (is_new) table.list.push_back(&found->first);
    return found->second;
  }

  void write_tables(ByteWriter& out) const {
    out.integer(static_cast<int64_t>(text_list_.size()));
    for (const std::string* value : text_list_)
      out.text(*value);
    out.integer(static_cast<int64_t>(placement_list_.size()));
    for (const Placement& value : placement_list_) {
      out.integer(static_cast<int64_t>(value.device_type()));
      graph::write(out, value.shape());
      for (const int64_t rank : value.ranks())
        out.integer(rank);
    }
    for (const Table* table : {&values_, &routes_}) {
      out.integer(static_cast<int64_t>(table->list.size()));
      for (const std::string* bytes : table->list)
        out.raw(*bytes);
    }
  }

  // ---- the graph

  int64_t attrs(const OpDef& op, const void* raw) {
    return op.attrs == nullptr ? -1 : text(op.attrs->to_string(raw));
  }

  void write_graph(const Graph& graph) {
    body_.integer(static_cast<int64_t>(graph.values.size()));
    for (const Value& it : graph.values)
      body_.integer(value(it));
    body_.integer(static_cast<int64_t>(graph.nodes.size()));
    for (const Node& node : graph.nodes) {
      body_.integer(text(node.op->name));
      body_.integer(attrs(*node.op, node.raw_attrs()));
      graph::write(body_, node.inputs);
      graph::write(body_, node.outputs);
      body_.integer(node.stage);
      body_.integer(static_cast<int64_t>(node.phase));
      body_.integer(node.draw);
      body_.integer(node.is_transient ? 1 : 0);
      body_.integer(static_cast<int64_t>(node.transfer_start));
      body_.integer(node.guard);
      body_.integer(node.overwrites);
      body_.integer(text(node.file));
      body_.integer(node.line);
      body_.integer(text(node.module));
    }
    graph::write(body_, graph.inputs);
    body_.integer(static_cast<int64_t>(graph.captures.size()));
    for (const Capture& capture : graph.captures) {
      body_.integer(capture.initial);
      body_.integer(capture.final_value);
    }
    graph::write(body_, graph.outputs);
    body_.integer(graph.num_draws);
  }

  // ---- programs

  void write_programs(const Programs& programs) {
    std::vector<const Program*> distinct;
    std::vector<int64_t> by_rank;
    for (const auto& program : programs) {
      const auto found = std::find(distinct.begin(), distinct.end(), program.get());
      by_rank.push_back(found - distinct.begin());
      if (found == distinct.end()) distinct.push_back(program.get());
    }
    body_.integer(static_cast<int64_t>(distinct.size()));
    for (const Program* program : distinct)
      write_program(*program);
    body_.integer(static_cast<int64_t>(by_rank.size()));
    for (const int64_t index : by_rank)
      body_.integer(index);
  }

  // The rank whose part a meta is. This is the program's rank, except where parts of micro-batches
  // are numbered as ranks (graph/program/positional_parts.h).
  static int64_t holder_of(const TensorMeta& meta, int64_t rank) {
    if (!meta.is_global()) return rank;
    const auto is_held_by = [&](int64_t other) {
      const MetaPtr part = global_meta(meta.shape, meta.dtype, meta.placement, meta.nd_sbp, other);
      return part->is_held == meta.is_held && part->local_shape == meta.local_shape &&
             part->local_begin == meta.local_begin;
    };
    if (is_held_by(rank)) return rank;
    const std::vector<int64_t>& ranks = meta.placement.ranks();
    const auto found = std::find_if(ranks.begin(), ranks.end(), is_held_by);
    FLOW_ASSERT(found != ranks.end(), "no rank holds ", meta);
    return *found;
  }

  void write_program(const Program& program) {
    body_.integer(program.rank);
    body_.integer(static_cast<int64_t>(program.buffers.size()));
    for (const Buffer& buffer : program.buffers) {
      const TensorMeta& meta = *buffer.meta;
      body_.integer(value(Value::of(meta)));
      body_.integer(holder_of(meta, program.rank));
      const bool is_plain = meta.is_contiguous && meta.blocked == nullptr;
      body_.integer(is_plain ? 0 : meta.blocked == nullptr ? 1 : 2);
      if (meta.blocked != nullptr) {
        body_.integer(text(meta.blocked->name));
        body_.integer(static_cast<int64_t>(meta.blocked->bytes));
      } else if (!is_plain) {
        graph::write(body_, meta.strides);
      }
      body_.integer(buffer.base);
      if (buffer.base != kNoBuffer) {
        body_.integer(buffer.offset);
        body_.integer(buffer.begins);
      }
      body_.integer(buffer.external);
      body_.integer(buffer.arena_offset);
      body_.integer(buffer.frame);
      body_.integer(buffer.is_per_micro_batch ? 1 : 0);
      body_.integer(buffer.holders);
    }
    body_.integer(static_cast<int64_t>(program.steps.size()));
    for (const Step& step : program.steps)
      write_step(step);
    write_runs(program);
    body_.integer(static_cast<int64_t>(program.parts.size()));
    for (const ProgramPart& part : program.parts) {
      body_.integer(static_cast<int64_t>(part.first_run));
      body_.integer(text(part.name));
    }
    graph::write(body_, program.externals);
    body_.integer(program.arena_bytes);
    body_.integer(program.num_draws);
  }

  void write_runs(const Program& program) {
    body_.integer(static_cast<int64_t>(program.blocks.size()));
    for (const Block& block : program.blocks)
      body_.integer(static_cast<int64_t>(block.end_step));
    body_.integer(static_cast<int64_t>(program.runs.size()));
    for (const BlockRun& run : program.runs) {
      body_.integer(run.block);
      body_.integer(run.micro_batch);
      body_.integer(run.is_first ? 1 : 0);
    }
    body_.integer(static_cast<int64_t>(program.tables.size()));
    for (const std::vector<int64_t>& table : program.tables)
      write_numbers(table);
    body_.integer(static_cast<int64_t>(program.frames.size()));
    for (const Frame& frame : program.frames) {
      body_.integer(frame.bytes);
      write_numbers(frame.arena_offsets);
    }
  }

  void write_numbers(const std::vector<int64_t>& numbers) {
    body_.integer(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers)
      body_.integer(number);
  }

  void write_step(const Step& step) {
    body_.integer(static_cast<int64_t>(step.body.index()));
    graph::write(body_, step.inputs);
    graph::write(body_, step.outputs);
    body_.integer(step.guard);
    body_.integer(static_cast<int64_t>(step.turn));
    body_.integer(step.in_background ? 1 : 0);
    std::visit([this](const auto& body) { write_body(body); }, step.body);
    body_.integer(text(step.file));
    body_.integer(step.line);
    body_.integer(text(step.module));
    body_.integer(static_cast<int64_t>(step.phase));
  }

  void write_op_call(const OpCall& call) {
    body_.integer(text(call.op->name));
    body_.integer(attrs(*call.op, call.raw_attrs()));
    body_.integer(static_cast<int64_t>(call.scratch.size()));
    for (const ScratchBlock& block : call.scratch) {
      body_.integer(block.bytes);
      body_.integer(block.parts);
    }
  }

  void write_body(const KernelStep& kernel) {
    write_op_call(kernel.op_call);
    body_.integer(kernel.on_parts ? 1 : 0);
    body_.integer(kernel.draw);
    body_.integer(kernel.draws_globally ? 1 : 0);
  }

  void write_body(const CollectiveStep& collective) {
    write_op_call(collective.op_call);
    body_.integer(route(*collective.route));
  }

  void write_body(const BucketStep& bucket) { body_.integer(route(*bucket.route)); }

  void write_body(const ConvertStep&) {}

  void write_body(const SendStep& send) {
    body_.integer(send.peer);
    body_.integer(send.tag);
  }

  void write_body(const ReceiveStep& receive) {
    body_.integer(receive.peer);
    body_.integer(receive.tag);
  }

  void write_body(const WaitStep& wait) { body_.integer(static_cast<int64_t>(wait.started)); }

  void write_rank(const RankCertificate& rank) {
    body_.integer(rank.rank);
    body_.integer(rank.arena_bytes);
    body_.integer(rank.peak_bytes);
    body_.integer(text(rank.peak_at));
    body_.integer(rank.scratch_bytes);
    body_.integer(text(rank.scratch_at));
    body_.integer(rank.num_collectives);
    body_.integer(rank.num_messages);
    body_.integer(rank.longest_queue);
  }

  ByteWriter body_;
  std::map<std::string, int64_t> texts_;
  std::vector<const std::string*> text_list_;
  std::map<const void*, int64_t> placements_;
  std::vector<Placement> placement_list_;
  Table values_;
  Table routes_;
};

}  // namespace

std::string to_bytes(const CompiledArtifact& step, const PlanKey& key) {
  return PlanWriter().write(step, key);
}

}  // namespace flow::graph

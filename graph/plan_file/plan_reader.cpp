#include "graph/plan_file/plan_reader.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "graph/plan_file/plan_bytes.h"
#include "graph/plan_file/plan_check.h"

namespace flow::graph {

namespace {

constexpr int64_t kMaxNumber = int64_t{1} << 48;  // of bytes, elements, tags
constexpr int64_t kMaxRanks = 1 << 20;
constexpr int64_t kMaxMicroBatches = 1 << 20;

// Blocked layouts by name and size, for programs that are only looked at. Programs that run get the
// layouts of their kernels.
const BlockedLayout* layout_called(const std::string& name, size_t bytes) {
  static std::mutex mutex;
  static auto& layouts = *new std::map<std::pair<std::string, size_t>, BlockedLayout>;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = layouts.try_emplace({name, bytes});
  if (is_new) found->second = {found->first.first.c_str(), bytes, nullptr, nullptr};
  return &found->second;
}

Shape read_shape(ByteReader& in, int64_t least = 0) {
  Shape shape;
  const int64_t size = in.integer(0, kMaxDims);
  for (int64_t i = 0; i < size; ++i)
    shape.push_back(in.integer(least, kMaxNumber));
  return shape;
}

NdSbp read_sbp(ByteReader& in) {
  const int64_t size = in.integer(0, NdSbp::kMaxAxes);
  std::vector<Sbp> entries;
  for (int64_t i = 0; i < size; ++i) {
    const auto kind =
        static_cast<Sbp::Kind>(in.integer(0, static_cast<int64_t>(Sbp::Kind::kPartialMin)));
    entries.emplace_back(kind, in.integer(0, kMaxDims - 1));
  }
  return entries.empty() ? NdSbp() : NdSbp(entries);
}

DType read_dtype(ByteReader& in) {
  return static_cast<DType>(in.integer(0, kNumDTypes - 1));
}

DeviceType read_device(ByteReader& in) {
  return static_cast<DeviceType>(in.integer(0, static_cast<int64_t>(DeviceType::kCuda)));
}

// The entries of axes with one rank mean nothing: the steps of a route have B there.
bool is_same(const boxing::Layout& a, const boxing::Layout& b) {
  if (!(a.placement == b.placement)) return false;
  for (int64_t axis = 0; axis < a.nd_sbp.size(); ++axis) {
    if (a.placement.shape()[axis] > 1 && a.nd_sbp[axis] != b.nd_sbp[axis]) return false;
  }
  return true;
}

class PlanReader {
 public:
  PlanReader(std::string_view content, std::string_view name, const OpTable& ops)
      : in_(content, name), name_(name), ops_(ops) {}

  SavedPlan read() {
    const int64_t version = in_.integer();
    if (version != internal::kPlanVersion) {
      in_.fail(str("its version is ", version, ", not ", internal::kPlanVersion));
    }
    SavedPlan plan;
    for (size_t left = in_.count(); left > 0; --left) {
      const std::string_view fact = in_.text();
      plan.key.facts.emplace_back(fact, in_.text());
    }
    read_tables();
    read_graph(plan.step.graph);
    verify(plan.step.graph);
    for (size_t left = in_.count(); left > 0; --left) {
      const std::string& pass = text();
      plan.step.passes.push_back({pass, in_.integer(0, kMaxNumber)});
    }
    read_programs(plan.step);
    RankKind& rank_kind = plan.step.certificate.rank_kind;
    rank_kind.num_threads = static_cast<int>(in_.integer(1, kMaxRanks));
    rank_kind.shares_memory = in_.integer(0, 1) == 1;
    for (size_t rank = 0; rank < plan.step.programs.size(); ++rank)
      plan.step.certificate.ranks.push_back(read_rank());
    if (!in_.at_end()) in_.fail("something follows its end");
    plan.step.key = plan.key;
    plan.step.from_cache = true;
    return plan;
  }

 private:
  // ---- tables

  const std::string& text() { return texts_[static_cast<size_t>(in_.index(texts_.size()))]; }

  Placement placement() {
    const int64_t index = in_.index(placements_.size(), true);
    return index < 0 ? Placement() : placements_[static_cast<size_t>(index)];
  }

  boxing::Layout layout(const Shape& shape) {
    boxing::Layout layout{placement(), read_sbp(in_)};
    if (!layout.placement.defined()) in_.fail("a layout has no placement");
    boxing::check_layout(layout, shape, kMaxRanks, "plan");
    return layout;
  }

  void read_tables() {
    for (size_t left = in_.count(); left > 0; --left)
      texts_.emplace_back(in_.text());
    for (size_t left = in_.count(); left > 0; --left) {
      const DeviceType device = read_device(in_);
      const Shape shape = read_shape(in_, 1);
      int64_t count = 1;
      for (const int64_t size : shape) {
        if (size > kMaxRanks || (count *= size) > kMaxRanks)
          in_.fail("a placement has too many ranks");
      }
      std::vector<int64_t> ranks;
      for (int64_t i = 0; i < count; ++i)
        ranks.push_back(in_.integer(0, kMaxRanks - 1));
      placements_.emplace_back(device, shape, ranks);
    }
    for (size_t left = in_.count(); left > 0; --left)
      values_.push_back(read_value());
    for (size_t left = in_.count(); left > 0; --left)
      routes_.push_back(read_route());
  }

  Value read_value() {
    Value value;
    value.shape = read_shape(in_);
    value.dtype = read_dtype(in_);
    value.device = read_device(in_);
    value.placement = placement();
    value.nd_sbp = read_sbp(in_);
    if (value.placement.defined()) {
      value.device = value.placement.device_type();
      boxing::check_layout({value.placement, value.nd_sbp}, value.shape, kMaxRanks, "plan");
    } else if (!value.nd_sbp.empty()) {
      in_.fail("a local value has a layout over ranks");
    }
    value.meta_on(0);  // throws for shapes that need more memory than can be addressed
    return value;
  }

  // Of a route step: axes of a placement, or all bits if the placements differ.
  uint32_t axes() {
    constexpr uint32_t kAll = ~0U;
    const auto axes = static_cast<uint32_t>(in_.integer(0, kAll));
    if (axes != kAll && axes >= 1U << NdSbp::kMaxAxes) in_.fail("a route has axes of no placement");
    return axes;
  }

  std::shared_ptr<const boxing::Route> read_route() {
    boxing::Route plan;
    plan.shape = read_shape(in_);
    plan.dtype = read_dtype(in_);
    plan.from = layout(plan.shape);
    plan.to = layout(plan.shape);
    for (size_t left = in_.count(); left > 0; --left) {
      boxing::RouteStep step{};
      step.kind = static_cast<boxing::RouteStepKind>(
          in_.integer(0, static_cast<int64_t>(boxing::RouteStepKind::kExchange)));
      step.from = layout(plan.shape);
      step.to = layout(plan.shape);
      step.axes = axes();
      step.takes_first = in_.flag();
      step.is_mean = in_.flag();
      if (step.is_mean &&
          (step.kind != boxing::RouteStepKind::kAllReduce || !is_floating(plan.dtype))) {
        in_.fail("a step that cannot compute a mean is marked as one");
      }
      step.bytes = in_.real();
      step.time_us = in_.real();
      const boxing::Layout& before = plan.steps.empty() ? plan.from : plan.steps.back().to;
      if (!is_same(before, step.from))
        in_.fail("the steps of a redistribution do not follow each other");
      plan.steps.push_back(step);
    }
    if (!plan.steps.empty() && !is_same(plan.to, plan.steps.back().to)) {
      in_.fail("a redistribution does not end in its target layout");
    }
    return std::make_shared<const boxing::Route>(std::move(plan));
  }

  const std::shared_ptr<const boxing::Route>& route() {
    return routes_[static_cast<size_t>(in_.index(routes_.size()))];
  }

  const Value& value() { return values_[static_cast<size_t>(in_.index(values_.size()))]; }

  // ---- the graph

  const OpDef& op() {
    const std::string& name = text();
    const OpDef* found = ops_.find(name);
    if (found == nullptr) in_.fail(str("this program has no op '", name, "'"));
    return *found;
  }

  // The cache exists because many steps have the same text.
  std::vector<std::byte> attrs(const OpDef& op) {
    const int64_t index = in_.index(texts_.size(), true);
    if ((index < 0) != (op.attrs == nullptr))
      in_.fail(str("missing or unexpected attributes of ", op.name));
    if (index < 0) return {};
    std::vector<std::byte>& known = attrs_[{&op, index}];
    if (known.empty()) {
      known.resize(op.attrs->size);
      op.attrs->parse(texts_[static_cast<size_t>(index)], known.data());
    }
    return known;
  }

  std::vector<int32_t> ids(size_t entries, bool or_none = false) {
    std::vector<int32_t> list(in_.count());
    for (int32_t& id : list)
      id = static_cast<int32_t>(in_.index(entries, or_none));
    return list;
  }

  uint32_t line() { return static_cast<uint32_t>(in_.integer(0, UINT32_MAX)); }

  void read_graph(Graph& graph) {
    const size_t num_values = in_.count();
    for (size_t i = 0; i < num_values; ++i)
      graph.values.push_back(value());
    for (size_t left = in_.count(); left > 0; --left) {
      Node node;
      node.op = &op();
      node.attrs = attrs(*node.op);
      node.inputs = ids(num_values, true);
      node.outputs = ids(num_values);
      node.stage = in_.integer(-1, kMaxRanks);
      node.phase = static_cast<Phase>(in_.integer(0, static_cast<int64_t>(Phase::kUpdate)));
      node.draw = in_.integer(-1, kMaxNumber);
      node.is_transient = in_.flag();
      node.transfer_start =
          static_cast<TransferStart>(in_.integer(0, static_cast<int64_t>(TransferStart::kAtOnce)));
      node.guard = in_.integer(-1, kMaxNumber);
      node.overwrites = in_.integer(-1, kMaxNumber);
      node.file = text();
      node.line = line();
      node.module = text();
      graph.nodes.push_back(std::move(node));
    }
    graph.inputs = ids(num_values);
    for (size_t left = in_.count(); left > 0; --left) {
      const auto initial = static_cast<ValueId>(in_.index(num_values));
      graph.captures.push_back({initial, static_cast<ValueId>(in_.index(num_values))});
    }
    graph.outputs = ids(num_values);
    graph.num_draws = in_.integer(0, kMaxNumber);
  }

  // ---- programs

  void read_programs(CompiledArtifact& step) {
    std::vector<std::shared_ptr<const Program>> distinct;
    for (size_t left = in_.count(); left > 0; --left) {
      auto program = std::make_shared<Program>(read_program(step.graph.num_draws));
      check_program(*program, step.graph, name_);
      distinct.push_back(std::move(program));
    }
    for (size_t left = in_.count(); left > 0; --left)
      step.programs.push_back(distinct[static_cast<size_t>(in_.index(distinct.size()))]);
    if (step.programs.empty()) in_.fail("it has no programs");
  }

  Program read_program(int64_t num_draws) {
    Program program;
    program.rank = in_.integer(0, kMaxRanks - 1);
    const size_t num_buffers = in_.count();
    for (size_t i = 0; i < num_buffers; ++i)
      program.buffers.push_back(read_buffer());
    for (size_t left = in_.count(); left > 0; --left)
      program.steps.push_back(read_step(num_buffers, program.steps.size()));
    read_runs(program);
    const auto num_runs = static_cast<int64_t>(program.runs.size());
    int64_t first_run = 0;
    for (size_t left = in_.count(); left > 0; --left) {
      first_run = in_.integer(first_run, num_runs);
      program.parts.push_back({static_cast<size_t>(first_run), text()});
    }
    program.externals = ids(num_buffers);
    program.arena_bytes = in_.integer(0, kMaxNumber);
    program.num_draws = in_.integer(num_draws, num_draws);
    return program;
  }

  void read_runs(Program& program) {
    const auto num_steps = static_cast<int64_t>(program.steps.size());
    int64_t end_step = 0;
    for (size_t left = in_.count(); left > 0; --left) {
      const int64_t first_step = end_step;
      end_step = in_.integer(first_step, num_steps);
      program.blocks.push_back({static_cast<size_t>(first_step), static_cast<size_t>(end_step)});
    }
    for (size_t left = in_.count(); left > 0; --left) {
      BlockRun run;
      run.block = static_cast<BlockIndex>(in_.index(program.blocks.size()));
      run.micro_batch = static_cast<int32_t>(in_.integer(-1, kMaxMicroBatches - 1));
      run.is_first = in_.flag();
      program.runs.push_back(run);
    }
    for (size_t left = in_.count(); left > 0; --left)
      program.tables.push_back(read_numbers());
    for (size_t left = in_.count(); left > 0; --left) {
      const int64_t bytes = in_.integer(0, kMaxNumber);
      program.frames.push_back({bytes, read_numbers()});
    }
  }

  std::vector<int64_t> read_numbers() {
    std::vector<int64_t> numbers(in_.count());
    for (int64_t& number : numbers)
      number = in_.integer(-1, kMaxNumber);
    return numbers;
  }

  Buffer read_buffer() {
    Buffer buffer;
    const Value& whole = value();
    buffer.meta = whole.meta_on(in_.integer(0, kMaxRanks - 1));
    const int64_t form = in_.integer(0, 2);
    if (form == 1) {
      const Strides strides = read_shape(in_);
      if (strides.size() != buffer.meta->local_shape.size())
        in_.fail("the strides of a buffer do not fit its shape");
      buffer.meta = with_strides(buffer.meta, strides);
    } else if (form == 2) {
      const std::string& layout = text();
      const auto bytes = static_cast<size_t>(in_.integer(0, kMaxNumber));
      buffer.meta = with_blocked(buffer.meta, layout_called(layout, bytes));
    }
    buffer.base = static_cast<BufferId>(in_.integer(-1, INT32_MAX));
    if (buffer.base != kNoBuffer) {
      buffer.offset = in_.integer(0, kMaxNumber);
      buffer.begins = static_cast<TableId>(in_.integer(-1, INT32_MAX));
    }
    buffer.external = static_cast<int32_t>(in_.integer(-1, INT32_MAX));
    buffer.arena_offset = in_.integer(-1, kMaxNumber);
    buffer.frame = static_cast<int32_t>(in_.integer(-1, INT32_MAX));
    buffer.is_per_micro_batch = in_.flag();
    buffer.holders = static_cast<TableId>(in_.integer(-1, INT32_MAX));
    return buffer;
  }

  Step read_step(size_t num_buffers, size_t index) {
    Step step;
    const int64_t kind = in_.integer(0, std::variant_size_v<StepBody> - 1);
    step.inputs = ids(num_buffers, true);
    step.outputs = ids(num_buffers);
    step.guard = static_cast<BufferId>(in_.index(num_buffers, true));
    step.turn = static_cast<StepTurn>(in_.integer(0, static_cast<int64_t>(StepTurn::kLater)));
    step.in_background = in_.flag();
    step.body = read_body(kind, index);
    step.file = text();
    step.line = line();
    step.module = text();
    step.phase = static_cast<Phase>(in_.integer(0, static_cast<int64_t>(Phase::kUpdate)));
    return step;
  }

  // `kind` is the position of the body in StepBody.
  StepBody read_body(int64_t kind, size_t index) {
    switch (kind) {
      case 0: {
        KernelStep kernel{.op_call = read_op_call()};
        kernel.on_parts = in_.flag();
        kernel.draw = in_.integer(-1, kMaxNumber);
        kernel.draws_globally = in_.flag();
        return kernel;
      }
      case 1: {
        CollectiveStep collective{.op_call = read_op_call()};
        collective.route = route();
        return collective;
      }
      case 2:
        return BucketStep{route()};
      case 3:
        return ConvertStep{};
      case 4: {
        const int64_t peer = in_.integer(0, kMaxRanks - 1);
        return SendStep{peer, in_.integer(0, kMaxNumber)};
      }
      case 5: {
        const int64_t peer = in_.integer(0, kMaxRanks - 1);
        return ReceiveStep{peer, in_.integer(0, kMaxNumber)};
      }
      default:
        return WaitStep{static_cast<size_t>(in_.index(index))};
    }
  }

  OpCall read_op_call() {
    OpCall call;
    call.op = &op();
    call.attrs = attrs(*call.op);
    for (size_t left = in_.count(); left > 0; --left) {
      const int64_t bytes = in_.integer(0, kMaxNumber);
      call.scratch.push_back({bytes, in_.integer(1, kMaxNumber)});
    }
    return call;
  }

  RankCertificate read_rank() {
    RankCertificate rank;
    rank.rank = in_.integer(0, kMaxRanks - 1);
    rank.arena_bytes = in_.integer(0, kMaxNumber);
    rank.peak_bytes = in_.integer(0, kMaxNumber);
    rank.peak_at = text();
    rank.scratch_bytes = in_.integer(0, INT64_MAX);
    rank.scratch_at = text();
    rank.num_collectives = in_.integer(0, kMaxNumber);
    rank.num_messages = in_.integer(0, kMaxNumber);
    rank.longest_queue = in_.integer(0, kMaxNumber);
    return rank;
  }

  ByteReader in_;
  std::string_view name_;
  const OpTable& ops_;
  std::vector<std::string> texts_;
  std::vector<Placement> placements_;
  std::vector<Value> values_;
  std::vector<std::shared_ptr<const boxing::Route>> routes_;
  std::map<std::pair<const OpDef*, int64_t>, std::vector<std::byte>> attrs_;
};

}  // namespace

SavedPlan parse_plan(std::string_view bytes, std::string_view name, const OpTable& ops) {
  ByteReader head(bytes, name);
  if (!bytes.starts_with(internal::kPlanMagic)) head.fail("it is no saved plan");
  ByteReader rest(bytes.substr(internal::kPlanMagic.size()), name);
  const uint64_t checksum = rest.fixed();
  if (internal::plan_checksum(rest.rest()) != checksum) {
    rest.fail("it is damaged: its checksum differs");
  }
  try {
    return PlanReader(rest.rest(), name, ops).read();
  } catch (const BadFile&) {
    throw;
  } catch (const Error& error) {  // from a shape, a layout, an attribute, or the graph's verifier
    throw BadFile(str("[plan] ", name, ": ", error.what(), "; compile the step again"));
  }
}

}  // namespace flow::graph

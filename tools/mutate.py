#!/usr/bin/env python3
"""Breaks one rule of the library at a time, and reports whether the tests notice.

tools/mutate.py [--list] [--part N/M] [--full] [NAME ...]

Works in the checkout with build/release: builds and runs the tests that are named with the mutations, which
must pass; then, for each mutation, changes one file, builds and runs its tests, and restores the file, also
when it is ended by SIGTERM. The checkout must have no changes of tracked files. --full then runs all
tests that are not slow for the mutations that the named tests did not notice. The exit status is 0 if all
were noticed. docs/proof.md has the table.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"
JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count())
SECONDS = 900  # a test that hangs has noticed


class Mutation(NamedTuple):
    name: str
    file: str
    old: str  # occurs once in the file
    new: str
    tests: str  # the beginnings of names of tests, separated by |

    def programs(self):
        return {test.split(".")[0] for test in self.tests.split("|")}


CONTRACT = "contract_test"
MUTATIONS = [
    # Signatures
    Mutation("cat keeps the split of its own dim", "ops/shape/concat.cpp",
             "if (i != ctx.attrs<CatAttrs>().dim) ctx.add(", "ctx.add(", CONTRACT),
    Mutation("pad with a value keeps partial sums", "ops/shape/concat.cpp",
             "if (attrs.value == 0) ctx.add({sbp::partial_sum}", "ctx.add({sbp::partial_sum}", CONTRACT),
    Mutation("dropout needs no position", "ops/random/dropout.cpp",
             "ctx.add_positional({sbp::split(i)}, {sbp::split(i), sbp::split(i)});",
             "ctx.add({sbp::split(i)}, {sbp::split(i), sbp::split(i)});",
             CONTRACT + "|nn_graph_test.MicroBatch"),
    Mutation("a sum of a partial input of conv is whole", "ops/conv/conv.cpp",
             "ctx.add({partial_sum, broadcast, partial_bias}, {partial_sum});",
             "ctx.add({partial_sum, broadcast, partial_bias}, {broadcast});", CONTRACT),
    Mutation("softmax's gradient lacks a signature", "ops/norm/softmax.cpp",
             "ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});", "", CONTRACT),
    Mutation("weights of draws are checked by parts of rows", "ops/random/random.cpp",
             "for (int64_t dim = 0; dim + 1 < ctx.input(0).shape.size(); ++dim)\n    ctx.add(",
             "for (int64_t dim = 0; dim < ctx.input(0).shape.size(); ++dim)\n    ctx.add(", CONTRACT),
    Mutation("the gradient of a partial value is partial", "boxing/layout.cpp",
             "own.is_partial() ? sbp::broadcast : own", "own",
             "boxing_test.GradientSbp"),
    # Gradients
    Mutation("tril's gradient is triu", "ops/shape/concat.cpp",
             "ctx.set(0, tril(ctx.dy(), ctx.attrs<TriangleAttrs>().diagonal));",
             "ctx.set(0, triu(ctx.dy(), ctx.attrs<TriangleAttrs>().diagonal));", CONTRACT),
    Mutation("double backward of log_softmax has a wrong sign", "ops/norm/softmax.cpp",
             "ctx.set(0, sub(g, sum_keeping(weighted, dim)));",
             "ctx.set(0, add(g, sum_keeping(weighted, dim)));", CONTRACT),
    Mutation("a slice's gradient begins at 0", "ops/shape/slice.cpp",
             "unslice(ctx.dy(), attrs.dim, attrs.start, size, attrs.step)",
             "unslice(ctx.dy(), attrs.dim, 0, size, attrs.step)", CONTRACT),
    Mutation("scatter of a number keeps the gradient of what it overwrites", "ops/index/gather.cpp",
             "ctx.set(0, scatter(ctx.dy(), ctx.attrs<ScatterValueAttrs>().dim, ctx.input(1), 0));",
             "ctx.set(0, ctx.dy());", CONTRACT),
    Mutation("an even median's gradient is not shared", "ops/reduce/order_statistics.cpp",
             "ctx.set(0, mul(share, div(ctx.dy(), sum(share))));", "ctx.set(0, mul(share, ctx.dy()));",
             CONTRACT + "|ops_test"),
    # Autograd
    Mutation("a saved tensor may be overwritten", "autograd/saved_tensor.cpp",
             "if (is_overwritten_ || version != version_) throw_overwritten",
             "if (is_overwritten_) throw_overwritten", "autograd_test"),
    Mutation("a leaf may be written while gradients are recorded", "autograd/recorder.cpp",
             "if (owner.requires_grad && !owner.grad_fn) {",
             "if (owner.requires_grad && !owner.grad_fn && is_view) {", "autograd_test"),
    Mutation("recomputation draws other numbers", "autograd/recompute_region.cpp",
             "  set_generator_state(generator);\n", "", "autograd_test"),
    Mutation("a bucket mixes gradients that are summed over other axes", "autograd/gradient_sums.cpp",
             "stream.placement == gradient.placement && stream.axes == axes &&",
             "stream.placement == gradient.placement &&", "nn_test|autograd_test"),
    Mutation("sums of gradients overwrite what others hold", "autograd/backward_run.cpp",
             "is_exclusive(total)) {", "true) {", "autograd_test"),
    Mutation("backward keeps what it saved", "autograd/backward_run.cpp",
             "if (!options_.keep_graph) node.free_saved();", "", "autograd_test"),
    Mutation("a view of a written base keeps its old history", "core/view_link.cpp",
             "  if (recorded.defined()) state.recorder->take_history(recorded, fresh);\n", "",
             "nn_test|autograd_test|nn_graph_test|ops_test"),
    # Optimizers
    Mutation("SGD's weight decay has a wrong sign", "ops/optimizer/update_steps.h",
             "v[0] = v[0] - k.lr * with_decay(k.sign * v[1], k.weight_decay, v[0]);",
             "v[0] = v[0] - k.lr * with_decay(k.sign * v[1], -k.weight_decay, v[0]);", "parity_test"),
    Mutation("clipping by parts divides by the squared norm", "nn/clip_grad.cpp",
             "p == 2 ? sqrt(total) : pow(total, 1 / p)", "p == 2 ? total : pow(total, 1 / p)",
             "nn_test|parity_test"),
    Mutation("StepLR steps one epoch early", "nn/optim/lr_decay.cpp",
             "last_epoch() % options_.step_size != 0", "(last_epoch() + 1) % options_.step_size != 0",
             "parity_test"),
    Mutation("batch norm's running statistics move the wrong way", "ops/norm/batch_norm_cpu.cpp",
             "old + momentum * (fresh - old)", "fresh + momentum * (old - fresh)",
             CONTRACT + "|ops_test|parity_test"),
    Mutation("dropout does not scale", "ops/random/dropout_cpu.cpp",
             "const Wide<T> scaled = static_cast<Wide<T>>(x[i]) * scale;",
             "const Wide<T> scaled = static_cast<Wide<T>>(x[i]) + 0 * scale;", CONTRACT + "|ops_test"),
    Mutation("overflows are stepped", "nn/optim/grad_scaler.cpp",
             "if (progress.is_finite) optimizer.step(site);", "optimizer.step(site);", "nn_test|parity_test"),
    Mutation("the scale grows one step late", "nn/optim/grad_scaler.cpp",
             "++num_good_ == options_.growth_interval", "num_good_++ == options_.growth_interval",
             "nn_test|parity_test"),
    Mutation("ranks scale each for itself", "nn/optim/grad_scaler.cpp",
             "if (any_global && env::world_size() > 1) {", "if (any_global && env::world_size() > 100) {", "nn_test"),
    Mutation("a momentum that begins later has no first step", "nn/optim/traced_step.cpp",
             "(state.step == 0 || !state.buffers[0].defined());", "state.step == 0;", "nn_graph_test"),
    Mutation("an optimizer's state keeps the old placement", "nn/optim/optimizer.cpp",
             "if (buffer.placement() == placement && buffer.sbp() == wanted) continue;",
             "if (buffer.placement() == placement || buffer.sbp() == wanted) continue;", "nn_test|nn_graph_test"),
    # Redistribution
    Mutation("a maximum forgets NaN", "boxing/comm/reduction_formulas.h",
             "(kOp == ReduceOp::kMax ? a > b : a < b) || a != a", "(kOp == ReduceOp::kMax ? a > b : a < b)",
             "boxing_test"),
    Mutation("a padded part is not filled", "boxing/rank_route.cpp",
             "result.fills = covered < result.target_count;", "result.fills = false;", "boxing_test"),
    Mutation("packed boxes begin at the same offset", "boxing/rank_route.cpp",
             "pack.target_offset = result.send_bytes[member] / element_bytes;", "pack.target_offset = 0;",
             "boxing_test|mpi_test"),
    Mutation("an intersection may have a negative size", "boxing/layout.cpp",
             "both.size[dim] = std::max<int64_t>(0, end - both.begin[dim]);",
             "both.size[dim] = end - both.begin[dim];", "boxing_test"),
    Mutation("all_reduce reads chunks that are not yet reduced", "boxing/comm/thread_communicator.cpp",
             "own.begin, own.size, dtype, op);\n  board_.meet_again(position(), current_);",
             "own.begin, own.size, dtype, op);", "boxing_test"),
    Mutation("a collective ends while others read", "boxing/comm/thread_communicator.cpp",
             "if (board_.anybody_must_stay(position())) board_.meet_again",
             "if (false && board_.anybody_must_stay(position())) board_.meet_again", "boxing_test"),
    Mutation("reduce gives its result to rank 0", "boxing/comm/thread_communicator.cpp",
             "if (position() == root) reduce_range(", "if (position() == 0) reduce_range(", "boxing_test"),
    Mutation("FLOW_CHECK compares nothing", "boxing/routed_kernel.cpp",
             "if (all[i] == all[0]) continue;", "if (all[i] == all[i]) continue;", "boxing_test|nn_graph_test"),
    Mutation("ranks may make different calls", "boxing/comm/thread_board.cpp",
             "      agreed == hash) {", "      agreed != 0) {", "boxing_test"),
    Mutation("nested reductions may be out of order", "boxing/planner.cpp",
             "if (from.nd_sbp[inner].is_partial() && from.nd_sbp[inner] != from.nd_sbp[outer]) return false;",
             "if (from.nd_sbp[inner].is_partial() && from.nd_sbp[inner] != from.nd_sbp[outer]) continue;",
             "boxing_test"),
    Mutation("a positional split is cut apart", "boxing/sbp_select.cpp",
             "      if (cuts_apart(signature)) continue;\n", "", "contract_test|boxing_test"),
    Mutation("maxima and minima mix", "boxing/sbp_select.cpp",
             "if (!mixes_extrema()) result_.push_back(current_);", "result_.push_back(current_);",
             "contract_test|boxing_test"),
    Mutation("a message that is dropped is never sent", "boxing/comm/process_group.cpp",
             "if (!sending->is_posted && memory != nullptr && message.on_device == nullptr) {",
             "if (!sending->is_posted && memory == nullptr && message.on_device == nullptr) {",
             "boxing_test|nn_test.*Comm"),
    Mutation("a thread's message that is dropped is never sent", "boxing/comm/thread_communicator.cpp",
             "if (sent != mailbox.sent.end() && memory != nullptr && message->data.ready == nullptr) {",
             "if (sent != mailbox.sent.end() && memory == nullptr && message->data.ready == nullptr) {",
             "nn_test|boxing_test"),
    Mutation("a transfer that moves runs into the limit", "boxing/comm/process_world.cpp",
             "  if (has_moved) ++num_moves_;\n", "  if (has_moved) num_moves_ += 0;\n", "boxing_test"),
    Mutation("a dropped transfer frees its memory at once", "boxing/comm/process_world.cpp",
             "bulk == nullptr || memory == nullptr || failure_ || bulk->frees_buffer() || bulk->is_done();",
             "bulk == nullptr || memory == nullptr || failure_ || bulk->frees_buffer() || bulk->is_done() || true;",
             "boxing_test|mpi_test"),
    Mutation("buckets may hold two dtypes", "nn/parallel/gradient_buckets.cpp",
             "if (buckets_.empty() || buckets_.back().memory.dtype() != parameter.dtype() ||",
             "if (buckets_.empty() ||", "nn_test|nn_graph_test"),
    Mutation("a second gradient of a parameter counts twice", "nn/parallel/gradient_buckets.cpp",
             "  if (has_gradient_[parameter]) return check_not_averaged(parameter);\n", "", "nn_test|nn_graph_test"),
    Mutation("ZeRO gives back the whole parameter", "nn/zero.cpp",
             "    it.parameter.set_data(it.data);", "    it.parameter.set_data(it.whole);", "nn_graph_test"),
    # Graphs
    Mutation("results overwrite the inputs of their step", "graph/program/memory_plan.cpp",
             "if (other.last < piece.first || piece.last < other.first) continue;",
             "if (other.last <= piece.first || piece.last <= other.first) continue;", "graph_test|nn_graph_test"),
    Mutation("views do not keep their memory", "graph/program/buffer_uses.cpp",
             "note(uses_[root]);", "note(uses_[id]);", "graph_test|nn_graph_test"),
    Mutation("the memory of a guard is free after it is written", "graph/program/buffer_uses.cpp",
             "      use(program_.steps[i].guard, block, i);\n", "", "graph_test|nn_graph_test"),
    Mutation("micro-batches of all sizes share a block", "graph/program/batch_parts.cpp",
             "if (num_longer <= micro_batch)", "if (num_longer <= micro_batch && num_longer < 0)", "pipeline_test|nn_graph_test"),
    Mutation("later addends replace the first one", "graph/program/block_runs.cpp",
             ".is_first = has_run_.insert(action.block).second", ".is_first = has_run_.insert(action.block).second || true",
             "pipeline_test|nn_graph_test"),
    Mutation("a frame is free after its first block", "graph/program/buffer_uses.cpp",
             "life.last = std::max(life.last, time);", "life.last = life.first;", "pipeline_test|nn_graph_test"),
    Mutation("all micro-batches have the positions of the first", "graph/run/executor.cpp",
             "if (!moving.metas.empty()) view.meta = moving.metas[index];", "", "pipeline_test|nn_graph_test"),
    Mutation("sums are read before their bucket", "graph/program/builder.cpp",
             "flush_used(step);\n  end_used(step);", "end_used(step);", "graph_test|nn_graph_test"),
    Mutation("what moves in the background is used before it ends", "graph/program/builder.cpp",
             "flush_used(step);\n  end_used(step);", "flush_used(step);", "graph_test|nn_graph_test"),
    Mutation("the certificate does not see what moves in the background", "graph/program/memory_check.cpp",
             "    check_started(index);\n", "", "graph_test"),
    Mutation("a message has been received once its receive starts", "graph/program/certificate.cpp",
             "edge_of(it).expected.push_back(todo_[rank].current_tag());\n        return true;",
             "edge_of(it).expected.push_back(todo_[rank].current_tag());\n        return receive(rank, it) || true;",
             "graph_test"),
    Mutation("background transfers of a route need no channel of their own", "graph/run/executor_load.cpp",
             "step.in_background ? boxing::Channel::kBackground",
             "step.in_background ? boxing::Channel::kCaller", "graph_test|nn_graph_test"),
    Mutation("an addend that is read later becomes its sum", "graph/program/builder_collectives.cpp",
             "if (addend == kNoBuffer || last_use[static_cast<size_t>(addend)] > i) continue;",
             "if (addend == kNoBuffer) continue;", "graph_test|nn_graph_test"),
    Mutation("guarded steps always run", "graph/run/executor.cpp",
             "return is_open_ != std::byte{0};", "return true;", "graph_test|nn_graph_test"),
    Mutation("local draws of a step are the same on all ranks", "graph/run/executor.cpp",
             "if (!kernel.draws_globally) random.rank = static_cast<uint64_t>(rank_.rank());", "",
             "graph_test|nn_graph_test"),
    Mutation("a step may write its inputs", "graph/trace/tracer.cpp",
             "  if (slot.is_input) {\n    throw Unsupported(", "  if (slot.is_input && slot.version > 1) {\n    throw Unsupported(",
             "graph_test|nn_graph_test"),
    Mutation("a plan serves another scaler", "nn/graph.cpp",
             "  signature.scaler = config_.scaler_;\n", "", "nn_graph_test"),
    Mutation("a step that a scaler skips is counted", "nn/graph.cpp",
             "if (!is_finite) state.steps[i].take_back();", "", "nn_graph_test"),
    Mutation("a failed run keeps its statistics", "graph/run/compiled_step.cpp",
             "  restore_statistics();\n  for", "  for", "nn_graph_test"),
    Mutation("one rank's failure is not told", "graph/run/compiled_step.cpp",
             "    give_up(&error);\n    throw;\n  }\n}", "    give_up(nullptr);\n    throw;\n  }\n}",
             "nn_graph_test"),
    Mutation("a replaced member keeps its plan", "nn/tensor_reads.cpp",
             "[](const Member& member) { return impl_at(member.at) == member.impl; })",
             "[](const Member& member) { return member.impl != nullptr; })", "nn_graph_test"),
    Mutation("a frozen tensor keeps its plan", "nn/tensor_reads.cpp",
             "return read.tensor.impl().tracks_grad() == read.tracks_grad &&\n                              hooks_of(read.tensor) == read.hooks;",
             "return hooks_of(read.tensor) == read.hooks;", "nn_graph_test"),
    Mutation("a changed number of a module keeps its plan", "nn/module_reads.cpp",
             "std::memcmp(object.begin, object.bytes.data(), object.bytes.size()) == 0;",
             "std::memcmp(object.begin, object.bytes.data(), object.bytes.size()) < 512;", "nn_graph_test"),
    Mutation("tensors that come to share memory keep their plan", "nn/tensor_reads.cpp",
             "if (num_memories() != num_memories_) return false;\n", "", "nn_graph_test"),
    Mutation("equal results are one although one is written", "graph/passes/common_subexpressions.cpp",
             "|| is_written ||", "|| (is_written && node.outputs.empty()) ||", "graph_test|nn_graph_test"),
    Mutation("an input that is read later is overwritten", "graph/passes/overwrite_inputs.cpp",
             "return reader <= index && graph_.nodes[reader].op->view == nullptr;",
             "return graph_.nodes[reader].op->view == nullptr;", "graph_test|nn_graph_test"),
    Mutation("an input with views is overwritten", "graph/passes/overwrite_inputs.cpp",
             "return reader <= index && graph_.nodes[reader].op->view == nullptr;", "return reader <= index;",
             "graph_test|nn_graph_test"),
    Mutation("an expanded copy becomes a view that is written", "graph/passes/copies.cpp",
             "is_expanded(uses, node.inputs[0])) continue;",
             "is_expanded(uses, node.inputs[0]) && removed < 0) continue;", "graph_test|nn_graph_test"),
    Mutation("an update moves before the last reader", "graph/passes/move_updates.cpp",
             "if ((node.op->mutates >> k & 1U) != 0) place = std::max(place, read_until_[root_[input]]);", "",
             "graph_test|nn_graph_test"),
    Mutation("a plan of other settings is read", "graph/plan_file/plan_key.cpp",
             "key.facts.emplace_back(pass.name, pass.settings);", "key.facts.emplace_back(pass.name, \"\");",
             "graph_test|nn_graph_test"),
    Mutation("a plan of another instruction set is read", "graph/plan_file/plan_key.cpp",
             "str(ops::to_string(ops::active_isa()))", "str(0)", "graph_test|nn_graph_test"),
    Mutation("a guard of a plan may have any dtype", "graph/plan_file/plan_check.cpp",
             "guard.is_held && guard.dtype == DType::kBool && guard.shape.empty()", "guard.is_held", "graph_test"),
    # Pipelines
    Mutation("interleaved stages warm up too little", "pipeline/generators.cpp",
             "2 * ahead + (chunks - 1) * workers", "ahead + (chunks - 1) * workers", "pipeline_test"),
    Mutation("ZB-H1 does weights at once", "pipeline/generators.cpp",
             "if (m >= s) worker.push_back({s, kW, weights++});", "worker.push_back({s, kW, weights++});",
             "pipeline_test"),
    # Data and files
    Mutation("the distributed sampler gives all ranks the same samples", "nn/data/sampler.cpp",
             "(rank_ + i * num_replicas_) % dataset_size_", "(i * num_replicas_) % dataset_size_", "nn_test"),
    Mutation("a manifest's checksum is not compared", "nn/checkpoint_manifest.cpp",
             "static_cast<unsigned>(body_text.size())) != reader.number(json, \"crc32\")) {",
             "static_cast<unsigned>(body_text.size())) == 1) {", "nn_file_test"),
    Mutation("the last batch is dropped", "nn/data/sampler.cpp",
             "if (drop_last_ && left < batch_size_) break;", "if (left < batch_size_) break;", "nn_test"),
    Mutation("shards of a checkpoint may overlap", "nn/checkpoint_cover.cpp",
             "overlap_pairwise(boxes)) return true;", "overlap_pairwise({})) return true;", "nn_file_test"),
    Mutation("a loop of threads leaves out its last chunk", "core/thread_pool.cpp",
             "if (i >= share.end) break;", "if (i + 1 >= share.end) break;", "core_test"),
]


def run(command, seconds=None):
    """Returns the exit status and the output. What the command has started ends with it, also after `seconds`,
    when the status is None, and when this script is ended."""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except BaseException as stop:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(stop, subprocess.TimeoutExpired):
                return None, ""
            raise


def first_failure(selection, seconds=None):
    """The name of the first test that fails; empty if all pass."""
    status, output = run(["ctest", "--test-dir", BUILD, "--parallel", JOBS, "--stop-on-failure", "--timeout", "300",
                          "--no-tests=error", *selection], seconds)
    if status is None:
        return "time-out"
    for line in output.splitlines():
        if "***" in line:
            return line.split(":", 1)[1].split()[0]
    return "" if status == 0 else "ctest"


def build(programs=()):
    """Builds these test programs, or everything; returns whether it compiles."""
    targets = ["--target", *sorted(programs)] if programs else []
    return run(["cmake", "--build", BUILD, "--parallel", JOBS, *targets])[0] == 0


def tests_of(mutations):
    """What selects the tests of these mutations, and no others with a similar name."""
    return ["-R", f"^({'|'.join(sorted({mutation.tests for mutation in mutations}))})"]


ALL_TESTS = ["-LE", "^slow$"]


def require_success(chosen, programs, is_full):
    """Without a mutation the tree builds and the tests pass: else every mutation would seem to be noticed."""
    if not build(programs):
        sys.exit("the tree does not build without a mutation; mend it first")
    failed = first_failure(ALL_TESTS if is_full else tests_of(chosen))
    if failed:
        sys.exit(f"{failed} fails without a mutation; mend it first")


def try_mutation(mutation, is_full):
    """What noticed the mutation: "compiler", the name of a test, or nothing."""
    path = ROOT / mutation.file
    text = path.read_text()
    try:
        path.write_text(text.replace(mutation.old, mutation.new))
        if not build(mutation.programs()):
            return "compiler"
        noticed = first_failure(tests_of([mutation]), SECONDS)
        if noticed or not is_full:
            return noticed
        return first_failure(ALL_TESTS, SECONDS) if build() else "compiler"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only check that each mutation applies")
    parser.add_argument("--part", default="1/1", metavar="N/M", help="only part N of M")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("names", nargs="*", help="only mutations whose names contain one of these")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS
              if not arguments.names or any(name in m.name for name in arguments.names)]
    part, parts = map(int, arguments.part.split("/"))
    chosen = chosen[part - 1::parts]
    for mutation in chosen:
        count = (ROOT / mutation.file).read_text().count(mutation.old)
        if count != 1:
            sys.exit(f"{mutation.name}: {mutation.file} has its text {count} times")
    if arguments.list:
        print("\n".join(mutation.name for mutation in chosen))
        return
    if run(["git", "diff", "--quiet", "HEAD"])[0] != 0:
        sys.exit("tracked files have changes: commit them first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the mutated file is restored
    programs = () if arguments.full else set().union(*(mutation.programs() for mutation in chosen))
    require_success(chosen, programs, arguments.full)
    survivors = []
    for mutation in chosen:
        started = time.monotonic()
        noticed = try_mutation(mutation, arguments.full)
        if not noticed:
            survivors.append(mutation.name)
        print(f"| {mutation.name} | `{mutation.file}` | {noticed or 'nothing'} | "
              f"{time.monotonic() - started:.0f} s |", flush=True)
    build(programs)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} noticed")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/hdf5.hpp"
#include "results/point_tables.hpp"
#include "results/run_data.hpp"

/// The layout of a run file. Each field is listed once, and is visited by the writer and by the
/// reader. A visitor has these functions:
///   attribute(name, value): a scalar attribute; an absent optional has none
///   pairs(name, map): a group with one text attribute per key
///   column(name, vector, about): a 1-D dataset
///   rows(name, vector of rows, columns, about): a 2-D dataset
///   text(name, string, about): a scalar text dataset
///   codes(name, vector, names, about): a 1-D dataset of enumerators, with their names
///   has_since(minor): true if the file has what that minor version added
/// SCHEMA.md describes the same for readers; change both and the version together.
namespace isoscale::results {

inline constexpr std::string_view format_name = "isoscale-run";
inline constexpr std::string_view part_format_name = "isoscale-run-part";

/// These return the names of enumerators in the order of their codes; the file stores the names
/// with the codes.
[[nodiscard]] std::vector<std::string> op_kind_names();
[[nodiscard]] std::vector<std::string> phase_names();
[[nodiscard]] std::vector<std::string> axis_names();
[[nodiscard]] std::vector<std::string> direction_names();
[[nodiscard]] std::vector<std::string> status_names();

/// Returns the name of a point's group under /points.
[[nodiscard]] std::string point_group_name(int index);

/// Returns the unit of a rank's number by its key, by the first of these rules that fits: Hz if it
/// contains _clock, W if _power, B if it contains memory_ or ends in _cache, s if it ends in
/// _seconds, else "1".
[[nodiscard]] std::string_view unit_of_fact(std::string_view key);

/// Returns the unit of a row's number by its key: B for bytes and keys that end in _bytes, FLOP for
/// flop, Hz for sm_clock and sm_clock_min, s for estimate, first_call and keys that end in
/// _seconds, else "1".
[[nodiscard]] std::string_view unit_of_number(std::string_view key);

inline constexpr hdf5::About warnings_about{
    .unit = "text", .description = "what a reader of the results should know, one sentence each"};

/// Visits the fields that identify a run; a summary (summary.hpp) has them too.
template <class Visitor, class Run>
void visit_run_identity(Visitor& visit, Run& run) {
  visit.attribute("id", run.id);
  visit.attribute("created", run.created);
  visit.attribute("ended", run.ended);
  visit.attribute("isoscale_version", run.isoscale_version);
  visit.attribute("git_hash", run.git_hash);
  visit.attribute("device", run.device);
  visit.attribute("ranks", run.ranks);
  visit.attribute("nodes", run.nodes);
}

template <class Visitor, class Run>
void visit_run(Visitor& visit, Run& run) {
  visit_run_identity(visit, run);
  visit.attribute("compiler", run.compiler);
  visit.attribute("build_type", run.build_type);
  visit.attribute("device_detail", run.device_detail);
  visit.attribute("mpi_library", run.mpi_library);
  visit.text("command_line", run.command_line, {"text", "as typed, shell-quoted"});
  visit.text("config", run.config_toml, {"text", "the whole run configuration as TOML"});
  visit.column("warnings", run.warnings, warnings_about);
}

/// Visits a point's experiment, status and labels; a summary has them too.
template <class Visitor, class Point>
void visit_point_facts(Visitor& visit, Point& point) {
  visit.attribute("index", point.index);
  visit.attribute("workload", point.workload);
  visit.attribute("model", point.model);
  visit.attribute("dtype", point.dtype);
  visit.attribute("mesh_tp", point.mesh.tp);
  visit.attribute("mesh_cp", point.mesh.cp);
  visit.attribute("mesh_ep", point.mesh.ep);
  visit.attribute("mesh_dp", point.mesh.dp);
  visit.attribute("mesh_pp", point.mesh.pp);
  visit.attribute("ranks", point.ranks);
  visit.attribute("nodes", point.nodes);
  visit.attribute("scaling", point.scaling);
  visit.attribute("placement", point.placement);
  visit.pairs("options", point.options);
  visit.pairs("model_shape", point.model_shape);
  visit.attribute("status", point.status);
  visit.attribute("verified", point.verified);
  visit.attribute("throughput_unit", point.throughput_unit);
  visit.attribute("work_per_step", point.work_per_step);
  visit.column("labels", point.labels,
               {"text", "what sets this point apart, such as oversubscribed"});
}

template <class Visitor, class Point>
void visit_point(Visitor& visit, Point& point) {
  visit_point_facts(visit, point);
  visit.attribute("warm_up_steps", point.warm_up_steps);
  visit.rows("step_times", point.step_times, point.ranks,
             {"s", "duration of each step (row) on each rank (column), warm-up included"});
  visit.column("step_traced", point.traced,
               {"1", "1 where the step recorded spans: not for step times"});
  visit.column("step_dropped", point.dropped,
               {"1", "1 where the step is the first of its block: for nothing"});
  visit.attribute("seed", point.seed);
  visit.attribute("reason", point.reason);
  visit.attribute("verification", point.verification);
  visit.attribute("communicator_creation", point.communicator_creation);
  visit.attribute("folded", point.folded);
  visit.attribute("folded_reason", point.folded_reason);
  visit.attribute("stopped_because", point.stopped_because);
  visit.attribute("started", point.started);
  visit.attribute("ended", point.ended);
  visit.column("world_rank", point.world_rank,
               {"1", "rank in the launch of each rank of the point"});
  visit.column("flop_of_rank", point.flop_of_rank,
               {"FLOP", "matrix-multiplication work of one step, per rank"});
  visit.column("memory_of_rank", point.memory_of_rank, {"B", "storage taken, per rank"});
  visit.column("peak_live_microbatches", point.peak_live_microbatches,
               {"1", "most microbatches with a live forward activation at once, per rank"});
  visit.column("clock_offset", point.clock_offset,
               {"s", "clock of each rank minus that of rank 0; already applied to the traces"});
  visit.column("clock_error", point.clock_error, {"s", "bound on the error of clock_offset"});
  if (visit.has_since(1)) visit.attribute("graph", point.graph);
  if (!visit.has_since(3)) return;
  visit.attribute("looks_planned", point.looks.planned);
  visit.attribute("looks_made", point.looks.made);
  visit.attribute("look_growth", point.looks.growth);
  visit.attribute("warm_up_rule", point.warm_up_rule);
  visit.attribute("measured_seconds", point.measured_seconds);
  visit.column("injections", point.injections, {"text", "injected faults, as given to --inject"});
  visit.column("clock_drift", point.clock_drift,
               {"1",
                "seconds a second by which each rank's clock runs ahead of that of rank 0; "
                "already applied to the traces"});
  if (!visit.has_since(5)) return;
  visit.attribute("soak_replays", point.soak.replays);
  visit.attribute("soak_seconds", point.soak.seconds);
  visit.column("soak_differing", point.soak.differing,
               {"text", "of each replay that differed, which rank did so first, and in what"});
  if (!visit.has_since(6)) return;
  visit.column("host_memory_of_rank", point.host_memory_of_rank,
               {"B", "part of memory_of_rank in pinned and pageable buffers of the host"});
}

template <class Visitor, class Sums>
void visit_op_sums(Visitor& visit, Sums& sums, int ranks) {
  visit.column("step", sums.step, {"1", "row of step_times"});
  visit.rows("gemm", sums.gemm, ranks, {"s", "matrix multiplications of the rank, added up"});
  visit.rows("other_compute", sums.other_compute, ranks, {"s", "its other compute ops"});
  visit.rows("copies", sums.copies, ranks, {"s", "its copies"});
  visit.rows("communication", sums.communication, ranks,
             {"s", "its collectives and exchanges, waiting included"});
}

template <class Visitor, class Solo>
void visit_solo_times(Visitor& visit, Solo& solo) {
  visit.column("rank", solo.rank, {"1", "rank of the point"});
  visit.column("op_begin", solo.op_begin,
               {"1", "times of row i are time[op_begin[i]:op_begin[i+1]], one per op"});
  visit.column("time", solo.time,
               {"ns", "median duration when nothing communicates; 0 for communication"});
}

template <class Visitor, class Series>
void visit_device_series(Visitor& visit, Series& series) {
  visit.column("rank", series.rank, {"1", "rank of the point that sampled"});
  visit.column("device", series.device, {"text", "what was sampled, such as gpu 0"});
  visit.column("quantity", series.quantity, {"text", "which of its quantities"});
  visit.column("unit", series.unit, {"text", "unit of the quantity's values"});
  visit.column("sample_begin", series.sample_begin,
               {"1", "samples of row i are rows sample_begin[i] to sample_begin[i+1]"});
  visit.column("time", series.time, {"s", "after the point's first step began"});
  visit.column("value", series.value, {"by row", "in the unit of its row"});
}

template <class Visitor, class Gemms>
void visit_gemm_choices(Visitor& visit, Gemms& gemms) {
  visit.column("shape", gemms.shape, {"text", "sizes, types and layout that were multiplied"});
  visit.column("algorithm", gemms.algorithm,
               {"text", "the library's own description of the algorithm, in hexadecimal"});
  visit.column("workspace", gemms.workspace, {"B", "memory that the algorithm works in"});
  visit.column("time", gemms.time, {"s", "one call when it was chosen; NaN when it was given"});
  visit.column("candidates", gemms.candidates,
               {"1", "algorithms that were timed; 0 when it was given"});
  if (!visit.has_since(7)) return;
  visit.column("arithmetic", gemms.arithmetic,
               {"text", "units, inputs and sums, as the library says; empty = not known"});
}

template <class Visitor, class Communicators>
void visit_communicators(Visitor& visit, Communicators& communicators) {
  visit.column("name", communicators.name, {"text", "mesh axis, and which of its communicators"});
  visit.column("ranks", communicators.ranks, {"1", "ranks of the communicator"});
  visit.column("creation", communicators.creation,
               {"s", "time to make it, slowest rank; 0 = kept from the session before"});
  visit.column("first_call", communicators.first_call,
               {"s", "duration of the first communication, slowest rank; NaN = there was none"});
}

/// Visits the fields of a point's rows, without the groups `text` and `number`.
template <class Visitor, class Rows>
void visit_rows(Visitor& visit, Rows& rows) {
  visit.codes("status", rows.status, status_names(),
              {"1", "ok, failed or skipped; index into `values`"});
  visit.column("reason", rows.reason, {"text", "why not ok"});
  visit.column("wrong", rows.wrong,
               {"1", "elements that were not what they must be; -1 = not checked"});
  visit.column("calls", rows.calls, {"1", "calls that one play makes, one after the other"});
  visit.column("ranks_begin", rows.ranks_begin,
               {"1", "ranks of row i are ranks[ranks_begin[i]:ranks_begin[i+1]]; none = all"});
  visit.column("ranks", rows.ranks, {"1", "ranks of the point that took part"});
  visit.column("plays", rows.plays, {"1", "how often each row was played"});
  visit.column("time_begin", rows.time_begin,
               {"1", "times of row i are time[time_begin[i]:time_begin[i+1]], play after play"});
  visit.column("time", rows.time, {"s", "a whole play on one rank, in the order of the ranks"});
  visit.column("call_time_begin", rows.call_time_begin,
               {"1", "single calls of row i are rows call_time_begin[i] to call_time_begin[i+1]"});
  visit.column("call_time", rows.call_time, {"s", "one call, slowest rank, from traced plays"});
}

template <class Visitor, class Ops>
void visit_ops(Visitor& visit, Ops& ops) {
  visit.column("program_of_rank", ops.outline_of_rank, {"1", "which program each rank plays"});
  visit.column("op_begin", ops.op_begin,
               {"1", "ops of program i are rows op_begin[i] to op_begin[i+1] of the columns here"});
  visit.column("stream_begin", ops.stream_begin,
               {"1", "streams of program i are stream_names[stream_begin[i]:stream_begin[i+1]]"});
  visit.column("stream_names", ops.stream_names, {"text", "names of all programs' streams"});
  visit.codes("kind", ops.kind, op_kind_names(), {"1", "what the op is; index into `values`"});
  visit.column("stream", ops.stream, {"1", "stream of the op within its program"});
  visit.codes("phase", ops.phase, phase_names(),
              {"1", "part of the step the op belongs to; index into `values`"});
  visit.column("layer", ops.layer, {"1", "layer of the model, -1 for none"});
  visit.column("microbatch", ops.microbatch, {"1", "microbatch of the step, -1 for none"});
  visit.column("flop", ops.flop, {"FLOP", "2 m n k of a matrix multiplication, else 0"});
  visit.column(
      "bytes", ops.bytes,
      {"B", "communication: the size that algbw is defined on; else bytes read + written"});
  visit.column("axes", ops.axes,
               {"1", "mesh axes of the op's group, one bit each: 1 tp, 2 cp, 4 ep, 8 dp, 16 pp"});
  visit.column("wait_count", ops.wait_count, {"1", "how many of the wait_ rows are the op's"});
  visit.column("transfer_count", ops.transfer_count,
               {"1", "how many of the transfer_ rows are the op's"});
  visit.column("wait_stream", ops.wait_stream, {"1", "stream that is waited for"});
  visit.column("wait_ops", ops.wait_ops,
               {"1", "how many ops of that stream must have finished, counted from its first"});
  visit.codes("transfer_direction", ops.transfer_direction, direction_names(),
              {"1", "send or receive; index into `values`"});
  visit.codes("transfer_axis", ops.transfer_axis, axis_names(),
              {"1", "mesh axis along which the peer is; index into `values`"});
  visit.column("transfer_offset", ops.transfer_offset,
               {"1", "how far along the axis the peer is, wrapping around"});
  visit.column("transfer_bytes", ops.transfer_bytes, {"B", "size of the message"});
  if (!visit.has_since(6)) return;
  visit.column("gemm_shape", ops.gemm_shape,
               {"1", "row of the gemm_ columns here, -1 for what is not a matrix multiplication"});
  visit.column("gemm_m", ops.gemm_m, {"1", "rows of the product"});
  visit.column("gemm_n", ops.gemm_n, {"1", "columns of the product"});
  visit.column("gemm_k", ops.gemm_k, {"1", "extent that is summed over"});
  visit.column("gemm_batch", ops.gemm_batch, {"1", "multiplications that the op makes"});
}

template <class Visitor, class Traces>
void visit_traces(Visitor& visit, Traces& traces) {
  visit.column("timeline", traces.timeline, {"1", "rows of one traced step share this number"});
  visit.column("rank", traces.rank, {"1", "rank of the point"});
  visit.column("step", traces.step, {"1", "row of step_times"});
  visit.column("begin", traces.begin, {"ns", "when the rank began the step, clock of rank 0"});
  visit.column("end", traces.end, {"ns", "when the rank's streams had drained, clock of rank 0"});
  visit.column(
      "span_begin", traces.span_begin,
      {"1", "spans of row i are rows span_begin[i] to span_begin[i+1] of the span_ columns"});
  visit.column("span_op", traces.span_op, {"1", "op within the rank's program"});
  visit.column("span_start", traces.span_start, {"ns", "when the op began, clock of rank 0"});
  visit.column("span_end", traces.span_end, {"ns", "when the op ended, clock of rank 0"});
}

}  // namespace isoscale::results

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_and_calibration_fields.hpp"
#include "results/records/run_data.hpp"
#include "timeline/timeline.hpp"

/// The fields of a point and of the records in its tables; see run_and_calibration_fields.hpp.
namespace isoscale::results {

template <>
inline constexpr auto fields_of<GemmChoice> = std::tuple{
    field("shape", &GemmChoice::shape, "text", "sizes, types and layout that were multiplied"),
    field("algorithm", &GemmChoice::algorithm, "text",
          "the library's own description of the algorithm, in hexadecimal"),
    field("workspace", &GemmChoice::workspace, "B", "memory that the algorithm works in"),
    field("time", &GemmChoice::time, "s", "one call when it was chosen; NaN when it was given"),
    field("candidates", &GemmChoice::candidates, "1",
          "algorithms that were timed; 0 when it was given"),
    field("arithmetic", &GemmChoice::arithmetic, "text",
          "units, inputs and sums, as the library says; empty = not known", 7)};

template <>
inline constexpr auto fields_of<CommunicatorTime> = std::tuple{
    field("name", &CommunicatorTime::name, "text", "mesh axis, and which of its communicators"),
    field("ranks", &CommunicatorTime::ranks, "1", "ranks of the communicator"),
    field("creation", &CommunicatorTime::creation, "s",
          "time to make it, slowest rank; 0 = kept from the session before"),
    field("first_call", &CommunicatorTime::first_call, "s",
          "duration of the first communication, slowest rank; NaN = there was none")};

/// Stores the times of all plays (timed repetitions) of a row as one list, play after play.
inline constexpr auto all_times = converted(
    &RowData::times,
    [](const std::vector<std::vector<double>>& plays) {
      std::vector<double> all;
      for (const auto& play : plays) all.insert(all.end(), play.begin(), play.end());
      return all;
    },
    [](std::vector<double> all, auto& plays) { plays.assign(1, std::move(all)); });

/// Stores the number of plays of a row. It is read after all_times, whose single list is then split
/// into plays.
inline constexpr auto play_count = converted(
    &RowData::times, [](const auto& plays) { return std::uint64_t{plays.size()}; },
    [](std::uint64_t count, std::vector<std::vector<double>>& plays) {
      const std::vector<double> all = std::move(plays.at(0));
      const std::size_t width = count == 0 ? 0 : all.size() / count;
      require(count == 0 ? all.empty() : width > 0 && all.size() % count == 0,
              "a row's times do not fit its plays and ranks");
      plays.clear();
      for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(width)) {
        plays.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
      }
    });

template <>
inline constexpr auto fields_of<RowData> = std::tuple{
    field("status", &RowData::status, "1", "ok, failed or skipped; index into `values`"),
    field("reason", &RowData::reason, "text", "why not ok"),
    field("wrong", &RowData::wrong, "1", "wrong elements; -1 = not checked"),
    field("calls", &RowData::calls, "1", "calls that one play makes, one after the other"),
    lists("ranks_begin", "ranks of row i are ranks[ranks_begin[i]:ranks_begin[i+1]]; none = all",
          &RowData::ranks, field("ranks", itself, "1", "ranks of the point that took part")),
    lists("time_begin", "times of row i are time[time_begin[i]:time_begin[i+1]], play after play",
          all_times,
          field("time", itself, "s", "a whole play on one rank, in the order of the ranks")),
    field("plays", play_count, "1", "how often each row was played"),
    lists("call_time_begin",
          "single calls of row i are rows call_time_begin[i] to call_time_begin[i+1]",
          &RowData::call_times,
          field("call_time", itself, "s", "one call, slowest rank, from traced plays")),
    keys("text", &RowData::text, nullptr, "what was measured; empty = does not apply"),
    keys("number", &RowData::number, unit_of_number,
         "size or place of what was measured; NaN = none")};

template <>
inline constexpr auto fields_of<OpSums> =
    std::tuple{field("step", &OpSums::step, "1", "row of step_times"),
               field("gemm", &OpSums::gemm, "s", "matrix multiplications of the rank, added up"),
               field("other_compute", &OpSums::other_compute, "s", "its other compute ops"),
               field("copies", &OpSums::copies, "s", "its copies"),
               field("communication", &OpSums::communication, "s",
                     "its collectives and exchanges, waiting included")};

template <>
inline constexpr auto fields_of<SoloTimes> =
    std::tuple{field("rank", &SoloTimes::rank, "1", "rank of the point"),
               lists("op_begin", "times of row i are time[op_begin[i]:op_begin[i+1]], one per op",
                     &SoloTimes::op,
                     field("time", itself, "ns",
                           "median duration when nothing communicates; 0 for communication"))};

template <>
inline constexpr auto fields_of<DeviceSeries> = std::tuple{
    field("rank", &DeviceSeries::rank, "1", "rank of the point that sampled"),
    field("device", &DeviceSeries::device, "text", "what was sampled, such as gpu 0"),
    field("quantity", &DeviceSeries::quantity, "text", "which of its quantities"),
    field("unit", &DeviceSeries::unit, "text", "unit of the quantity's values"),
    lists("sample_begin", "samples of row i are rows sample_begin[i] to sample_begin[i+1]",
          zipped(&DeviceSeries::time, &DeviceSeries::value),
          field("time", element<0>, "s", "after the point's first step began"),
          field("value", element<1>, "by row", "in the unit of its row"))};

// The records of programs (the ops of each rank's step) and of traces follow.

template <>
inline constexpr auto fields_of<program::Wait> =
    std::tuple{field("wait_stream", &program::Wait::stream, "1", "stream that is waited for"),
               field("wait_ops", &program::Wait::count, "1",
                     "how many ops of that stream must have finished, counted from its first")};

template <>
inline constexpr auto fields_of<program::OutlineTransfer> = std::tuple{
    field("transfer_direction", &program::OutlineTransfer::direction, "1",
          "send or receive; index into `values`"),
    field("transfer_axis", &program::OutlineTransfer::axis, "1",
          "mesh axis along which the peer is; index into `values`"),
    field("transfer_offset", &program::OutlineTransfer::offset, "1",
          "how far along the axis the peer is, wrapping around"),
    field("transfer_bytes", &program::OutlineTransfer::bytes, "B", "size of the message")};

template <>
inline constexpr auto fields_of<program::GemmShape> = std::tuple{
    field("gemm_m", &program::GemmShape::m, "1", "rows of the product"),
    field("gemm_n", &program::GemmShape::n, "1", "columns of the product"),
    field("gemm_k", &program::GemmShape::k, "1", "extent that is summed over"),
    field("gemm_batch", &program::GemmShape::batch, "1", "multiplications that the op makes")};

/// The fields of a program's op. The members `signature` and `uneven` are not stored.
template <>
inline constexpr auto fields_of<program::OutlineOp> = std::tuple{
    field("kind", &program::OutlineOp::kind, "1", "what the op is; index into `values`"),
    field("stream", &program::OutlineOp::stream, "1", "stream of the op within its program"),
    field("phase", path(&program::OutlineOp::place, &program::Place::phase), "1",
          "part of the step the op belongs to; index into `values`"),
    field("layer", path(&program::OutlineOp::place, &program::Place::layer), "1",
          "layer of the model, -1 for none"),
    field("microbatch", path(&program::OutlineOp::place, &program::Place::microbatch), "1",
          "microbatch of the step, -1 for none"),
    field("flop", &program::OutlineOp::flop, "FLOP", "2 m n k of a matrix multiplication, else 0"),
    field("bytes", &program::OutlineOp::bytes, "B",
          "communication: the size that algbw is defined on; else bytes read + written"),
    field("axes", &program::OutlineOp::axes, "1",
          "mesh axes of the op's group, one bit each: 1 tp, 2 cp, 4 ep, 8 dp, 16 pp"),
    field("wait_count", &program::OutlineOp::wait_count, "1",
          "how many of the wait_ rows are the op's"),
    field("transfer_count", &program::OutlineOp::transfer_count, "1",
          "how many of the transfer_ rows are the op's"),
    distinct("gemm_shape",
             "row of the gemm_ columns here, -1 for what is not a matrix multiplication",
             &program::OutlineOp::gemm, "shapes", 6)};

template <>
inline constexpr auto fields_of<program::Outline> = std::tuple{
    lists("op_begin", "ops of program i are rows op_begin[i] to op_begin[i+1] of the columns here",
          &program::Outline::ops, fields_of<program::OutlineOp>),
    lists("stream_begin",
          "streams of program i are stream_names[stream_begin[i]:stream_begin[i+1]]",
          &program::Outline::streams,
          field("stream_names", itself, "text", "names of all programs' streams")),
    Divided{&program::Outline::waits, &program::Outline::ops, &program::OutlineOp::wait_begin,
            &program::OutlineOp::wait_count, "waits"},
    Divided{&program::Outline::transfers, &program::Outline::ops,
            &program::OutlineOp::transfer_begin, &program::OutlineOp::transfer_count, "transfers"}};

template <>
inline constexpr auto fields_of<program::OutlineSet> =
    std::tuple{field_per("ranks", "program_of_rank", &program::OutlineSet::outline_of_rank, "1",
                         "which program each rank plays"),
               table("", &program::OutlineSet::outlines, "ops", 0, "programs")};

/// Stores the rank of a trace as an unsigned number.
inline constexpr auto traced_rank = converted(
    &timeline::StepTrace::rank, [](int rank) { return static_cast<std::uint32_t>(rank); },
    [](std::uint32_t stored, int& rank) {
      require(std::in_range<int>(stored), "a number is out of range");
      rank = static_cast<int>(stored);
    });

template <>
inline constexpr auto fields_of<timeline::StepTrace> = std::tuple{
    field("rank", traced_rank, "1", "rank of the point"),
    field("step", &timeline::StepTrace::step, "1", "row of step_times"),
    field("begin", &timeline::StepTrace::begin, "ns",
          "when the rank began the step, clock of rank 0"),
    field("end", &timeline::StepTrace::end, "ns",
          "when the rank's streams had drained, clock of rank 0"),
    lists("span_begin",
          "spans of row i are rows span_begin[i] to span_begin[i+1] of the span_ columns",
          &timeline::StepTrace::spans,
          field("span_op", &timeline::Span::op, "1", "op within the rank's program"),
          field("span_start", &timeline::Span::start, "ns", "when the op began, clock of rank 0"),
          field("span_end", &timeline::Span::end, "ns", "when the op ended, clock of rank 0"))};

template <>
inline constexpr auto fields_of<timeline::Timeline> = std::tuple{
    numbered("timeline", "rows of one traced step share this number", &timeline::Timeline::ranks)};

/// Returns an attribute for the extent of a point's mesh along an axis.
constexpr auto mesh_extent(const char* name, int mesh::Shape::*axis, std::string_view description) {
  return attribute(name, path(&PointData::mesh, axis), description);
}

/// The fields that say what a point is and how it ended; a summary (appended_summary.hpp) has them
/// too.
inline constexpr auto point_facts = std::tuple{
    attribute("index", &PointData::index, "number of the point in the plan"),
    attribute("workload", &PointData::workload, "such as `dp`, `tp`, `pp` or `gemm`"),
    attribute("model", &PointData::model, "name of the model"),
    attribute("dtype", &PointData::dtype, "element type, such as `f32`"),
    mesh_extent("mesh_tp", &mesh::Shape::tp,
                "extent of the mesh along tp, the axis that varies fastest over ranks"),
    mesh_extent("mesh_cp", &mesh::Shape::cp, "along cp"),
    mesh_extent("mesh_ep", &mesh::Shape::ep, "along ep"),
    mesh_extent("mesh_dp", &mesh::Shape::dp, "along dp"),
    mesh_extent("mesh_pp", &mesh::Shape::pp, "along pp, the slowest"),
    attribute("ranks", &PointData::ranks, "ranks of the point"),
    attribute("nodes", &PointData::nodes, "nodes they are on"),
    attribute("scaling", &PointData::scaling, "`strong` or `weak`"),
    attribute("placement", &PointData::placement, "`packed` or `spread`"),
    pairs("options", &PointData::options),
    pairs("model_shape", &PointData::model_shape),
    attribute("status", &PointData::status, "`ok`, `failed` or `skipped`"),
    attribute("verified", &PointData::verified,
              "true if the results were right; absent if they were not checked"),
    attribute("throughput_unit", &PointData::throughput_unit, "such as `tokens/s`"),
    attribute("work_per_step", &PointData::work_per_step,
              "work of one step of all ranks, in the unit of throughput times s"),
    field("labels", &PointData::labels, "text", "labels of the point, such as oversubscribed")};

/// All fields of a point.
template <>
inline constexpr auto fields_of<PointData> = std::tuple_cat(
    point_facts,
    std::tuple{
        field_per("ranks", "world_rank", &PointData::world_rank, "1",
                  "rank in the launch of each rank of the point"),
        field_per("ranks", "flop_of_rank", &PointData::flop_of_rank, "FLOP",
                  "matrix-multiplication work of one step, per rank"),
        field_per("ranks", "memory_of_rank", &PointData::memory_of_rank, "B",
                  "storage taken, per rank"),
        field_per("ranks", "host_memory_of_rank", &PointData::host_memory_of_rank, "B",
                  "part of memory_of_rank in pinned and pageable buffers of the host", 6),
        field_per("ranks", "peak_live_microbatches", &PointData::peak_live_microbatches, "1",
                  "most microbatches with a live forward activation at once, per rank"),
        field_per("ranks", "clock_offset", &PointData::clock_offset, "s",
                  "clock of each rank minus that of rank 0; already applied to the traces"),
        field_per("ranks", "clock_error", &PointData::clock_error, "s",
                  "bound on the error of clock_offset"),
        field_per("ranks", "clock_drift", &PointData::clock_drift, "1",
                  "seconds a second by which each rank's clock runs ahead of that of rank 0; "
                  "already applied to the traces",
                  3),
        field_per("steps", "step_times", &PointData::step_times, "s",
                  "duration of each step (row) on each rank (column), warm-up included"),
        field_per("steps", "step_traced", &PointData::traced, "1",
                  "1 if the step recorded spans; such steps give no step times"),
        field_per("steps", "step_dropped", &PointData::dropped, "1",
                  "1 if the step is the first of its block; such steps do not count"),
        attribute("warm_up_steps", &PointData::warm_up_steps,
                  "how many of the first steps are warm-up"),
        attribute("seed", &PointData::seed, "all randomness comes from it"),
        attribute(
            "reason", &PointData::reason,
            "why not `ok`; empty when `ok`; `budget` where the run had no time for the point"),
        attribute("verification", &PointData::verification,
                  "what was compared, and the largest difference"),
        attribute("communicator_creation", &PointData::communicator_creation,
                  "seconds to make the point's communicators, slowest rank"),
        attribute("folded", &PointData::folded, "true if all streams were played as one"),
        attribute("folded_reason", &PointData::folded_reason, "why"),
        attribute("stopped_because", &PointData::stopped_because, "`precision` or `max-time`"),
        attribute("started", &PointData::started, "when the point began"),
        attribute("ended", &PointData::ended, "when it ended"),
        attribute("graph", &PointData::graph,
                  "`on` when steps were played as one captured graph, else `off`", 1),
        attribute("looks_planned", path(&PointData::looks, &Looks::planned),
                  "interim analyses of the samples that were planned", 3),
        attribute("looks_made", path(&PointData::looks, &Looks::made),
                  "interim analyses that were made", 3),
        attribute("look_growth", path(&PointData::looks, &Looks::growth),
                  "factor by which the samples grow from one interim analysis to the next", 3),
        attribute("warm_up_rule", &PointData::warm_up_rule, "what ended warm-up", 3),
        attribute("measured_seconds", &PointData::measured_seconds,
                  "from the begin of the first step to the end of the last; absent = not known", 3),
        field("injections", &PointData::injections, "text", "injected faults, as given to --inject",
              3),
        attribute("soak_replays", path(&PointData::soak, &Soak::replays),
                  "replays of one step by `--soak`", 5),
        attribute("soak_seconds", path(&PointData::soak, &Soak::seconds), "that they took", 5),
        field("soak_differing", path(&PointData::soak, &Soak::differing), "text",
              "of each replay that differed, which rank did so first, and in what", 5),
        table("gemm_choices", &PointData::gemm_choices, "gemm_choices", 1, "shapes"),
        table("communicators", &PointData::communicators, "communicators", 1, "communicators"),
        table("rows", &PointData::rows, "rows", 2),
        table("op_sums", &PointData::op_sums, "op_sums", 3),
        table("solo_times", &PointData::solo_times, "solo_times", 3),
        table("device_series", &PointData::device_series, "device_series", 3),
        part("ops", &PointData::outline),
        table("traces", &PointData::traces, "traces")});

}  // namespace isoscale::results

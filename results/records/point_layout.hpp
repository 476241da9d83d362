// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>

#include "results/records/fields.hpp"
#include "results/records/layout.hpp"
#include "results/records/run_data.hpp"

/// The fields of a point and of its tables, as in layout.hpp.
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

template <>
inline constexpr auto fields_of<RowData> = std::tuple{
    field("status", &RowData::status, "1", "ok, failed or skipped; index into `values`"),
    field("reason", &RowData::reason, "text", "why not ok"),
    field("wrong", &RowData::wrong, "1",
          "elements that were not what they must be; -1 = not checked"),
    field("calls", &RowData::calls, "1", "calls that one play makes, one after the other"),
    lists("ranks_begin", "ranks of row i are ranks[ranks_begin[i]:ranks_begin[i+1]]; none = all",
          each("ranks", &RowData::ranks, itself, "1", "ranks of the point that took part")),
    Plays{"plays",
          "time_begin",
          "time",
          reach(&RowData::times),
          {"1", "how often each row was played"},
          {"1", "times of row i are time[time_begin[i]:time_begin[i+1]], play after play"},
          {"s", "a whole play on one rank, in the order of the ranks"}},
    lists("call_time_begin",
          "single calls of row i are rows call_time_begin[i] to call_time_begin[i+1]",
          each("call_time", &RowData::call_times, itself, "s",
               "one call, slowest rank, from traced plays")),
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
                     each("time", &SoloTimes::op, itself, "ns",
                          "median duration when nothing communicates; 0 for communication"))};

template <>
inline constexpr auto fields_of<DeviceSeries> = std::tuple{
    field("rank", &DeviceSeries::rank, "1", "rank of the point that sampled"),
    field("device", &DeviceSeries::device, "text", "what was sampled, such as gpu 0"),
    field("quantity", &DeviceSeries::quantity, "text", "which of its quantities"),
    field("unit", &DeviceSeries::unit, "text", "unit of the quantity's values"),
    lists("sample_begin", "samples of row i are rows sample_begin[i] to sample_begin[i+1]",
          each("time", &DeviceSeries::time, itself, "s", "after the point's first step began"),
          each("value", &DeviceSeries::value, itself, "by row", "in the unit of its row"))};

/// A point's experiment, status and labels; a summary has them too.
inline constexpr auto point_facts =
    std::tuple{attribute("index", &PointData::index),
               attribute("workload", &PointData::workload),
               attribute("model", &PointData::model),
               attribute("dtype", &PointData::dtype),
               attribute("mesh_tp", path(&PointData::mesh, &mesh::Shape::tp)),
               attribute("mesh_cp", path(&PointData::mesh, &mesh::Shape::cp)),
               attribute("mesh_ep", path(&PointData::mesh, &mesh::Shape::ep)),
               attribute("mesh_dp", path(&PointData::mesh, &mesh::Shape::dp)),
               attribute("mesh_pp", path(&PointData::mesh, &mesh::Shape::pp)),
               attribute("ranks", &PointData::ranks),
               attribute("nodes", &PointData::nodes),
               attribute("scaling", &PointData::scaling),
               attribute("placement", &PointData::placement),
               pairs("options", &PointData::options),
               pairs("model_shape", &PointData::model_shape),
               attribute("status", &PointData::status),
               attribute("verified", &PointData::verified),
               attribute("throughput_unit", &PointData::throughput_unit),
               attribute("work_per_step", &PointData::work_per_step),
               field("labels", &PointData::labels, "text",
                     "what sets this point apart, such as oversubscribed")};

/// The fields of a point that have an entry for each of its ranks, or none.
inline constexpr auto fields_by_rank = std::tuple{
    field("world_rank", &PointData::world_rank, "1",
          "rank in the launch of each rank of the point"),
    field("flop_of_rank", &PointData::flop_of_rank, "FLOP",
          "matrix-multiplication work of one step, per rank"),
    field("memory_of_rank", &PointData::memory_of_rank, "B", "storage taken, per rank"),
    field("host_memory_of_rank", &PointData::host_memory_of_rank, "B",
          "part of memory_of_rank in pinned and pageable buffers of the host", 6),
    field("peak_live_microbatches", &PointData::peak_live_microbatches, "1",
          "most microbatches with a live forward activation at once, per rank"),
    field("clock_offset", &PointData::clock_offset, "s",
          "clock of each rank minus that of rank 0; already applied to the traces"),
    field("clock_error", &PointData::clock_error, "s", "bound on the error of clock_offset"),
    field("clock_drift", &PointData::clock_drift, "1",
          "seconds a second by which each rank's clock runs ahead of that of rank 0; already "
          "applied to the traces",
          3)};

/// All fields of a point except its ops and traces (op_records.hpp).
template <>
inline constexpr auto fields_of<PointData> = std::tuple_cat(
    point_facts, fields_by_rank,
    std::tuple{attribute("warm_up_steps", &PointData::warm_up_steps),
               field("step_times", &PointData::step_times, "s",
                     "duration of each step (row) on each rank (column), warm-up included"),
               field("step_traced", &PointData::traced, "1",
                     "1 where the step recorded spans: not for step times"),
               field("step_dropped", &PointData::dropped, "1",
                     "1 where the step is the first of its block: for nothing"),
               attribute("seed", &PointData::seed),
               attribute("reason", &PointData::reason),
               attribute("verification", &PointData::verification),
               attribute("communicator_creation", &PointData::communicator_creation),
               attribute("folded", &PointData::folded),
               attribute("folded_reason", &PointData::folded_reason),
               attribute("stopped_because", &PointData::stopped_because),
               attribute("started", &PointData::started),
               attribute("ended", &PointData::ended),
               attribute("graph", &PointData::graph, 1),
               attribute("looks_planned", path(&PointData::looks, &Looks::planned), 3),
               attribute("looks_made", path(&PointData::looks, &Looks::made), 3),
               attribute("look_growth", path(&PointData::looks, &Looks::growth), 3),
               attribute("warm_up_rule", &PointData::warm_up_rule, 3),
               attribute("measured_seconds", &PointData::measured_seconds, 3),
               field("injections", &PointData::injections, "text",
                     "injected faults, as given to --inject", 3),
               attribute("soak_replays", path(&PointData::soak, &Soak::replays), 5),
               attribute("soak_seconds", path(&PointData::soak, &Soak::seconds), 5),
               field("soak_differing", path(&PointData::soak, &Soak::differing), "text",
                     "of each replay that differed, which rank did so first, and in what", 5),
               table("gemm_choices", &PointData::gemm_choices, "gemm_choices", 1),
               table("communicators", &PointData::communicators, "communicators", 1),
               table("rows", &PointData::rows, "rows", 2),
               table("op_sums", &PointData::op_sums, "op_sums", 3),
               table("solo_times", &PointData::solo_times, "solo_times", 3),
               table("device_series", &PointData::device_series, "device_series", 3)});

}  // namespace isoscale::results

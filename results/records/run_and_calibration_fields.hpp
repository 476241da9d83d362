// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "results/records/composite_fields.hpp"
#include "results/records/run_data.hpp"

/// The layout of a run file: the fields of each record. Those of points are in
/// point_fields.hpp. tests/unit/schema_page.cpp makes the tables of SCHEMA.md from these
/// fields.
namespace isoscale::results {

inline constexpr std::string_view format_name = "isoscale-run";
inline constexpr std::string_view part_format_name = "isoscale-run-part";

/// Returns the name of a point's group under /points.
[[nodiscard]] std::string point_group_name(int index);

/// Returns the unit of a numeric fact of a rank, by the first rule that fits its key: "Hz" if it
/// contains "_clock"; "W" if it contains "_power"; "B" if it contains "memory_" or ends in
/// "_cache"; "s" if it ends in "_seconds"; else "1".
[[nodiscard]] std::string_view unit_of_fact(std::string_view key);

/// Returns the unit of a row's number by its key: "B" for bytes and keys that end in _bytes; "FLOP"
/// for flop; "Hz" for sm_clock and sm_clock_min; "s" for estimate, first_call and keys that end in
/// _seconds; else "1".
[[nodiscard]] std::string_view unit_of_number(std::string_view key);

template <>
inline constexpr std::size_t code_count<program::OpKind> = program::op_kind_count;
template <>
inline constexpr std::size_t code_count<program::Phase> = program::phase_count;
template <>
inline constexpr std::size_t code_count<mesh::Axis> = mesh::axis_count;
template <>
inline constexpr std::size_t code_count<PointStatus> = 3;
template <>
inline constexpr std::size_t code_count<Verdict> = all_verdicts.size();
template <>
inline std::vector<std::string> code_names<program::Direction>() {
  return {"send", "receive"};
}

// The records of a run follow.

template <>
inline constexpr auto fields_of<RankFacts> = std::tuple{
    field("rank", &RankFacts::rank, "1", "rank in the launch"),
    field("node", &RankFacts::node, "1", "number of the node the rank is on"),
    field("host", &RankFacts::host, "text", "name of that node"),
    keys("text", &RankFacts::text, nullptr, "fact of each rank; empty = not known"),
    keys("number", &RankFacts::number, unit_of_fact, "fact of each rank; NaN = not known")};

using Variable = std::pair<std::string, std::string>;

template <>
inline constexpr auto fields_of<Variable> = std::tuple{
    field("name", &Variable::first, "text", "environment variables of rank 0 that were set"),
    field("value", &Variable::second, "text", "their values, in the same order")};

inline constexpr auto run_status =
    attribute("status",
              converted(
                  &RunData::complete,
                  [](bool complete) { return std::string{complete ? "complete" : "partial"}; },
                  [](const std::string& status, bool& complete) {
                    complete = status == "complete";
                    require(complete || status == "partial",
                            "attribute 'status' has the unknown value '{}'", status);
                  }),
              "`complete` or `partial`");

/// The fields that identify a run; a summary (appended_summary.hpp) has them too.
inline constexpr auto run_identity = std::tuple{
    attribute("id", &RunData::id, "unique and random"),
    attribute("created", &RunData::created, "when the run began"),
    attribute("ended", &RunData::ended,
              "when it ended; empty while it runs, or when it was killed"),
    run_status,
    attribute("isoscale_version", &RunData::isoscale_version, "version of the program"),
    attribute(
        "git_hash", &RunData::git_hash,
        "commit it was built from; `-dirty` with local changes, `unknown` outside a checkout"),
    attribute("device", &RunData::device, "`host` or `cuda`"),
    attribute("ranks", &RunData::ranks, "ranks of the launch"),
    attribute("nodes", &RunData::nodes, "nodes of the launch"),
    attribute("planned", &RunData::planned, "points that the run was to measure; 0 = not known",
              9)};

/// The fields that may change until a run ends, in addition to its end time and status.
inline constexpr auto run_end =
    std::tuple{field("warnings", &RunData::warnings, "text",
                     "what a reader of the results should know, one sentence each"),
               part("calibration", &RunData::calibration, 2)};

/// The compiler, libraries and command line of a run; the JSON report has them under `system`.
inline constexpr auto run_software = std::tuple{
    attribute("compiler", &RunData::compiler, "name and version"),
    attribute("build_type", &RunData::build_type, "CMake's, such as `Release`"),
    attribute("device_detail", &RunData::device_detail, "libraries or device behind it"),
    attribute("mpi_library", &RunData::mpi_library, "the MPI library's own version text"),
    field("command_line", &RunData::command_line, "text", "as typed, shell-quoted")};

/// All fields of a run except its points.
template <>
inline constexpr auto fields_of<RunData> = std::tuple_cat(
    run_identity, run_software,
    std::tuple{
        field("config", &RunData::config_toml, "text", "the whole run configuration as TOML"),
        table("ranks", &RunData::rank_facts, "ranks", 0, "ranks"),
        table("environment", &RunData::environment, "environment", 0, "variables"),
        part("preflight", &RunData::preflight, 4)},
    run_end);

template <>
inline constexpr auto fields_of<CheckResult> = std::tuple{
    field("name", &CheckResult::name, "text", "of the check, as --allow takes it"),
    field("verdict", &CheckResult::verdict, "1", "code of the verdict"),
    field("host", &CheckResult::host, "text", "hosts that it is about; empty = the whole job"),
    field("device", &CheckResult::device, "text", "GPU, port or rank; empty = none"),
    field("what", &CheckResult::what, "text", "what was found, or compared"),
    field("cost", &CheckResult::cost, "text", "what it costs; empty = nothing"),
    field("fix", &CheckResult::fix, "text", "what to do; empty = nothing"),
    field("allowed", &CheckResult::allowed, "1", "1 = a stop that --allow let pass")};

template <>
inline constexpr auto fields_of<PreflightData> = std::tuple{
    table("", &PreflightData::results, "preflight", 0, "checks"),
    field("facts", &PreflightData::facts, "text", "the facts that were judged, as JSON")};

// The records of the calibration follow.

/// The fields that CalibrationCurve and CalibrationGrowth share.
template <class Row>
inline constexpr auto kind_fields =
    std::tuple{field("op", &Row::op, "text", "collective, or p2p"),
               field("dtype", &Row::dtype, "text", "element type"),
               field("class", &Row::link_class, "text", "link class"),
               field("implementation", &Row::implementation, "text", "library, ring, tree, ...")};

/// Stores the number of nodes of a curve's group; 0 stands for an absent number.
inline constexpr auto curve_nodes = converted(
    &CalibrationCurve::nodes, [](std::optional<int> nodes) { return nodes.value_or(0); },
    [](int stored, std::optional<int>& nodes) {
      nodes = stored > 0 ? std::optional{stored} : std::nullopt;
    });

template <>
inline constexpr auto fields_of<CalibrationCurve> = std::tuple_cat(
    kind_fields<CalibrationCurve>,
    std::tuple{
        field("labels", &CalibrationCurve::labels, "text", "labels of the points it rests on"),
        field("form", &CalibrationCurve::form, "text",
              "interpolation between sizes: log (of time over size) or linear"),
        field("members", &CalibrationCurve::members, "1", "ranks of a group"),
        field("nodes", curve_nodes, "1", "nodes that a group is on; 0 = not known"),
        interval("latency", "latency_lower", "latency_upper", &CalibrationCurve::latency, "s",
                 "time of the smallest sizes; NaN = the measured sizes do not show it"),
        interval("bandwidth", "bandwidth_lower", "bandwidth_upper", &CalibrationCurve::bandwidth,
                 "B/s", "algbw of very large sizes; NaN = the measured sizes do not show it"),
        field("error", &CalibrationCurve::error, "1",
              "a predicted time t is expected between t / (1 + error) and t (1 + error)"),
        lists(
            "sample_begin", "where each curve's samples begin", &CalibrationCurve::samples,
            field("sample_bytes", &CurveSample::bytes, "B", "size of one call"),
            field("sample_time", &CurveSample::time, "s", "one call, median as measured"),
            field("sample_fitted", &CurveSample::fitted, "s",
                  "one call by the curve; the residual is time / fitted - 1"),
            field(
                "sample_held_out", &CurveSample::held_out, "1",
                "time predicted from the other sizes over the measured one, minus 1; NaN = end"))});

template <>
inline constexpr auto fields_of<CalibrationGrowth> = std::tuple_cat(
    kind_fields<CalibrationGrowth>,
    std::tuple{field("law", &CalibrationGrowth::law, "text",
                     "law of the latency: log2 n or n; empty = not known"),
               field("base", &CalibrationGrowth::base, "s", "latency = base + slope * law"),
               field("slope", &CalibrationGrowth::slope, "s", "latency = base + slope * law"),
               field("bandwidth_factor", &CalibrationGrowth::bandwidth_factor, "1",
                     "bandwidth among the most ranks over that among the fewest"),
               lists("count_begin", "where each row's counts begin",
                     zipped(&CalibrationGrowth::members, &CalibrationGrowth::latency,
                            &CalibrationGrowth::bandwidth),
                     field("count_members", element<0>, "1", "ranks of a group"),
                     field("count_latency", element<1>, "s", "latency among them; NaN = not known"),
                     field("count_bandwidth", element<2>, "B/s",
                           "bandwidth among them; NaN = not known"))});

/// The fields that GemmRate and GemmCeiling share.
template <class Row>
inline constexpr auto shape_fields =
    std::tuple{field("dtype", &Row::dtype, "text", "element type"),
               field("cache", &Row::cache, "text", "cold or warm"),
               field("labels", &Row::labels, "text", "labels of the points it rests on"),
               field("m", &Row::m, "1", "rows of the product"),
               field("n", &Row::n, "1", "columns of the product"),
               field("k", &Row::k, "1", "inner extent"),
               field("batch", &Row::batch, "1", "products in one call"),
               field("rate", &Row::rate, "FLOP/s", "of one rank, median")};

template <>
inline constexpr auto fields_of<GemmRate> = std::tuple_cat(
    shape_fields<GemmRate>,
    std::tuple{field("held_out", &GemmRate::held_out, "1",
                     "rate predicted from the other shapes over the measured one, minus 1; NaN = "
                     "none")});

template <>
inline constexpr auto fields_of<GemmCeiling> = std::tuple_cat(
    shape_fields<GemmCeiling>,
    std::tuple{field("error", &GemmCeiling::error, "1",
                     "a predicted rate r is expected between r / (1 + error) and r (1 + error)")});

template <>
inline constexpr auto fields_of<CalibrationData> =
    std::tuple{attribute("device", &CalibrationData::device, "`host` or `cuda`"),
               table("curves", &CalibrationData::curves, "calibration/curves", 0, "curves"),
               table("growth", &CalibrationData::growth, "calibration/growth"),
               table("gemms", &CalibrationData::gemms, "calibration/gemms", 0, "shapes"),
               table("ceilings", &CalibrationData::ceilings, "calibration/ceilings", 0, "types")};

}  // namespace isoscale::results

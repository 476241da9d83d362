// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/advice/findings.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/record_json.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "analysis/render/table_cells.hpp"
#include "results/records/point_facts.hpp"
#include "results/records/run_and_calibration_fields.hpp"

/// Writes the JSON report, and the CSV report from the same JSON objects. A CSV line is made from
/// the JSON objects of a run, a point and a row; lists such as run_columns name the columns made
/// from one of these objects, and the paths of their values in it.
namespace isoscale::analysis::render {
namespace {

Json system_json(const results::RunData& run) {
  Json environment = Json::object();
  for (const auto& [name, value] : run.environment) environment[name] = value;
  Json object = record_json(run, results::run_software);
  object["git_hash"] = text_or_null(run.git_hash);
  object["environment"] = environment;
  object["ranks"] = list_json(run.rank_facts, [](auto& facts) { return record_json(facts); });
  return object;
}

Json baseline_json(const Curve& curve) {
  return {{"baseline", number_or_null(curve.baseline)},
          {"baseline_unit", curve.per_node ? "node" : "rank"},
          {"baseline_name", text_or_null(baseline_name(curve))},
          {"baseline_unsure", has_unsure_baseline(curve)}};
}

Json laws_json(const efficiency::Laws& laws) {
  Json usl;
  if (laws.usl) {
    usl = {{"contention", located_json(std::optional{laws.usl->contention})},
           {"coherency", located_json(std::optional{laws.usl->coherency})},
           {"peak", number_or_null(laws.usl->peak)}};
  }
  return {{"amdahl", located_json(laws.amdahl)},
          {"gustafson", located_json(laws.gustafson)},
          {"usl", usl}};
}

Json launch_json(const merge::LaunchPoint& at) {
  return {{"run", at.run->data->id},
          {"file", at.run->file},
          {"index", at.point->data->index},
          {"step_time", time_json(at.point->step_time, "steps")},
          {"throughput", number_or_null(at.point->throughput)},
          {"verified", number_or_null(at.point->data->verified)}};
}

/// Returns the object of a point joined over several launches. Its breakdown is that of the typical
/// launch, whose step time is nearest to the median over launches. Its losses are relative to the
/// baseline of the joined curve; the report of the single launch has losses relative to the
/// launch's own baseline.
Json launched_point_json(const PointReport& point, std::span<const merge::LaunchPoint> launches) {
  Json object =
      object_of<PointReport>(point_metrics(), point, "ranks nodes ranks_per_node mesh axes labels");
  object["launches"] = list_json(launches, [&](const merge::LaunchPoint& at) {
    Json launch = launch_json(at);
    // The breakdown and causes of the joined point are those of its typical launch.
    launch["typical"] = at.point->data == point.data;
    return launch;
  });
  object.update(object_of<PointReport>(
      point_metrics(), point,
      "step_time spread throughput speedup speedup_interval efficiency work_growth"));
  object["throughput"]["unit"] = point.throughput_unit;
  object["launch"] = point.launch;
  object.update(object_of<PointReport>(
      point_metrics(), point,
      "traced_step breakdown hidden_communication hidden_transfer breakdown_missing pop "
      "waterfall serial_fraction"));
  return object;
}

Json unused_launch_json(const merge::LeftOut& left_out) {
  Json row = launch_json(left_out.at);
  row["ranks"] = left_out.at.point->data->ranks;
  row["reason"] = left_out.reason;
  return row;
}

Json joined_curve_json(const merge::JoinedCurve& joined) {
  Json points = Json::array();
  for (std::size_t i = 0; i < joined.launches.size(); ++i) {
    points.push_back(launched_point_json(joined.curve.points[i], joined.launches[i]));
  }
  Json object = experiment_head_json(joined.experiment);
  object.update(baseline_json(joined.curve));
  object.update(Json{{"fingerprint", joined.fingerprint},
                     {"title", joined.curve.title},
                     {"model_numbers", joined.experiment.numbers},
                     {"settings", joined.experiment.settings},
                     {"machine", joined.machine},
                     {"apart", joined.apart},
                     {"points", points},
                     {"left_out", list_json(joined.left_out, unused_launch_json)},
                     {"laws", laws_json(joined.curve.laws)}});
  return object;
}

Json evidence_json(const advice::Evidence& at) {
  return {{"ranks", at.ranks > 0 ? Json(at.ranks) : Json{}},
          {"what", at.what},
          {"value", at.unit == Unit::text ? Json(at.text) : Json(at.value)},
          {"unit", name(at.unit)},
          {"text", value_text(at)}};
}

/// Returns one object for each finding. Its severity, size and curve, and the ranks of each entry
/// of its evidence, are null if they are absent.
Json findings_json(std::span<const advice::Finding> findings) {
  return list_json(findings, [](const advice::Finding& at) {
    return Json{{"rule", at.rule},
                {"concern", name(at.concern)},
                {"severity", value_json(at.severity)},
                {"size", value_json(at.size)},
                {"curve", value_json(at.curve)},
                {"ranks", at.ranks},
                {"sentence", at.sentence},
                {"evidence", list_json(at.evidence, evidence_json)},
                {"next_step", at.next_step},
                {"source", at.source}};
  });
}

Json launch_curve_json(const Curve& curve) {
  Json object{{"title", curve.title}};
  object.update(baseline_json(curve));
  object["points"] =
      list_json(curve.points, [](const PointReport& point) { return Json(point.data->index); });
  object["laws"] = laws_json(curve.laws);
  return object;
}

Json run_json(const RunReport& report) {
  const results::RunData& run = *report.data;
  std::vector<const PointReport*> points;
  for (const Curve& curve : report.curves) {
    for (const PointReport& point : curve.points) points.push_back(&point);
  }
  for (const PointReport& point : report.benches) points.push_back(&point);
  std::ranges::stable_sort(points, {}, [](const PointReport* at) { return at->data->index; });
  const std::vector<Inference> inferences = inferences_of(report);
  Json rows = Json::array();
  for (const PointReport* const point : points) {
    rows.push_back(object_of<PointReport>(point_metrics(), *point));
    add_inferences_json(inferences, *point, rows.back());
  }
  Json object = run_head_json(run, report.file);
  object.update(Json{{"warnings", run.warnings},
                     {"altered", Json::array()},  // always empty: altered files are not read
                     {"system", system_json(run)},
                     {"preflight", run.preflight ? checks_json(*run.preflight) : Json{}},
                     {"points", rows},
                     {"curves", list_json(report.curves, launch_curve_json)},
                     {"findings", findings_json(advice::findings_of(report))},
                     {"findings_left_out", left_out_json(advice::left_out_of(report))},
                     {"calibration", calibration_json(report.calibration)}});
  return object;
}

constexpr std::string_view run_columns =
    "run=id file created isoscale_version device run_ranks=ranks run_nodes=nodes run_status=status";
constexpr std::string_view point_columns =
    "index workload model dtype dp=mesh/dp tp=mesh/tp pp=mesh/pp cp=mesh/cp ep=mesh/ep ranks nodes "
    "scaling placement options labels status reason verified step_time_median=step_time/median "
    "step_time_lower=step_time/lower step_time_upper=step_time/upper step_time_min=step_time/min "
    "step_time_max=step_time/max steps=step_time/steps throughput=throughput/value "
    "throughput_unit=throughput/unit speedup efficiency flop_per_step flops_per_rank mfu "
    "memory_per_rank device_memory_per_rank host_memory_per_rank samples_per_second "
    "energy_per_step traced_step compute=parts/compute copies=parts/copies transfer=parts/transfer "
    "wait=parts/wait bubble=parts/bubble gap=parts/gap other=parts/other hidden_communication "
    "communication_ratio instrumentation_overhead hidden_transfer";
constexpr std::string_view row_columns =
    "row_status=status row_reason=reason row_dtype=text/dtype op=text/op reduction=text/reduction "
    "in_place=text/in_place implementation=text/implementation axis=text/axis groups=text/groups "
    "algorithm=text/algorithm protocol=text/protocol registration=text/registration "
    "class=text/class cache=text/cache origin=text/origin kind=text/kind together=text/together "
    "part=text/part collective=text/collective pair=text/pair bytes=number/bytes "
    "count=number/count root=number/root members=number/members m=number/m n=number/n k=number/k "
    "batch=number/batch flop=number/flop src=number/src dst=number/dst numa=number/numa "
    "estimate=number/estimate plays=time/plays calls=time/calls time_median=time/median "
    "time_lower=time/lower time_upper=time/upper time_min=time/min time_max=time/max "
    "time_p99=time/p99 algbw busbw flops bandwidth wrong layout=text/layout";
constexpr std::string_view joined_columns =
    "ranks_per_node_fewest=ranks_per_node/fewest ranks_per_node_most=ranks_per_node/most "
    "axes=axes_text curve=joined/fingerprint launches=joined/launches "
    "joined_step_time=joined/step_time/median joined_step_time_lower=joined/step_time/lower "
    "joined_step_time_upper=joined/step_time/upper joined_spread=joined/spread "
    "joined_throughput=joined/throughput/value joined_speedup=joined/speedup "
    "joined_efficiency=joined/efficiency left_out=joined/left_out";
constexpr std::string_view infer_columns =
    "prompt=number/prompt output=number/output position=number/position tokens=number/tokens "
    "replicas=number/replicas cache_bytes=number/cache_bytes tokens_per_second "
    "tokens_per_second_per_rank on_frontier saturated=text/saturated highest=text/highest";
/// The columns made from the numbers in rows of the workload `serve`.
constexpr std::string_view serve_columns =
    "rate offered achieved requests utilisation imbalance requests_per_batch backlog "
    "backlog_growth request replica arrival=arrival_seconds "
    "dispatched=dispatched_seconds start=start_seconds first=first_seconds end=end_seconds "
    "latency_median=latency_median_seconds latency_p90=latency_p90_seconds "
    "latency_p99=latency_p99_seconds latency_max=latency_max_seconds "
    "ttft_median=ttft_median_seconds ttft_p99=ttft_p99_seconds tpot_median=tpot_median_seconds "
    "queueing_median=queueing_median_seconds queueing_p99=queueing_p99_seconds";

/// Returns the curve joined over launches to which a launch's point belongs, and the results of the
/// joined point unless the launch's point was left out of it; null if there is no such curve.
Json place_json(const merge::Joined& joined, const PointReport& point) {
  const std::optional<merge::JoinedPlace> place = merge::place_of(joined, point);
  if (!place) return {};
  Json object{{"fingerprint", place->curve->fingerprint}, {"left_out", place->left_out}};
  if (place->joined == nullptr) return object;
  object["launches"] = place->launches;
  object.update(object_of<PointReport>(point_metrics(), *place->joined,
                                       "step_time spread throughput speedup efficiency"));
  return object;
}

/// Returns the JSON object from which a point's CSV line is made. It also has values that only CSV
/// shows, such as parts of a breakdown of which only a bound is known.
Json line_json(const merge::Joined& joined, const PointReport& point) {
  Json object = object_of<PointReport>(point_metrics(), point);
  object["joined"] = place_json(joined, point);
  object["axes_text"] = axes_text(point);
  object["energy_per_step"] = number_or_null(point.devices.energy.joules_per_step);
  if (!point.breakdown.mean) return object;
  for (const Category& category : categories()) {
    object["parts"][std::string{category.name}] = *point.breakdown.mean.*category.seconds;
  }
  return object;
}

/// Returns the JSON object of one row of a micro-benchmark: its texts, numbers and results. A
/// decode row of the workload infer also gets its tokens per second, and whether its batch size
/// and mesh are on the Pareto frontier of time per token and throughput.
Json row_json(const PointReport& point, const microbench::RowReport& row,
              const std::vector<Inference>& all) {
  const results::RowData& data = *row.data;
  Json object{{"text", data.text}, {"number", data.number}};
  object.update(object_of<microbench::RowReport>(
      row_metrics(), row, "status reason time algbw busbw flops bandwidth wrong"));
  if (!row.time) object["time"].erase("plays");
  for (const std::string key : {"src", "dst"}) {
    const auto rank = number_of(data, key);
    if (rank) object[key + "_world_rank"] = world_rank(*point.data, static_cast<int>(*rank));
  }
  if (const auto at = std::ranges::find(all, &data, &Inference::decode); at != all.end()) {
    object["tokens_per_second"] = number_or_null(at->tokens_per_second);
    object["tokens_per_second_per_rank"] = number_or_null(at->tokens_per_second_per_rank);
    object["on_frontier"] = at->on_frontier ? "yes" : "no";
  }
  return object;
}

/// Returns the cells of a CSV line. `others` names further metrics of the point as columns.
std::vector<CsvCell> cells_of(const Json& run, const Json& point, const Json& row,
                              std::string_view others) {
  std::vector<CsvCell> cells;
  add_csv_cells(cells, run, run_columns);
  add_csv_cells(cells, point, point_columns);
  add_csv_cells(cells, row, row_columns);
  add_csv_cells(cells, point, joined_columns);
  add_csv_cells(cells, row, infer_columns);
  add_csv_cells(cells, row.is_object() ? row["number"] : Json{}, serve_columns);
  add_csv_cells(cells, point, "work_growth");
  add_csv_cells(cells, row, "src_world_rank dst_world_rank");
  add_csv_cells(cells, point, others);
  return cells;
}

}  // namespace

Json left_out_json(std::span<const advice::NotJudged> left_out) {
  return list_json(left_out, [](const advice::NotJudged& at) {
    return Json{{"curve", at.curve}, {"ranks", at.ranks}, {"why", at.why}};
  });
}

Json report_json(const merge::Report& whole) {
  Json object{{"schema_version", report_schema_version},
              {"runs", list_json(whole.runs, run_json)},
              {"curves", list_json(whole.joined.curves, joined_curve_json)},
              {"findings", findings_json(advice::findings_of(whole))},
              {"findings_left_out", left_out_json(advice::left_out_of(whole))},
              {"warnings", whole.warnings},
              {"index_only", false}};
  object.update(index_json(whole.index));
  return object;
}

std::string render_json(const merge::Report& report) { return dumped(report_json(report)); }

std::string render_csv(const merge::Report& whole) {
  const std::string others = completed<PointReport>(point_metrics(), "...", in_csv, point_columns);
  std::string text = csv_heading(cells_of({}, {}, {}, others));
  for (const RunReport& report : whole.runs) {
    const Json run = run_head_json(*report.data, report.file);
    const std::vector<Inference> inferences = inferences_of(report);
    const auto add = [&](const Json& point, const Json& row) {
      text += csv_values(cells_of(run, point, row, others));
    };
    for (const Curve& curve : report.curves) {
      for (const PointReport& point : curve.points) add(line_json(whole.joined, point), {});
    }
    for (const PointReport& point : report.benches) {
      const Json line = line_json(whole.joined, point);
      for (const microbench::RowReport& row : point.bench->rows) {
        add(line, row_json(point, row, inferences));
      }
      if (point.bench->rows.empty()) add(line, {});
    }
  }
  return text;
}

}  // namespace isoscale::analysis::render

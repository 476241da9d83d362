// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/catalog/run_index.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/report.hpp"
#include "bench_samples.hpp"
#include "matchers.hpp"
#include "program/outline.hpp"
#include "timeline/timeline.hpp"

/// Hand-made programs, traces and points for the tests of the analysis, and runs and launches for
/// those of reports.
namespace isoscale::samples {

/// Writes an outline op by op.
class Script {
 public:
  Script& compute(program::StreamId stream = 0) { return op(program::OpKind::gemm, stream); }
  Script& copy(program::StreamId stream = 0) { return op(program::OpKind::copy, stream); }
  Script& op(program::OpKind kind, program::StreamId stream = 0) {
    program::OutlineOp& op = outline_.ops.emplace_back();
    op.kind = kind;
    op.stream = stream;
    return *this;
  }
  Script& all_reduce(mesh::AxisSet axes, program::StreamId stream = 0) {
    op(program::OpKind::all_reduce, stream);
    outline_.ops.back().axes = axes;
    outline_.ops.back().bytes = 64;
    return *this;
  }
  /// One message to or from the neighbour `offset` along pp, as an exchange of its own.
  Script& send(int offset, program::StreamId stream = 0) {
    return exchange(program::Direction::send, offset, stream);
  }
  Script& receive(int offset, program::StreamId stream = 0) {
    return exchange(program::Direction::receive, offset, stream);
  }
  /// The op just added waits for the first `count` ops of `stream`.
  Script& after(program::StreamId stream, std::uint32_t count) {
    program::OutlineOp& op = outline_.ops.back();
    if (op.wait_count == 0) op.wait_begin = static_cast<std::uint32_t>(outline_.waits.size());
    ++op.wait_count;
    outline_.waits.push_back({.stream = stream, .count = count});
    return *this;
  }
  [[nodiscard]] program::Outline outline() const {
    program::Outline result = outline_;
    result.streams = {"compute", "second", "third"};
    return result;
  }

 private:
  Script& exchange(program::Direction direction, int offset, program::StreamId stream) {
    this->op(program::OpKind::exchange, stream);
    program::OutlineOp& op = outline_.ops.back();
    op.axes = mesh::Axis::pp;
    op.bytes = 64;
    op.transfer_begin = static_cast<std::uint32_t>(outline_.transfers.size());
    op.transfer_count = 1;
    outline_.transfers.push_back(
        {.direction = direction, .axis = mesh::Axis::pp, .offset = offset, .bytes = 64});
    return *this;
  }

  program::Outline outline_;
};

/// Begin and end of each op of a rank; nanoseconds.
using Spans = std::vector<std::pair<int, int>>;

/// A rank's step from begin to end.
inline timeline::StepTrace trace(int rank, std::pair<int, int> step, const Spans& spans) {
  timeline::StepTrace result{.rank = rank,
                             .step = 0,
                             .begin = units::Nanoseconds{step.first},
                             .end = units::Nanoseconds{step.second},
                             .spans = {}};
  for (const auto& [start, end] : spans) {
    result.spans.push_back({.op = static_cast<std::uint32_t>(result.spans.size()),
                            .start = units::Nanoseconds{start},
                            .end = units::Nanoseconds{end}});
  }
  return result;
}

/// A step of all ranks from begin to end; spans[rank].
inline timeline::Timeline step(std::pair<int, int> from_to, const std::vector<Spans>& spans) {
  timeline::Timeline result;
  for (const auto& of_rank : spans) {
    result.ranks.push_back(trace(static_cast<int>(result.ranks.size()), from_to, of_rank));
  }
  return result;
}

/// A point with one outline per rank, aligned clocks, and one traced step.
inline results::PointData point(const mesh::Shape& shape, const std::vector<Script>& ranks,
                                timeline::Timeline step) {
  results::PointData result;
  result.mesh = shape;
  result.ranks = shape.size();
  result.outline.mesh = shape;
  for (const Script& script : ranks) {
    result.outline.outline_of_rank.push_back(
        static_cast<std::uint32_t>(result.outline.outlines.size()));
    result.outline.outlines.push_back(script.outline());
  }
  result.clock_offset.assign(ranks.size(), 0.0);
  result.clock_error.assign(ranks.size(), 0.0);
  result.traces.push_back(std::move(step));
  return result;
}

/// A point that is ok, of `ranks` ranks along `axis`; `step` seconds for a step, 20 times.
inline results::PointData measured(int index, mesh::Shape shape, double step) {
  results::PointData point = bench_point(index, "dp", shape.size());
  point.model = "tiny";
  point.mesh = shape;
  point.options = {{"batch", "16"}, {"microbatch", "2"}, {"overlap", "on"}};
  point.throughput_unit = "tokens/s";
  point.work_per_step = 1024;
  point.flop_of_rank.assign(static_cast<std::size_t>(point.ranks), 1.2e9 / point.ranks);
  point.memory_of_rank.assign(static_cast<std::size_t>(point.ranks), 64e6);
  // Two steps of warm-up, then 20 whose times lie 1% around `step` and do not correlate.
  for (int i = 0; i < 22; ++i) {
    const double off = 0.001 * ((i * 8) % 21 - 10);
    std::vector<double> of_rank(static_cast<std::size_t>(point.ranks), step * 0.5);
    of_rank.back() = i < 2 ? step * 9 : step * (1 + off);
    point.step_times.push_back(of_rank);
  }
  point.warm_up_steps = 2;
  point.traced.assign(22, 0);
  point.dropped.assign(22, 0);
  return point;
}

/// Adds four traced steps, each `factor` as long as the untraced ones, the first of them dropped.
inline void add_traced_steps(results::PointData& point, double step, double factor) {
  for (int i = 0; i < 4; ++i) {
    const double time = i == 0 ? step * 50 : step * factor;
    point.step_times.emplace_back(static_cast<std::size_t>(point.ranks), time);
    point.traced.push_back(1);
    point.dropped.push_back(i == 0 ? 1 : 0);
  }
}

/// Multiplies the time of each step on each rank.
inline void slow_down(results::PointData& point, double factor) {
  for (auto& step : point.step_times) {
    for (double& time : step) time *= factor;
  }
}

/// Gives the point the program and trace of another one, made by point() or by hand.
inline void set_trace(results::PointData& point, results::PointData from) {
  for (timeline::Timeline& step : from.traces) {
    for (timeline::StepTrace& trace : step.ranks) {
      trace.step = static_cast<std::uint32_t>(point.step_times.size()) - 1;
    }
  }
  point.outline = std::move(from.outline);
  point.traces = std::move(from.traces);
  point.clock_offset = std::move(from.clock_offset);
  point.clock_error = std::move(from.clock_error);
}

/// A point without steps, on which all ranks play the one program of `script`.
inline results::PointData alike(const mesh::Shape& shape, const Script& script) {
  const auto ranks = static_cast<std::size_t>(shape.size());
  results::PointData result = point(shape, std::vector<Script>(ranks, script), {});
  result.outline.outlines.resize(1);
  result.outline.outline_of_rank.assign(ranks, 0);
  result.traces.clear();
  return result;
}

/// A point that is ok, on which all ranks play `script` in a traced step of 1000 ns. Rank r has
/// spans[r % spans.size()]; ranks whose spans are empty were not traced.
inline results::PointData traced_point(const mesh::Shape& shape, const Script& script,
                                       const std::vector<Spans>& spans) {
  timeline::Timeline traced;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const Spans& own = spans[static_cast<std::size_t>(rank) % spans.size()];
    if (!own.empty()) traced.ranks.push_back(trace(rank, {0, 1000}, own));
  }
  results::PointData program = alike(shape, script), made = measured(0, shape, 1e-6);
  program.traces = {std::move(traced)};
  set_trace(made, std::move(program));
  add_traced_steps(made, 1e-6, 1.0);
  return made;
}

/// Adds a traced step, numbered as the next.
inline void add_step(results::PointData& point, timeline::Timeline step) {
  const auto number = static_cast<std::uint32_t>(point.traces.size());
  for (timeline::StepTrace& rank : step.ranks) rank.step = number;
  point.traces.push_back(std::move(step));
}

/// Adds the sums of 20 traced steps, in which the GEMMs of rank `slow` take `factor` times as long
/// from step `first` on.
inline void add_gemm_sums(results::PointData& point, int slow, double factor, int first = 0) {
  for (int step = 0; step < 20; ++step) {
    results::OpSums& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(step);
    for (int rank = 0; rank < point.ranks; ++rank) {
      // A spread that is the same in every test, and no two samples alike.
      const double jitter = 1 + 0.001 * ((step * 7 + rank * 3) % 11);
      sums.gemm.push_back(jitter * (rank == slow && step >= first ? factor : 1));
    }
  }
}

/// Returns the times of a rank's ops when played alone; nanoseconds by op.
inline results::SoloTimes solo(int rank, const std::vector<int>& times) {
  results::SoloTimes result{.rank = rank};
  for (const int time : times) result.op.emplace_back(time);
  return result;
}

inline results::RunData run(std::vector<results::PointData> points = {}) {
  results::RunData run;
  run.points = std::move(points);
  run.id = "5f1c2a9e";
  run.created = "2025-03-01T12:00:07Z";
  run.ended = "2025-03-01T12:03:21Z";
  run.isoscale_version = "0.1.0";
  run.git_hash = "0123abc";
  run.compiler = "GNU 12.2.0";
  run.build_type = "Release";
  run.device = "host";
  run.device_detail = "OpenBLAS 0.3.21, 1 thread a rank";
  run.mpi_library = "Open MPI 4.1.4";
  run.command_line = "isoscale run --workload dp,pp --ranks 1,2,4,8";
  run.ranks = 8;
  run.nodes = 1;
  run.complete = true;
  for (int rank = 0; rank < run.ranks; ++rank) {
    run.rank_facts.push_back({.rank = rank,
                              .host = "node17",
                              .node = 0,
                              .text = {{"cpu_model", "AMD EPYC 7763 64-Core Processor"}},
                              .number = {{"cores", 64}, {"memory_total", 274877906944.0}}});
  }
  return run;
}

/// A run along dp on 1, 2, 4 ... ranks, whose steps take so long.
inline results::RunData dp_run(const std::vector<double>& steps, int fewest = 1) {
  results::RunData result = run();
  for (const double step : steps) {
    const std::size_t index = result.points.size();
    result.points.push_back(measured(static_cast<int>(index), {.dp = fewest << index}, step));
  }
  return result;
}

/// A run along dp whose curve wanes, is oversubscribed at 4 ranks and skips 8.
inline results::RunData dp_curve() {
  Script script;
  script.compute(0).all_reduce(mesh::Axis::dp, 1).after(0, 1).compute(0).copy(2);
  results::PointData one = measured(0, {}, 12.4e-3);
  set_trace(one, point({}, {script},
                       {{trace(0, {0, 1000}, {{0, 600}, {600, 605}, {600, 950}, {950, 970}})}}));
  add_traced_steps(one, 12.4e-3, 1.01);

  results::PointData two = measured(1, {.dp = 2}, 6.7e-3);
  const Spans of_either{{0, 500}, {500, 950}, {500, 820}, {960, 980}};
  set_trace(two, point({.dp = 2}, {script, script}, step({0, 1000}, {of_either, of_either})));
  add_traced_steps(two, 6.7e-3, 1.02);

  results::PointData four = measured(2, {.dp = 4}, 4.9e-3);
  four.labels = {"oversubscribed"};
  four.folded = true;
  four.folded_reason = "a rank has 1 core";
  std::vector<Spans> of_each;
  for (int late = 0; late < 200; late += 50) {
    of_each.push_back({{0, 400 + late}, {400 + late, 720}, {720, 960}, {960, 980}});
  }
  set_trace(four, point({.dp = 4}, std::vector<Script>(4, script), step({0, 1000}, of_each)));
  add_traced_steps(four, 4.9e-3, 1.05);

  results::PointData eight = measured(3, {.dp = 8}, 1);
  eight.status = results::PointStatus::skipped;
  eight.reason = "batch 16 does not divide into 8 x 4";
  eight.step_times.clear();
  eight.verified.reset();
  return run({one, two, four, eight});
}

/// dp_curve(), whose 2-rank point all-reduces 64 B, and what was measured of its parts.
inline results::RunData curve_with_parts() {
  results::RunData run = dp_curve();
  results::PointData parts = bench_point(9, "calibrate", 2);
  // 64 B take 160 ns among 2; samples of other sizes lie on a line through it.
  for (const double bytes : {8.0, 64.0, 512.0}) {
    parts.rows.push_back(collective("all_reduce", bytes, 160e-9 * bytes / 64, 2));
  }
  parts.rows.push_back(gemm("f32", "cold", 512, 100e9, 2));
  run.points.push_back(std::move(parts));
  return run;
}

/// dp_curve() and a pp curve, weak scaling: a bubble at 2 stages, a wrong result at 4, no trace.
inline results::RunData two_curves() {
  const auto as_pp = [](results::PointData point) {
    point.workload = "pp";
    point.scaling = "weak";
    point.options = {{"batch", "8"}, {"microbatch", "2"}, {"schedule", "1f1b"}};
    return point;
  };
  results::PointData two = as_pp(measured(4, {.pp = 2}, 80e-3));
  set_trace(two, point({.pp = 2},
                       {Script{}.compute().send(1).receive(1).compute(),
                        Script{}.receive(-1).compute().compute().send(-1)},
                       {{trace(0, {0, 72}, {{0, 10}, {10, 12}, {12, 52}, {52, 72}}),
                         trace(1, {-20, 52}, {{-20, 12}, {12, 22}, {30, 50}, {50, 52}})}}));
  add_traced_steps(two, 80e-3, 0.998);
  results::PointData four = as_pp(measured(5, {.pp = 4}, 90e-3));
  four.status = results::PointStatus::failed;
  four.verified = false;
  four.reason = "the weights differ from those of one rank";
  four.verification = "layer3.qkv.gradient is off by 0.3";
  results::RunData run = dp_curve();
  run.points.push_back(std::move(two));
  run.points.push_back(std::move(four));
  return run;
}

/// A hostile run file could hold this in any field of text.
inline const std::string hostile =
    "=cmd|\"x\",\x1b[2J\r\n\xc2\x9b"
    "1m\xe2\x80\xae\xff<b>|`";

inline results::RunData hostile_run() {
  results::RunData run = two_curves();
  for (std::string* const text :
       {&run.id, &run.created, &run.isoscale_version, &run.git_hash, &run.compiler, &run.build_type,
        &run.device, &run.device_detail, &run.mpi_library, &run.command_line}) {
    *text = hostile;
  }
  run.warnings = {hostile};
  run.environment = {{hostile, hostile}};
  run.rank_facts = {{.rank = 0,
                     .host = hostile,
                     .node = 0,
                     .text = {{"cpu_model", hostile}, {"cpu_quota", hostile}, {hostile, hostile}},
                     .number = {{hostile, 1}}}};
  for (results::PointData& point : run.points) {
    for (std::string* const text :
         {&point.workload, &point.model, &point.dtype, &point.scaling, &point.placement,
          &point.reason, &point.verification, &point.throughput_unit, &point.folded_reason}) {
      *text = hostile;
    }
    point.options = {{hostile, hostile}};
    point.labels = {hostile};
    point.folded = true;
  }
  return run;
}

/// A launch of `nodes` nodes with `per_node` ranks each, and no point yet.
inline results::RunData launch(const std::string& id, int nodes, int per_node) {
  results::RunData result = run();
  result.id = id;
  result.nodes = nodes;
  result.ranks = nodes * per_node;
  result.rank_facts.clear();
  for (int rank = 0; rank < result.ranks; ++rank) {
    const int node = rank / per_node;
    result.rank_facts.push_back({.rank = rank,
                                 .host = "node" + std::to_string(node),
                                 .node = node,
                                 .text = {{"cpu_model", "AMD EPYC 7763"}}});
  }
  return result;
}

/// Adds a point that is ok: `shape` on the first ranks of the launch, `step` seconds a step.
inline results::PointData& add(results::RunData& run, mesh::Shape shape, double step) {
  results::PointData point = measured(static_cast<int>(run.points.size()), shape, step);
  const int per_node = run.ranks / run.nodes;
  point.nodes = (point.ranks + per_node - 1) / per_node;
  point.model_shape = {{"hidden", "64"}, {"heads", "8"}, {"layers", "4"}};
  run.points.push_back(std::move(point));
  return run.points.back();
}

/// A launch with one point along dp.
inline results::RunData launch_of(const std::string& id, int nodes, int per_node, double step) {
  results::RunData result = launch(id, nodes, per_node);
  add(result, {.dp = result.ranks}, step);
  return result;
}

/// Reports of launches and what they make together; keeps the launches, which the rest points to.
struct JoinedLaunches {
  std::vector<results::RunData> runs;
  std::vector<analysis::RunReport> reports{};
  analysis::merge::Joined joined{};

  explicit JoinedLaunches(std::vector<results::RunData> of,
                          const analysis::ReportOptions& options = {})
      : runs(std::move(of)) {
    reports = mapped(runs, [&](const results::RunData& run) {
      return analysis::make_report(run, run.id + ".h5", options);
    });
    joined = analysis::merge::join(reports, options);
  }
  JoinedLaunches(const JoinedLaunches&) = delete;
  JoinedLaunches& operator=(const JoinedLaunches&) = delete;

  [[nodiscard]] analysis::merge::Report report() const {
    const auto of_index = mapped(reports, analysis::catalog::index_run);
    return {.runs = reports, .joined = joined, .index = analysis::catalog::make_index(of_index)};
  }
};

}  // namespace isoscale::samples

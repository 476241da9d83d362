// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How fast a report is made of a point with many spans, and in how much memory. Usage:
// bench_analysis [MILLION_SPANS] [ROUNDS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include "analysis/report.hpp"
#include "bench.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale {
namespace {

constexpr mesh::Shape shape{.tp = 2, .dp = 4, .pp = 8};
constexpr int traced_steps = 4;

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

/// A hybrid step of about `ops` ops on each of 64 ranks.
program::OutlineSet outline_of(double ops) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request base{.model = workloads::load_model("gpt-1.3b")};
  base.model.layers = 96;
  const auto with_microbatches = [&](int count) {
    base.options = {{"microbatch", "1"}, {"microbatches", std::to_string(count * shape.dp)}};
    return program::outline(hybrid.build(hybrid.scale(base, shape, workloads::Scaling::strong)),
                            program::Section::step);
  };
  const auto ops_of = [](const program::OutlineSet& set) {
    double sum = 0;
    for (int rank = 0; rank < shape.size(); ++rank) {
      sum += static_cast<double>(set.of(rank).ops.size());
    }
    return sum / shape.size();
  };
  constexpr int few = 16;
  const double each = (ops_of(with_microbatches(2 * few)) - ops_of(with_microbatches(few))) / few;
  return with_microbatches(std::max(few, static_cast<int>(ops / each)));
}

/// Every op takes 10 to 12 microseconds, by chance.
timeline::Timeline simulated(const program::OutlineSet& set, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  simulate::Costs costs;
  for (int rank = 0; rank < shape.size(); ++rank) {
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (std::size_t op = 0; op < set.of(rank).ops.size(); ++op) {
      table.emplace_back(10'000 + static_cast<std::int64_t>(random() % 2000));
    }
  }
  return std::move(simulate::simulate(set, costs, {.plays = 1}).front());
}

results::RunData run_of(double million_spans) {
  results::RunData run;
  run.device = "host";
  results::PointData& point = run.points.emplace_back();
  point.workload = "hybrid";
  point.mesh = shape;
  point.ranks = shape.size();
  point.outline = outline_of(million_spans * 1e6 / traced_steps / shape.size());
  point.clock_offset.assign(static_cast<std::size_t>(point.ranks), 0.0);
  point.clock_error.assign(static_cast<std::size_t>(point.ranks), 0.0);
  for (std::uint32_t step = 0; step < traced_steps; ++step) {
    point.traces.push_back(simulated(point.outline, step));
    for (auto& rank : point.traces.back().ranks) rank.step = step;
  }
  return run;
}

void report(double million_spans, int rounds) {
  const results::RunData run = run_of(million_spans);
  std::size_t spans = 0;
  for (const auto& step : run.points.front().traces) {
    for (const auto& rank : step.ranks) spans += rank.spans.size();
  }
  const double before = peak_gib();
  double share = 0;
  const double time = bench::median_time(rounds, [&] {
    const analysis::RunReport made = analysis::make_report(run, "", {});
    const auto& mean = made.curves.front().points.front().breakdown.mean;
    if (mean) share = mean->bubble / mean->step;
  });
  fmt::print(
      "{} spans of {} ranks: report in {:.2f} s (goal 2 s); peak memory {:.2f} GiB, spans "
      "and program included (goal 1 GiB), {:.2f} GiB before; bubble {:.1f}%\n",
      spans, shape.size(), time, peak_gib(), before, 100 * share);
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  isoscale::report(isoscale::bench::argument(argc, argv, 1, 10),
                   isoscale::bench::argument(argc, argv, 2, 3));
}

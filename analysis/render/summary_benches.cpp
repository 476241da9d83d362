// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::render {
namespace {

/// One figure of a micro-benchmark, which is a row of the summary's table.
struct BenchRow {
  const PointReport* point = nullptr;
  std::string figure;             ///< name of the value: "best GEMM rate"
  std::optional<double> value{};  ///< in SI units; if absent, `where` may give the reason
  Unit unit = Unit::text;
  std::string where{};  ///< the size, pair or setting for which the value holds; not escaped
};

constexpr std::array<Metric<BenchRow>, 5> bench_metrics{{
    {"workload", "workload", Unit::text,
     [](const BenchRow& row) {
       const results::PointData& data = *row.point->data;
       return value_json(data.workload + (data.dtype.empty() ? "" : ", " + data.dtype));
     },
     "the micro-benchmark and its element type"},
    {"ranks", "ranks", Unit::count,
     [](const BenchRow& row) { return Value(row.point->data->ranks); },
     "the largest rank count without a label"},
    {"figure", "figure", Unit::text, member<&BenchRow::figure>, "which of its results is shown"},
    {"value", "value", Unit::text,
     [](const BenchRow& row) {
       return value_json(row.value ? value_text(*row.value, row.unit) : "");
     },
     "the result"},
    {"where", "at", Unit::text, member<&BenchRow::where>,
     "the size, pair or setting that it was reached at"},
}};

/// Returns the first of the rows with the largest `value`; null if no row has a value.
template <class Rows, class Of>
auto largest_of(const Rows& rows, const Of& value) -> decltype(rows.data()) {
  decltype(rows.data()) best = nullptr;
  for (const auto& row : rows) {
    if (value(row) && (best == nullptr || *value(row) > *value(*best))) best = &row;
  }
  return best;
}

void add_gemm(const PointReport& point, std::vector<BenchRow>& rows) {
  const microbench::RowReport* const best =
      largest_of(point.bench->rows, [](const microbench::RowReport& row) { return row.flops; });
  if (best == nullptr) return;
  const auto size = [&](const char* key) {
    return figure(number_of(*best->data, key), Unit::count);
  };
  std::string where = fmt::format("{} x {} x {}", size("m"), size("n"), size("k"));
  if (number_of(*best->data, "batch").value_or(1) != 1) where += ", batch " + size("batch");
  const std::string dtype = text_of(*best->data, "dtype");
  if (dtype != point.data->dtype) where += ", " + dtype;
  rows.push_back({&point, "best GEMM rate", best->flops, Unit::flop_rate, where});
}

/// Adds the bus bandwidth of each collective at its largest size. If it was measured in several
/// ways, for example among several numbers of ranks, the first with a bus bandwidth counts.
void add_collectives(const PointReport& point, std::vector<BenchRow>& rows) {
  std::set<std::string> seen;
  for (auto& [unused, alike] : grouped(collective_rows(point), collective_name)) {
    std::erase_if(alike, [](const microbench::RowReport* row) { return !row->busbw; });
    if (alike.empty()) continue;
    const auto bytes = [](const microbench::RowReport* row) {
      return number_of(*row->data, "bytes").value_or(0);
    };
    const microbench::RowReport& largest = **std::ranges::max_element(alike, {}, bytes);
    const std::string op = text_of(*largest.data, "op");
    if (!seen.insert(op).second) continue;
    std::string where = figure(bytes(&largest), Unit::bytes);
    if (const auto members = number_of(*largest.data, "members")) {
      where += fmt::format(" among {}", base::counted(static_cast<int>(*members), "rank"));
    }
    rows.push_back({&point, op + " busbw", largest.busbw, Unit::bandwidth, std::move(where)});
  }
}

void add_pairs(const PointReport& point, std::span<const results::RankFacts> facts,
               std::vector<BenchRow>& rows) {
  const microbench::PairReport* const slowest = largest_of(
      point.bench->pairs, [](const microbench::PairReport& pair) -> std::optional<double> {
        if (!pair.bandwidth) return std::nullopt;
        return -*pair.bandwidth;
      });
  if (slowest == nullptr) return;
  std::string where =
      fmt::format("{} to {}", microbench::rank_name(*point.data, slowest->src, facts),
                  microbench::rank_name(*point.data, slowest->dst, facts));
  const auto like =
      std::ranges::find(point.bench->classes, slowest->link_class, &microbench::ClassReport::name);
  if (like != point.bench->classes.end() && like->bandwidth) {
    where += fmt::format(" ({}, median {})", slowest->link_class,
                         value_text(*like->bandwidth, Unit::bandwidth));
  }
  rows.push_back({&point, "slowest pair", slowest->bandwidth, Unit::bandwidth, where});
}

/// Adds the highest bandwidth among the rows of the largest size, since smaller sizes may fit in
/// caches.
void add_memory(const PointReport& point, std::vector<BenchRow>& rows) {
  using Rank = std::optional<std::pair<double, double>>;
  const microbench::RowReport* const best =
      largest_of(point.bench->rows, [](const microbench::RowReport& row) {
        const bool counts = text_of(*row.data, "op") == "memory" && row.bandwidth;
        if (!counts) return Rank{};
        return Rank{{number_of(*row.data, "bytes").value_or(0), *row.bandwidth}};
      });
  if (best == nullptr) return;
  const std::string together = text_of(*best->data, "together");
  rows.push_back({&point, "memory bandwidth", best->bandwidth, Unit::bandwidth,
                  fmt::format("{} of {}{}", text_of(*best->data, "kind"),
                              figure(number_of(*best->data, "bytes"), Unit::bytes),
                              together == "all" ? ", all ranks at once" : "")});
}

void add_overlaps(const PointReport& point, std::vector<BenchRow>& rows) {
  std::vector<double> hidden;
  for (const microbench::OverlapReport& at : point.bench->overlaps) {
    if (at.hidden_known) hidden.push_back(at.hidden->value);
  }
  const std::size_t all = point.bench->overlaps.size();
  if (all == 0) return;
  std::string where = hidden.size() == all ? fmt::format("median of {}", base::counted(all, "pair"))
                                           : fmt::format("{} of {} known", hidden.size(),
                                                         base::counted(all, "pair"));
  if (hidden.size() < all && !hidden.empty()) where = "median of the " + where;
  rows.push_back({&point, "hidden of the shorter part", statistics::median(hidden), Unit::share,
                  std::move(where)});
}

/// Adds the highest request rate that was sustained; if no rate was, the highest achieved rate.
void add_serving(const PointReport& point, std::vector<BenchRow>& rows) {
  using Rank = std::optional<std::tuple<bool, bool, double>>;
  const microbench::RowReport* const best =
      largest_of(point.bench->rows, [](const microbench::RowReport& row) {
        const results::RowData& data = *row.data;
        if (text_of(data, "op") != "serve" || text_of(data, "part") != "rate") return Rank{};
        return Rank{{text_of(data, "highest") == "yes", text_of(data, "saturated") != "yes",
                     number_of(data, "achieved").value_or(0)}};
      });
  if (best == nullptr) return;
  const bool sustained = text_of(*best->data, "saturated") != "yes";
  std::string where;
  if (const auto latency = number_of(*best->data, "latency_p99_seconds")) {
    where = "p99 latency " + value_text(*latency, Unit::seconds);
  } else if (const auto middle = number_of(*best->data, "latency_median_seconds")) {
    where = "median latency " + value_text(*middle, Unit::seconds);
  }
  if (const auto requests = number_of(*best->data, "requests")) {
    where += fmt::format("{}{} requests", where.empty() ? "" : ", ", figure(requests, Unit::count));
  }
  rows.push_back({&point, sustained ? "rate sustained" : "rate achieved, saturated",
                  number_of(*best->data, "achieved"), Unit::request_rate, where});
}

/// The points of one workload, model and element type.
using Family = std::vector<const PointReport*>;

/// Adds the highest token rate over all batch sizes. It considers points of the family with the
/// same rank count and the same labels as the point `telling`, and prefers rates whose time has an
/// interval.
void add_inference(const Family& family, const PointReport& telling, std::span<const Inference> all,
                   std::vector<BenchRow>& rows) {
  using Rank = std::optional<std::pair<bool, double>>;
  const Inference* const best = largest_of(all, [&](const Inference& at) {
    const bool is_like = std::ranges::find(family, at.point) != family.end() &&
                         at.point->data->status == results::PointStatus::ok &&
                         at.point->data->ranks == telling.data->ranks &&
                         at.point->labels == telling.labels;
    if (!is_like || !at.tokens_per_second) return Rank{};
    return Rank{{at.tpot->lower.has_value(), *at.tokens_per_second}};
  });
  if (best == nullptr) return;
  const statistics::Estimate& time = *best->tpot;
  rows.push_back(
      {best->point, "most tokens", best->tokens_per_second, Unit::token_rate,
       fmt::format("TPOT {} {}(n={}{}), batch {}, {}", value_text(time.median, Unit::seconds),
                   time.lower ? interval_text(located(time)) + " " : "", time.samples,
                   time.lower ? "" : ": too few", figure(best->batch, Unit::count),
                   mesh::to_string(best->point->data->mesh))});
}

void add_family(const Family& family, const RunReport& run, std::span<const Inference> inferences,
                std::vector<BenchRow>& rows) {
  const PointReport* const point = telling_point(family);
  if (point == nullptr) {
    const PointReport& first = *family.front();
    rows.push_back(
        {.point = &first,
         .figure = "not measured",
         .where = first.data->reason.empty() ? "no reason was recorded" : first.data->reason});
    return;
  }
  if (!point->bench) return;
  const std::size_t before = rows.size();
  add_gemm(*point, rows);
  add_collectives(*point, rows);
  add_pairs(*point, run.data->rank_facts, rows);
  add_memory(*point, rows);
  add_overlaps(*point, rows);
  add_serving(*point, rows);
  add_inference(family, *point, inferences, rows);
  // If the run has curves, its micro-benchmarks serve only their calibration, so the first two
  // figures are enough.
  constexpr std::size_t enough = 2;
  if (!run.curves.empty()) rows.resize(std::min(rows.size(), before + enough));
}

}  // namespace

std::vector<Note> bench_legend() { return legend_of(Metrics<BenchRow>{bench_metrics}); }

BenchesSummary summarise_benches(const merge::Report& report) {
  std::vector<BenchRow> rows;
  for (const RunReport& run : report.runs) {
    const std::vector<Inference> inferences = inferences_of(run);
    const auto kind = [](const PointReport& at) {
      return std::tuple{at.data->workload, at.data->model, at.data->dtype};
    };
    for (const auto& [unused, family] : grouped(pointers_to(run.benches), kind)) {
      add_family(family, run, inferences, rows);
    }
  }
  BenchesSummary summary;
  summary.left_out = rows.size() - std::min(rows.size(), most_summary_rows);
  rows.resize(rows.size() - summary.left_out);
  summary.table = table_of(Metrics<BenchRow>{bench_metrics}, std::span<const BenchRow>{rows});
  return summary;
}

}  // namespace isoscale::analysis::render

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/microbench_tables.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/render/render.hpp"
#include "analysis/render/table_cells.hpp"
#include "calibration/fit_calibration.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::render {
namespace {

using microbench::OverlapReport;
using microbench::RowReport;
using statistics::Located;

Value row_time(const RowReport& row) {
  const auto& p99 = row.p99;
  Json time = time_json(row.time, "plays");
  time["p99"] = number_or_null(value_of(p99));
  time["p99_lower"] = number_or_null(p99 ? p99->lower : std::nullopt);
  time["p99_upper"] = number_or_null(p99 ? p99->upper : std::nullopt);
  time["calls"] = row.data->calls;
  time["single_calls"] = row.data->call_times.size();
  return time;
}

/// Returns the NUMA node whose memory a row used; null if none is stored, or if the system chose
/// the node, which is stored as a negative number.
Value numa_node(const RowReport& row) {
  const auto node = number_of(*row.data, "numa");
  return node && *node >= 0 ? count_or_null(node) : Value();
}

/// A function for Metric::value that returns the hidden share, or one bound of its interval.
template <auto End>
constexpr auto end_of_hidden = [](const OverlapReport& at) -> Value {
  return at.hidden ? value_json((*at.hidden).*End) : Value();
};

// The keys that rows of each kind have in the JSON report, followed by those in gpu_keys. A key
// with "?" is left out if the row has no value for it.
constexpr std::string_view collective_keys =
    "op dtype in_place bytes count time algbw busbw wrong reduction implementation axis groups "
    "algorithm protocol registration class root members estimate";
constexpr std::string_view gemm_keys =
    "op m n k batch ?layout time flops dtype cache origin ?fp8_accumulate ?arithmetic flop "
    "of_ceiling "
    "of_peak";
constexpr std::string_view p2p_keys = "op kind bytes bandwidth time class";
constexpr std::string_view memory_keys = "op kind bytes bandwidth time together numa of_peak";
constexpr std::string_view gpu_keys =
    "?sm_clock ?sm_clock_min ?throttle_reasons ?repeated_plays ?late_plays";

/// Returns the JSON object of a row of an unknown kind, with all its keys unchanged.
Json other_json(const RowReport& row) {
  Json object(row.data->text);
  for (const auto& [key, value] : row.data->number) object[key] = number_or_null(value);
  object["time"] = row_time(row);
  return object;
}

Json pair_json(const results::PointData& point, const microbench::PairReport& pair) {
  return {{"op", "p2p"},
          {"src", pair.src},
          {"dst", pair.dst},
          {"src_world_rank", world_rank(point, pair.src)},
          {"dst_world_rank", world_rank(point, pair.dst)},
          {"class", text_or_null(pair.link_class)},
          {"latency", number_or_null(pair.latency)},
          {"bandwidth", number_or_null(pair.bandwidth)},
          {"bidirectional", number_or_null(pair.bidirectional)},
          {"status", pair.failure.empty() ? "ok" : "failed"},
          {"reason", text_or_null(pair.failure)}};
}

/// True for rows that have no JSON object of their own, since several rows become one object.
bool is_merged(const results::RowData& row) {
  const std::string op = text_of(row, "op"), kind = text_of(row, "kind");
  return op == "overlap" || op == "infer" ||
         (op == "p2p" && (kind == "latency" || kind == "bandwidth" || kind == "bidirectional"));
}

Json row_json(const RowReport& row) {
  const std::string op = text_of(*row.data, "op");
  const std::string_view keys = op == "gemm"                     ? gemm_keys
                                : calibration::is_collective(op) ? collective_keys
                                : op == "p2p"                    ? p2p_keys
                                : op == "memory"                 ? memory_keys
                                                                 : "";
  Json object = op == "serve"  ? serve_json(*row.data)
                : keys.empty() ? other_json(row)
                               : object_of<RowReport>(row_metrics(), row, keys);
  if (!keys.empty()) object.update(object_of<RowReport>(row_metrics(), row, gpu_keys));
  object.update(object_of<RowReport>(row_metrics(), row, "status reason"));
  return object;
}

}  // namespace

Metrics<RowReport> row_metrics() {
  using enum Unit;
  using R = RowReport;
  static constexpr Metric<RowReport> all[] = {
      {"op", "op", text},
      {"dtype", "type", text},
      {"in_place", "in place", text,
       [](const RowReport& row) -> Value {
         const std::string in_place = text_of(*row.data, "in_place");
         return in_place.empty() ? Value() : Value(in_place == "yes");
       }},
      {"kind", "kind", text},
      {"bytes", "size", bytes},
      {"count", "count", count},
      {"time", "time", seconds, row_time,
       "of one call: median over plays, each as long as its slowest rank", 0, Keep::value_only},
      {"~interval", "±95%", share,
       [](const RowReport& row) -> Value {
         const std::string text = interval_cell(row.data, row.time);
         return text == undefined ? Value() : Value(text);
       }},
      {"~least", "min", seconds,
       [](auto& row) {
         return value_json(row.time ? std::optional{row.time->minimum} : std::nullopt);
       }},
      {"~p99", "p99", seconds, member<&R::p99, statistics::value_of>},
      {"algbw", "algbw", bandwidth, member<&R::algbw>},
      {"busbw", "busbw", bandwidth, member<&R::busbw>},
      {"bandwidth", "bandwidth", bandwidth, member<&R::bandwidth>},
      {"flops", "FLOP/s", flop_rate, member<&R::flops>},
      {"of_ceiling", "of ceiling", share, member<&R::of_ceiling>},
      {"of_peak", "of datasheet", share, member<&R::of_peak>},
      {"wrong", "wrong", count, member<&R::data, &results::RowData::wrong>},
      {"reduction", "reduction", text},
      {"implementation", "by", text},
      {"axis", "axis", text},
      {"groups", "groups", text},
      {"algorithm", "algorithm", text},
      {"protocol", "protocol", text},
      {"registration", "registration", text},
      {"class", "class", text},
      {"root", "root", count},
      {"members", "members", count},
      {"estimate", "estimate", seconds},
      {"m", "m", count},
      {"n", "n", count},
      {"k", "k", count},
      {"batch", "batch", count},
      {"layout", "layout", text},
      {"cache", "caches", text},
      {"origin", "from", text},
      {"fp8_accumulate", "fp8_accumulate", text},
      {"arithmetic", "arithmetic", text},
      {"flop", "FLOP", flop},
      {"together", "together", text},
      {"numa", "NUMA", count, numa_node},
      {"sm_clock", "clock", hertz},
      {"sm_clock_min", "lowest clock", hertz},
      {"throttle_reasons", "reasons", digits},
      {"repeated_plays", "repeated", digits},
      {"late_plays", "late", digits},
      {"status", "status", text, [](auto& row) { return Value(results::name(row.data->status)); }},
      {"reason", "reason", text, member<&R::data, &results::RowData::reason>},
      {"part", "part", text},
      // The following are figures of the workload serve: for a request rate, and for one replica at
      // one rate.
      {"rate", "asked/s", digits},
      {"offered", "arrived/s", digits},
      {"achieved", "achieved/s", digits},
      {"requests", "requests", count},
      {"latency_median_seconds", "latency", seconds, nullptr, "arrival to last token"},
      {"latency_p90_seconds", "p90", seconds},
      {"latency_p99_seconds", "p99", seconds},
      {"latency_max_seconds", "max", seconds},
      {"ttft_median_seconds", "TTFT", seconds, nullptr, "arrival to first token"},
      {"ttft_p99_seconds", "TTFT p99", seconds},
      {"tpot_median_seconds", "TPOT", seconds},
      {"queueing_median_seconds", "queueing", seconds, nullptr,
       "arrival to the start of the request's batch"},
      {"queueing_p99_seconds", "queueing p99", seconds},
      {"utilisation", "utilisation", share},
      {"imbalance", "imbalance", digits},
      {"requests_per_batch", "per batch", digits},
      {"backlog", "backlog", count},
      {"saturated", "saturated", text, nullptr, "requests pile up, or are later than the slo"},
      {"~highest", "highest", text,
       [](auto& row) { return value_json(text_of(*row.data, "highest") == "yes" ? "*" : ""); }},
      {"replica", "replica", count},
      {"batches", "batches", count},
      {"busy_seconds", "busy", seconds},
  };
  return all;
}

Metrics<OverlapReport> overlap_metrics() {
  using enum Unit;
  using O = OverlapReport;
  static constexpr Metric<OverlapReport> all[] = {
      {"collective", "collective", text, member<&O::collective>},
      {"dtype", "type", text, member<&O::dtype>},
      {"bytes", "size", bytes, whole<&O::bytes>},
      {"m", "m", count, whole<&O::m>},
      {"n", "n", count, whole<&O::n>},
      {"k", "k", count, whole<&O::k>},
      {"gemm_alone", "gemm", seconds, member<&O::gemm>},
      {"collective_alone", "collective", seconds, member<&O::communication>},
      {"together", "together", seconds, member<&O::together>},
      {"gemm_slowdown", "gemm slowed", ratio, member<&O::gemm_slowdown>},
      {"collective_slowdown", "collective slowed", ratio, member<&O::communication_slowdown>},
      {"hidden", "hidden", share, end_of_hidden<&Located::value>},
      {"hidden_lower", "from", share, end_of_hidden<&Located::lower>},
      {"hidden_upper", "to", share, end_of_hidden<&Located::upper>},
      {"~hidden_shown", "hidden", share,
       [](auto& at) {
         const char* const doubt = at.hidden_known ? "" : "?";
         return value_json(at.hidden ? percent(value_of(at.hidden)) + doubt : "");
       }},
      {"~hidden_interval", "±95%", share,
       [](auto& at) {
         const auto& hidden = at.hidden;
         if (!hidden || !hidden->lower) return Value();
         return value_json("±" + percent(std::max(*hidden->upper - hidden->value,
                                                  hidden->value - *hidden->lower)));
       }},
      {"hidden_known", "known", text, member<&O::hidden_known>},
      {"why_unknown", "why unknown", text, member<&O::why_unknown>},
      {"status", "status", text,
       [](auto& at) { return value_json(at.failure.empty() ? "ok" : "failed"); }},
      {"reason", "reason", text, member<&O::failure>},
  };
  return all;
}

template <>
Value stored_value(const RowReport& row, std::string_view key, Unit unit) {
  const std::string name{key};
  if (unit == Unit::text) return value_json(text_of(*row.data, name.c_str()));
  const std::optional<double> number = number_of(*row.data, name.c_str());
  return unit == Unit::count || unit == Unit::bytes ? count_or_null(number)
                                                    : number_or_null(number);
}

std::string interval_cell(const results::RowData* row,
                          const std::optional<statistics::Estimate>& time) {
  constexpr std::size_t fewest = 6;  // repetitions (plays) that an interval needs
  if (time && time->lower) return interval_text(located(*time));
  const std::size_t plays = row == nullptr ? 0 : row->times.size();
  return plays > 0 && plays < fewest ? fmt::format("n={}: too few", plays) : std::string{undefined};
}

std::string figure(const std::optional<double>& value, Unit unit) {
  return text_of(value_json(value), unit);
}

std::string row_excuse(const RowReport& row) {
  if (row.data == nullptr || row.data->status == results::PointStatus::ok) return "";
  return fmt::format("{}: {}", results::name(row.data->status),
                     row.data->reason.empty() ? "no reason was recorded" : row.data->reason);
}

Json rows_json(const PointReport& point) {
  Json rows = Json::array();
  if (!point.bench) return rows;
  const microbench::BenchReport& bench = *point.bench;
  for (const RowReport& row : bench.rows) {
    if (!is_merged(*row.data)) rows.push_back(row_json(row));
  }
  for (const microbench::PairReport& pair : bench.pairs) {
    rows.push_back(pair_json(*point.data, pair));
  }
  for (const OverlapReport& at : bench.overlaps) {
    rows.push_back({{"op", "overlap"}});
    rows.back().update(object_of<OverlapReport>(overlap_metrics(), at));
  }
  return rows;
}

Json slow_pairs_json(const PointReport& point) {
  if (!point.bench) return Json::array();
  return list_json(point.bench->slow, [&](const microbench::SlowPair& at) {
    return Json{{"src", at.src},
                {"dst", at.dst},
                {"src_world_rank", world_rank(*point.data, at.src)},
                {"dst_world_rank", world_rank(*point.data, at.dst)},
                {"from", at.from},
                {"to", at.to},
                {"class", text_or_null(at.link_class)},
                {"quantity", at.quantity},
                {"value", number_or_null(at.value)},
                {"typical", number_or_null(at.typical)}};
  });
}

}  // namespace isoscale::analysis::render

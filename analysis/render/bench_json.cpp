// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/inference.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/render_json.hpp"
#include "calibration/calibration.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

Json row_time_json(const microbench::RowReport& row) {
  const auto& p99 = row.p99;
  Json time = time_json(row.time, "plays");
  time["p99"] = number_or_null(value_of(p99));
  time["p99_lower"] = number_or_null(p99 ? p99->lower : std::nullopt);
  time["p99_upper"] = number_or_null(p99 ? p99->upper : std::nullopt);
  time["calls"] = row.data->calls;
  time["single_calls"] = row.data->call_times.size();
  return time;
}

/// Adds the state of the GPU while the row was measured, and the number of plays (timed
/// repetitions) with doubtful times, as far as they are known.
void add_gpu(const results::RowData& data, Json& object) {
  for (const char* key :
       {"sm_clock", "sm_clock_min", "throttle_reasons", "repeated_plays", "late_plays"}) {
    if (const auto value = number_of(data, key)) object[key] = *value;
  }
}

Json collective_json(const microbench::RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", text_of(data, "op")}, {"dtype", text_or_null(text_of(data, "dtype"))}};
  const std::string in_place = text_of(data, "in_place");
  object["in_place"] = in_place.empty() ? Json{} : Json(in_place == "yes");
  for (const char* key : {"bytes", "count"}) object[key] = count_or_null(number_of(data, key));
  object["time"] = row_time_json(row);
  object["algbw"] = number_or_null(row.algbw);
  object["busbw"] = number_or_null(row.busbw);
  object["wrong"] = data.wrong ? Json(*data.wrong) : Json{};
  for (const char* key : {"reduction", "implementation", "axis", "groups", "algorithm", "protocol",
                          "registration", "class"}) {
    object[key] = text_or_null(text_of(data, key));
  }
  for (const char* key : {"root", "members"}) object[key] = count_or_null(number_of(data, key));
  object["estimate"] = number_or_null(number_of(data, "estimate"));
  add_gpu(data, object);
  return object;
}

Json gemm_json(const microbench::RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", "gemm"}};
  for (const char* key : {"m", "n", "k", "batch"})
    object[key] = count_or_null(number_of(data, key));
  object["time"] = row_time_json(row);
  object["flops"] = number_or_null(row.flops);
  for (const char* key : {"dtype", "cache", "origin"})
    object[key] = text_or_null(text_of(data, key));
  for (const char* key : {"fp8_accumulate", "arithmetic"}) {
    if (const std::string text = text_of(data, key); !text.empty()) object[key] = text;
  }
  object["flop"] = number_or_null(number_of(data, "flop"));
  object["of_ceiling"] = number_or_null(row.of_ceiling);
  object["of_peak"] = number_or_null(row.of_peak);
  add_gpu(data, object);
  return object;
}

Json moved_json(const microbench::RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", text_of(data, "op")}, {"kind", text_or_null(text_of(data, "kind"))}};
  object["bytes"] = count_or_null(number_of(data, "bytes"));
  object["bandwidth"] = number_or_null(row.bandwidth);
  object["time"] = row_time_json(row);
  if (text_of(data, "op") == "memory") {
    object["together"] = text_or_null(text_of(data, "together"));
    const auto node = number_of(data, "numa");
    object["numa"] = node && *node >= 0 ? count_or_null(node) : Json{};
    object["of_peak"] = number_or_null(row.of_memory_peak);
  } else {
    object["class"] = text_or_null(text_of(data, "class"));
  }
  add_gpu(data, object);
  return object;
}

/// Returns a row of an unknown kind with all its keys unchanged.
Json other_json(const microbench::RowReport& row) {
  Json object = Json::object();
  for (const auto& [key, value] : row.data->text) object[key] = value;
  for (const auto& [key, value] : row.data->number) object[key] = number_or_null(value);
  object["time"] = row_time_json(row);
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

Json overlap_json(const microbench::OverlapReport& at) {
  return {{"op", "overlap"},
          {"collective", text_or_null(at.collective)},
          {"dtype", text_or_null(at.dtype)},
          {"bytes", count_or_null(at.bytes)},
          {"m", count_or_null(at.m)},
          {"n", count_or_null(at.n)},
          {"k", count_or_null(at.k)},
          {"gemm_alone", number_or_null(at.gemm)},
          {"collective_alone", number_or_null(at.communication)},
          {"together", number_or_null(at.together)},
          {"gemm_slowdown", number_or_null(at.gemm_slowdown)},
          {"collective_slowdown", number_or_null(at.communication_slowdown)},
          {"hidden", number_or_null(value_of(at.hidden))},
          {"hidden_lower", number_or_null(at.hidden ? at.hidden->lower : std::nullopt)},
          {"hidden_upper", number_or_null(at.hidden ? at.hidden->upper : std::nullopt)},
          {"hidden_known", at.hidden_known},
          {"why_unknown", text_or_null(at.why_unknown)},
          {"status", at.failure.empty() ? "ok" : "failed"},
          {"reason", text_or_null(at.failure)}};
}

bool is_merged(const results::RowData& row) {
  const std::string op = text_of(row, "op"), kind = text_of(row, "kind");
  return op == "overlap" || op == "infer" ||
         (op == "p2p" && (kind == "latency" || kind == "bandwidth" || kind == "bidirectional"));
}

Json samples_json(const std::vector<results::CurveSample>& samples) {
  Json list = Json::array();
  for (const results::CurveSample& at : samples) {
    list.push_back({{"bytes", number_or_null(at.bytes)},
                    {"time", number_or_null(at.time)},
                    {"fitted", number_or_null(at.fitted)},
                    {"residual", number_or_null(at.time / at.fitted - 1)},
                    {"held_out", number_or_null(at.held_out)}});
  }
  return list;
}

template <class Row>
Json kind_json(const Row& row) {
  return {{"op", row.op},
          {"dtype", text_or_null(row.dtype)},
          {"class", text_or_null(row.link_class)},
          {"implementation", text_or_null(row.implementation)}};
}

Json growth_json(const results::CalibrationGrowth& at) {
  Json counts = Json::array();
  for (std::size_t i = 0; i < at.members.size(); ++i) {
    counts.push_back({{"members", at.members[i]},
                      {"latency", number_or_null(at.latency[i])},
                      {"bandwidth", number_or_null(at.bandwidth[i])}});
  }
  Json object = kind_json(at);
  object["law"] = text_or_null(at.law);
  object["base"] = number_or_null(at.base);
  object["slope"] = number_or_null(at.slope);
  object["bandwidth_factor"] = number_or_null(at.bandwidth_factor);
  object["counts"] = counts;
  return object;
}

template <class Row>
Json shape_json(const Row& at) {
  return {{"dtype", at.dtype}, {"cache", text_or_null(at.cache)},
          {"m", at.m},         {"n", at.n},
          {"k", at.k},         {"batch", at.batch},
          {"flops", at.rate},  {"labels", text_or_null(at.labels)}};
}

}  // namespace

Json rows_json(const PointReport& point) {
  const microbench::BenchReport& bench = *point.bench;
  Json rows = Json::array();
  for (const microbench::RowReport& row : bench.rows) {
    if (is_merged(*row.data)) continue;
    const std::string op = text_of(*row.data, "op");
    Json object = op == "gemm"                     ? gemm_json(row)
                  : calibration::is_collective(op) ? collective_json(row)
                  : op == "p2p" || op == "memory"  ? moved_json(row)
                  : op == "serve"                  ? serve_json(*row.data)
                                                   : other_json(row);
    object["status"] = results::name(row.data->status);
    object["reason"] = text_or_null(row.data->reason);
    rows.push_back(std::move(object));
  }
  for (const microbench::PairReport& pair : bench.pairs)
    rows.push_back(pair_json(*point.data, pair));
  for (const microbench::OverlapReport& at : bench.overlaps) rows.push_back(overlap_json(at));
  return rows;
}

Json slow_pairs_json(const PointReport& point) {
  Json pairs = Json::array();
  for (const microbench::SlowPair& at : point.bench->slow) {
    pairs.push_back({{"src", at.src},
                     {"dst", at.dst},
                     {"src_world_rank", world_rank(*point.data, at.src)},
                     {"dst_world_rank", world_rank(*point.data, at.dst)},
                     {"from", at.from},
                     {"to", at.to},
                     {"class", text_or_null(at.link_class)},
                     {"quantity", at.quantity},
                     {"value", number_or_null(at.value)},
                     {"typical", number_or_null(at.typical)}});
  }
  return pairs;
}

Json link_shares_json(const PointReport& point) {
  Json shares = Json::array();
  for (const breakdown::LinkShare& at : point.link_shares) {
    shares.push_back({{"op", at.op},
                      {"axes", at.axes},
                      {"class", text_or_null(at.link_class)},
                      {"alone", number_or_null(at.alone)},
                      {"measured", number_or_null(at.measured)},
                      {"share", number_or_null(at.share)}});
  }
  return shares;
}

Json calibration_json(const results::CalibrationData& calibration) {
  if (calibration.empty()) return Json::object();
  Json curves = Json::array(), growth = Json::array(), gemms = Json::array(),
       ceilings = Json::array();
  for (const results::CalibrationCurve& at : calibration.curves) {
    Json curve = kind_json(at);
    curve["members"] = at.members;
    curve["nodes"] = at.nodes;
    curve["labels"] = text_or_null(at.labels);
    curve["latency"] = located_json(at.latency);
    curve["bandwidth"] = located_json(at.bandwidth);
    curve["error"] = number_or_null(at.error);
    curve["form"] = at.form;
    curve["samples"] = samples_json(at.samples);
    curves.push_back(curve);
  }
  for (const results::CalibrationGrowth& at : calibration.growth) growth.push_back(growth_json(at));
  for (const results::GemmRate& at : calibration.gemms) {
    Json shape = shape_json(at);
    shape["held_out"] = number_or_null(at.held_out);
    gemms.push_back(shape);
  }
  for (const results::GemmCeiling& at : calibration.ceilings) {
    Json shape = shape_json(at);
    shape["error"] = number_or_null(at.error);
    ceilings.push_back(shape);
  }
  return {{"device", text_or_null(calibration.device)},
          {"curves", curves},
          {"growth", growth},
          {"gemms", gemms},
          {"ceilings", ceilings}};
}

}  // namespace isoscale::analysis::render
